//! Two CPUs asked each other to flush, and each waited for the other with its interrupts off. Neither took the interrupt
//! that the other had sent. Both waited for ever.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_AND_ONE_READS;

pub(super) const BUG: PastBug = PastBug {
    name: "waits-with-interrupts-off",
    source: "coherence.md 1.6, the deadlock rule; issue 4",
    story: "Two CPUs asked each other to flush, and each waited for the other with its interrupts off. Neither \
            took the interrupt that the other had sent. Both waited for ever.",
    mistake: Mistake::Coherence(coherence::Fault::WaitsWithInterruptsOff),
    scenario: &TWO_DROP_AND_ONE_READS,
    breaks: "nobody can go on",
};
