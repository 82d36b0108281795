//! A guarded page of an object was taken out of its mappings, for a hole or because memory was short. The guard was in the entry, and
//! went with it. The next store brought the page back without a guard, and the monitor was never told.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::guarded_objects::GUARDED_PAGE_AND_HOLE;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-goes-with-the-page",
    source: "coherence.md 5.6, on shared memory; what the markers of Linux b1f9e876862d are for",
    story: "A guarded page of an object was taken out of its mappings, for a hole or because memory \
            was short. The guard was in the entry, and went with it. The next store brought the page \
            back without a guard, and the monitor was never told.",
    mistake: Mistake::Memory(memory::Mistake::GuardGoesWithThePage),
    scenario: &GUARDED_PAGE_AND_HOLE,
    breaks: "D3",
};
