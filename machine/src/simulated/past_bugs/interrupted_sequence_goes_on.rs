//! A barrier for restartable sequences left out the CPUs that were in the kernel, as a barrier for memory may. One of them
//! was there for a timer interrupt, in the middle of a sequence. It went back and committed what it had read before the
//! barrier.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::sequences::SEQUENCE_AND_TICK;

pub(super) const BUG: PastBug = PastBug {
    name: "interrupted-sequence-goes-on",
    source: "row M6's neighbour: 2ecedd756908 (2020); ours could",
    story: "A barrier for restartable sequences left out the CPUs that were in the kernel, as a barrier \
            for memory may. One of them was there for a timer interrupt, in the middle of a sequence. It \
            went back and committed what it had read before the barrier.",
    mistake: Mistake::Coherence(coherence::Fault::SequencesInKernelSpared),
    scenario: &SEQUENCE_AND_TICK,
    breaks: "B",
};
