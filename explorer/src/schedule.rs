//! A schedule: where a run deviated from what a bored scheduler does, and by which offer.

use std::fmt;
use std::str::FromStr;

use crate::choice::Priced;
use crate::{Digest, Strategy};

/// The deviations of one run, in order. Its text is short enough to be typed: `12.1-40.3` chooses offer 1 at the 12th decision and
/// offer 3 at the 40th; `-` alone is the run without deviations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    deviations: Vec<(usize, usize)>,
}

impl Schedule {
    /// Notes a deviation at a later decision than the last one.
    pub(crate) fn deviate(&mut self, decision: usize, offer: usize) {
        self.deviations.push((decision, offer));
    }

    /// How many deviations there are.
    pub fn len(&self) -> usize {
        self.deviations.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.deviations.is_empty()
    }

    /// The same schedule without one of its deviations.
    #[must_use]
    pub fn without(&self, index: usize) -> Self {
        let mut deviations = self.deviations.clone();
        deviations.remove(index);
        Schedule { deviations }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(formatter, "-");
        }
        let words: Vec<_> =
            self.deviations.iter().map(|(decision, offer)| format!("{decision}.{offer}")).collect();
        write!(formatter, "{}", words.join("-"))
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse().map_err(|_| format!("'{text}' is no schedule"));
        let words = text.split('-').filter(|word| !word.is_empty());
        let deviations: Result<Vec<(usize, usize)>, String> = words
            .map(|word| {
                let (decision, offer) = word.split_once('.').ok_or(format!("'{text}' is no schedule"))?;
                Ok((number(decision)?, number(offer)?))
            })
            .collect();
        let deviations = deviations?;
        if deviations.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("'{text}' is no schedule: its decisions are not in order"));
        }
        Ok(Schedule { deviations })
    }
}

/// Makes the choices of a schedule, once.
#[derive(Debug)]
pub struct Replay {
    schedule: Schedule,
    decision: usize,
    next: usize,
    begun: bool,
}

impl Replay {
    /// For one run.
    pub fn new(schedule: Schedule) -> Self {
        Replay { schedule, decision: 0, next: 0, begun: false }
    }
}

impl Strategy for Replay {
    fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    fn choose(&mut self, offers: &[Priced], _state: &dyn Fn() -> Digest) -> usize {
        self.decision += 1;
        match self.schedule.deviations.get(self.next) {
            Some((decision, offer)) if *decision == self.decision => {
                self.next += 1;
                // A schedule of another program may name what is not offered here: then the run simply goes on.
                if *offer < offers.len() { *offer } else { 0 }
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_schedule() {
        for text in ["-", "3.1", "12.1-40.3-41.2"] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        for text in ["a", "1", "1.x", "5.1-5.2", "7.1-3.2"] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }
}
