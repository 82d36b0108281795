//! A store asked whether its page was guarded: not yet. Then it looked at the entry again, which a monitor had guarded meanwhile, and took
//! it as the one to copy. The copy was writable, and the monitor was never told. (Found by this check in our own code, when it was new.)

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::userfault::GUARD_AND_COPY;

pub(super) const BUG: PastBug = PastBug {
    name: "guard-lost-in-copy",
    source: "this project, found by guard-and-copy; coherence.md 5.6",
    story: "A store asked whether its page was guarded: not yet. Then it looked at the entry again, which a monitor had \
            guarded meanwhile, and took it as the one to copy. The copy was writable, and the monitor was never told.",
    mistake: Mistake::Memory(memory::Mistake::GuardLostInCopy),
    scenario: &GUARD_AND_COPY,
    breaks: "D3",
};
