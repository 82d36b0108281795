//! A barrier for cores leaves out CPUs that do not run the process. One of them came back to it from a kernel task, with
//! the same tables loaded and hence no instruction that serialises on the way. It executed what it had fetched before it
//! left.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::cores::CODE_AND_COMING_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "core-not-serialised-when-joining",
    source: "coherence.md 4.6, S5: 70216e18e519 (2018)",
    story: "A barrier for cores leaves out CPUs that do not run the process. One of them came back to it \
            from a kernel task, with the same tables loaded and hence no instruction that serialises on \
            the way. It executed what it had fetched before it left.",
    mistake: Mistake::Coherence(coherence::Fault::NoSerialiseJoining),
    scenario: &CODE_AND_COMING_BACK,
    breaks: "B",
};
