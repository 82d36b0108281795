//! What a workload measured: its lines on standard output, read.
//!
//! A measurement line consists of `key=value` words separated by blanks and has `operations=`. `case` names the case, absent when
//! the workload has one only; all other values are decimal numbers. `operations`, `interrupts` (-1: not known), `threads`, `bound`
//! and `ns_per_op` have a meaning for us, further keys are figures of the workload's own. Other lines are the program's business.
//! A workload that cannot run on this kernel prints `absent REASON` and ends with [`ABSENT`]; one that lacks something for a single
//! case prints `absent case=NAME REASON` and goes on.

use std::collections::BTreeMap;

/// Exit status of a workload that this kernel lacks something for.
pub(crate) const ABSENT: u8 = 77;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    pub(crate) case: Option<String>,
    /// All numbers of the line, by their keys.
    pub(crate) figures: BTreeMap<String, f64>,
}

impl Measurement {
    /// All measurement lines of a program's output.
    ///
    /// # Errors
    /// The sentence that says which line cannot be understood: a workload that prints `operations=` wrongly is a mistake.
    pub(crate) fn all_of(output: &str) -> Result<Vec<Self>, String> {
        let is_one = |line: &&str| line.split(' ').any(|word| word.starts_with("operations="));
        output.lines().filter(is_one).map(Self::of).collect()
    }

    fn of(line: &str) -> Result<Self, String> {
        let mut measurement = Measurement { case: None, figures: BTreeMap::new() };
        for word in line.split(' ') {
            let wrong = || format!("the word '{word}' of the measurement '{line}' is not KEY=NUMBER");
            match word.split_once('=').ok_or_else(wrong)? {
                ("case", name) => measurement.case = Some(name.to_owned()),
                (key, value) => {
                    let value =
                        value.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(wrong)?;
                    measurement.figures.insert(key.to_owned(), value);
                }
            }
        }
        if measurement.operations() == 0 {
            return Err(format!("the measurement '{line}' has no operations"));
        }
        Ok(measurement)
    }

    /// How many operations were measured; at least one.
    pub(crate) fn operations(&self) -> u64 {
        self.figures.get("operations").map_or(0, |count| *count as u64)
    }

    /// Threads that took part.
    pub(crate) fn threads(&self) -> Option<u32> {
        self.figures.get("threads").map(|count| *count as u32)
    }

    /// Interrupts for each operation; none when the kernel did not count them.
    pub(crate) fn interrupts_per_operation(&self) -> Option<f64> {
        let interrupts = self.figures.get("interrupts").filter(|count| **count >= 0.0)?;
        Some(interrupts / self.operations() as f64)
    }

    /// The lower bound, where one is defined.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.figures.get("bound").copied()
    }

    /// Nanoseconds for each operation; on the instruction clock they are instructions.
    pub(crate) fn time_per_operation(&self) -> Option<f64> {
        self.figures.get("ns_per_op").copied()
    }
}

/// What a workload said it cannot measure here: the case, or none for all of it, and the reason.
pub(crate) fn absences(output: &str) -> Vec<(Option<String>, String)> {
    let of_line = |line: &str| {
        let rest = line.strip_prefix("absent ")?;
        let case = rest.strip_prefix("case=").and_then(|rest| rest.split_once(' '));
        Some(match case {
            Some((case, reason)) => (Some(case.to_owned()), reason.to_owned()),
            None => (None, rest.to_owned()),
        })
    };
    output.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_read() {
        let output = "hello\ncase=threads-4 threads=4 operations=200 interrupts=600 bound=3 ns_per_op=25069 promote_ticks=58.5\nok\n";
        let all = Measurement::all_of(output).unwrap();
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(one.case.as_deref(), Some("threads-4"));
        assert_eq!((one.operations(), one.threads()), (200, Some(4)));
        assert_eq!(one.interrupts_per_operation(), Some(3.0));
        assert_eq!((one.bound(), one.time_per_operation()), (Some(3.0), Some(25069.0)));
        assert_eq!(one.figures["promote_ticks"], 58.5);
    }

    #[test]
    fn an_unknown_count_is_none_and_not_zero() {
        let all = Measurement::all_of("operations=10 interrupts=-1").unwrap();
        assert_eq!(all[0].interrupts_per_operation(), None);
        assert_eq!(all[0].case, None);
    }

    #[test]
    fn a_line_that_is_almost_one_is_refused() {
        for line in ["operations=0", "operations=x", "operations=1 and more", "operations=1 a=inf"] {
            assert!(Measurement::all_of(line).is_err(), "{line}");
        }
        assert_eq!(Measurement::all_of("ok\nnothing here\n").unwrap(), []);
    }

    #[test]
    fn an_absence_has_its_reason() {
        let whole = [(None, "this kernel has no membarrier".to_owned())];
        assert_eq!(absences("absent this kernel has no membarrier\n"), whole);
        let one = [(Some("signal".to_owned()), "not in this package".to_owned())];
        assert_eq!(absences("operations=1\nabsent case=signal not in this package\nok\n"), one);
        assert_eq!(absences("ok\n"), []);
    }
}
