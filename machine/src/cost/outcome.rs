//! What came of a simulation.

use coherence::Mode;

use super::parameters::Time;

/// What is counted while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) timed_operations: u64,
    pub(super) time: Time,
    pub(super) sent: u64,
    pub(super) sent_in_operations: u64,
    pub(super) received: [u64; Mode::ALL.len()],
    pub(super) kept_as_one: u64,
    pub(super) merged: u64,
    pub(super) broadcasts: u64,
    pub(super) put_off: u64,
    pub(super) stolen: Time,
    pub(super) waits: Vec<Time>,
}

/// The figures of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Operations that were finished.
    pub operations: u64,
    /// Interrupts that were sent.
    pub sent: u64,
    /// Interrupts that were taken, by what they interrupted: user code, the kernel, an idle CPU.
    pub received: [u64; 3],
    /// Interrupts that found one of their kind waiting at the same CPU, and became one with it.
    pub kept_as_one: u64,
    /// Requests that needed no interrupt, as one was on its way.
    pub merged: u64,
    /// Broadcasts.
    pub broadcasts: u64,
    /// Flushes that were put off until the CPUs' ticks.
    pub put_off: u64,
    /// Interrupts for each operation.
    pub interrupts_per_operation: f64,
    /// From the end of one operation of a thread to the end of its next, on average.
    pub nanoseconds_per_operation: f64,
    /// How long flushes and barriers took their callers: half of them at most.
    pub wait_median: f64,
    /// All but one in a hundred at most.
    pub wait_most: f64,
    /// The part of all CPUs' time that handlers took.
    pub interrupted_share: f64,
}

impl Tally {
    pub(super) fn outcome(mut self, cpus: usize, end: Time) -> Outcome {
        self.waits.sort_unstable();
        let quantile = |share: f64| {
            let place = (self.waits.len() as f64 * share) as usize;
            self.waits
                .get(place.min(self.waits.len().saturating_sub(1)))
                .map_or(0.0, |wait| *wait as f64 / 1000.0)
        };
        let each = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        Outcome {
            operations: self.operations,
            sent: self.sent,
            received: self.received,
            kept_as_one: self.kept_as_one,
            merged: self.merged,
            broadcasts: self.broadcasts,
            put_off: self.put_off,
            interrupts_per_operation: each(self.sent_in_operations, self.operations),
            nanoseconds_per_operation: each(self.time, self.timed_operations) / 1000.0,
            wait_median: quantile(0.5),
            wait_most: quantile(0.99),
            interrupted_share: each(self.stolen, end * cpus as u64),
        }
    }
}
