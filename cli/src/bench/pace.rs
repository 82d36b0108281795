//! How long runs take: assumed at first, then as observed, so that the time left is told truly and the whole ends in time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::Step;
use crate::result::{Mode, System};

/// How long everything may take, preparation left out.
pub(super) const BUDGET: Duration = Duration::from_secs(14 * 60);
/// The same with `--quick`. Both leave room for building before and for the run that is under way at the end.
pub(super) const QUICK_BUDGET: Duration = Duration::from_secs(4 * 60 + 30);

/// What runs were seen to take.
#[derive(Debug, Default)]
pub(super) struct Pace {
    seen: BTreeMap<(usize, System, Mode), Duration>,
}

impl Pace {
    /// How long a run will take: as long as the longest of its kind did, else what the workloads take on a host of two cores.
    pub(super) fn estimate(&self, step: &Step) -> Duration {
        let assumed = match (step.system, step.mode) {
            (System::Ceasefire, Mode::Deterministic) => Duration::from_millis(1500),
            (System::Ceasefire, _) => Duration::from_millis(1200),
            (System::Linux, Mode::Deterministic) => Duration::from_secs(9),
            (System::Linux, _) => Duration::from_secs(5),
        };
        self.seen.get(&(step.subject, step.system, step.mode)).copied().unwrap_or(assumed)
    }

    /// The same for runs one after the other.
    pub(super) fn estimate_all<'a>(&self, steps: impl IntoIterator<Item = &'a Step>) -> Duration {
        steps.into_iter().map(|step| self.estimate(step)).sum()
    }

    /// A run took so long.
    pub(super) fn learn(&mut self, step: &Step, took: Duration) {
        let longest = self.seen.entry((step.subject, step.system, step.mode)).or_default();
        *longest = took.max(*longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_replaces_what_was_assumed() {
        let step = |subject, system, mode| Step {
            id: 0,
            subject,
            system,
            without: Vec::new(),
            mode,
            cpus: 4,
            pair: None,
        };
        let (ours, linux) = (step(0, System::Ceasefire, Mode::Single), step(0, System::Linux, Mode::Single));
        let mut pace = Pace::default();
        assert!(pace.estimate(&linux) > pace.estimate(&ours));
        for seconds in [7, 3] {
            pace.learn(&ours, Duration::from_secs(seconds));
        }
        assert_eq!(pace.estimate(&ours), Duration::from_secs(7));
        assert!(pace.estimate(&step(1, System::Ceasefire, Mode::Single)) < Duration::from_secs(7));
        assert_eq!(pace.estimate_all([&ours, &ours]), Duration::from_secs(14));
    }
}
