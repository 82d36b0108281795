//! A hole was punched in a file where a page had been taken out and not flushed. Some CPUs read zeroes, and others the old page.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_HOLE;

pub(super) const BUG: PastBug = PastBug {
    name: "hole-trusts-what-waits",
    source: "performance.md 3.4",
    story: "A hole was punched in a file where a page had been taken out and not flushed. Some CPUs read zeroes, \
            and others the old page.",
    mistake: Mistake::Coherence(coherence::Fault::DeferredNotMet),
    scenario: &PUT_BY_AND_HOLE,
    breaks: "D3",
};
