//! A grace period began without a barrier of its own, as it asks nobody for anything. What its caller had stored still
//! waited while it read that every CPU was in the kernel. It ended at once, and a CPU that had returned to user mode
//! meanwhile had missed the store.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::barrier::DELAYED_CROSSING;

pub(super) const BUG: PastBug = PastBug {
    name: "grace-period-without-barrier",
    source: "coherence.md 4.5, step 3; ours could",
    story: "A grace period began without a barrier of its own, as it asks nobody for anything. What its \
            caller had stored still waited while it read that every CPU was in the kernel. It ended at \
            once, and a CPU that had returned to user mode meanwhile had missed the store.",
    mistake: Mistake::Coherence(coherence::Fault::NoFenceGracePeriod),
    scenario: &DELAYED_CROSSING,
    breaks: "B",
};
