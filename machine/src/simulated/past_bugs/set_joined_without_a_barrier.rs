//! A CPU that switched to a space marked itself in its set, by a store, and went on to read. The store waited in its
//! buffer. An initiator changed the tables, found the set empty, and told nobody, while the CPU had read the state before
//! the change.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::ENTER_WITH_A_TAG_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "set-joined-without-a-barrier",
    source: "coherence.md 7 row 1: CVE-2016-2069, Linux 71b3c126e611; row 36: CVE-2025-40174",
    story: "A CPU that switched to a space marked itself in its set, by a store, and went on to read. The store \
            waited in its buffer. An initiator changed the tables, found the set empty, and told nobody, while \
            the CPU had read the state before the change.",
    mistake: Mistake::Coherence(coherence::Fault::PlainJoin),
    scenario: &ENTER_WITH_A_TAG_AND_MUNMAP,
    breaks: "D1",
};
