//! What is measured: which workloads, and with how many CPUs each.

use crate::failure::Failure;
use crate::mechanisms;
use crate::workload::{Bench, Workload};

/// The numbers of CPUs that are measured when nobody says otherwise: with the first of them most is done.
const USUAL: [u32; 3] = [4, 2, 8];
/// How alike two names must be for one to be suggested instead of the other, from 0 to 1.
const ALIKE: f64 = 0.75;

/// `--cpus`: numbers from 1 to 64, rising, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<u32>);

impl CpuList {
    /// Reads numbers with commas between them.
    ///
    /// # Errors
    /// A sentence that names what is no number of CPUs.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let number = |word: &str| match word.parse::<u32>() {
            Ok(cpus @ 1..=64) => Ok(cpus),
            _ if word.is_empty() => Err("a number of CPUs is missing between the commas".to_owned()),
            _ => Err(format!("'{word}' is no number of CPUs; there are 1 to 64, such as 2,4,8")),
        };
        let mut cpus = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
        cpus.sort_unstable();
        cpus.dedup();
        Ok(CpuList(cpus))
    }
}

/// A workload that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) workload: Workload,
    pub(super) bench: Bench,
    pub(super) without: Vec<&'static str>,
    /// Rising; empty when it can run with none of those asked for.
    pub(super) cpus: Vec<u32>,
}

impl Chosen {
    /// The number of CPUs that is measured first and most: four, or the one next to it.
    pub(super) fn base(&self) -> Option<u32> {
        self.cpus.iter().copied().min_by_key(|cpus| cpus.abs_diff(USUAL[0]))
    }

    /// Whether it makes sense on one CPU, where Linux starts on the instruction clock too.
    pub(super) fn runs_on_one_cpu(&self) -> bool {
        self.bench.cpus.contains(&1)
    }

    fn new(
        (workload, bench): (Workload, Bench),
        quick: bool,
        asked: Option<&CpuList>,
    ) -> Result<Self, Failure> {
        let without = mechanisms::parse(&bench.without)?;
        let cpus = cpus(&bench.cpus, quick, asked);
        Ok(Chosen { workload, bench, without, cpus })
    }
}

/// A workload's own list says where it makes sense; who asks for other numbers gets them, as long as they are enough for it.
fn cpus(sensible: &[u32], quick: bool, asked: Option<&CpuList>) -> Vec<u32> {
    let least = sensible.iter().min().copied().unwrap_or(1);
    if let Some(CpuList(asked)) = asked {
        return asked.iter().copied().filter(|cpus| *cpus >= least).collect();
    }
    let mut chosen: Vec<u32> = USUAL.into_iter().filter(|cpus| sensible.contains(cpus)).collect();
    if chosen.is_empty() {
        chosen.extend(sensible.iter().copied().min_by_key(|cpus| cpus.abs_diff(USUAL[0])));
    }
    chosen.truncate(if quick { 1 } else { chosen.len() });
    chosen.sort_unstable();
    chosen
}

/// The workloads of these names, or all of them, in the table's order.
///
/// # Errors
/// A usage failure when a name is unknown, with the names there are.
pub(super) fn choose(names: &[String], quick: bool, asked: Option<&CpuList>) -> Result<Vec<Chosen>, Failure> {
    let all = Workload::all_measured()?;
    let known: Vec<&str> = all.iter().map(|(workload, _)| workload.name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::usage(unknown_name(unknown, &known)));
    }
    let wanted = all.into_iter().filter(|(workload, _)| names.is_empty() || names.contains(&workload.name));
    wanted.map(|entry| Chosen::new(entry, quick, asked)).collect()
}

fn unknown_name(name: &str, known: &[&str]) -> String {
    let alike = known.iter().map(|other| (strsim::jaro_winkler(name, other), *other));
    let nearest = alike.max_by(|left, right| left.0.total_cmp(&right.0));
    let hint = match nearest {
        Some((alike, nearest)) if alike >= ALIKE => format!(" (did you mean {nearest}?)"),
        _ => String::new(),
    };
    format!("bench has no workload '{name}'{hint}; there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_numbers_with_commas() {
        assert_eq!(CpuList::parse("8,2,2"), Ok(CpuList(vec![2, 8])));
        assert_eq!(CpuList::parse("64"), Ok(CpuList(vec![64])));
        for (wrong, word) in
            [("0", "'0'"), ("65", "'65'"), ("x", "'x'"), ("2,,4", "missing"), ("", "missing"), ("-1", "'-1'")]
        {
            let sentence = CpuList::parse(wrong).unwrap_err();
            assert!(sentence.contains(word), "{wrong}: {sentence}");
        }
    }

    #[test]
    fn the_usual_numbers_of_cpus_are_those_that_make_sense() {
        assert_eq!(cpus(&[1, 2, 4, 8], false, None), [2, 4, 8]);
        assert_eq!(cpus(&[1, 2, 4, 8], true, None), [4]);
        assert_eq!(cpus(&[8], true, None), [8]);
        assert_eq!(cpus(&[16, 32], false, None), [16]);
        assert_eq!(cpus(&[2, 4], true, Some(&CpuList(vec![1, 2, 16]))), [2, 16]);
        assert!(cpus(&[8], false, Some(&CpuList(vec![2, 4]))).is_empty());
    }

    #[test]
    fn an_unknown_name_is_answered_with_a_near_one_and_all() {
        let sentence = unknown_name("mprotect-flp", &["dontneed-hop", "mprotect-flip"]);
        assert!(
            sentence.contains("did you mean mprotect-flip?")
                && sentence.contains("dontneed-hop, mprotect-flip")
        );
        assert!(!unknown_name("zzz", &["dontneed-hop"]).contains("did you mean"));
    }

    #[test]
    fn names_choose_and_the_table_orders() {
        let chosen = choose(&["mprotect-flip".into(), "dontneed-hop".into()], true, None).unwrap();
        let names: Vec<_> = chosen.iter().map(|chosen| chosen.workload.name.as_str()).collect();
        assert_eq!(names, ["dontneed-hop", "mprotect-flip"]);
        assert_eq!(choose(&["no".into()], true, None).unwrap_err().status(), 2);
    }
}
