//! munmap unhooked tables, flushed and freed them, and kept off whoever holds the area lock. A kernel thread that looked for a page by
//! the reverse way holds none. It had found the table, and emptied an entry of what that table had become, for another address.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::MUNMAP_AND_EVICTION;

pub(super) const BUG: PastBug = PastBug {
    name: "tables-freed-under-a-reverse-walk",
    source: "coherence.md 7 rows 16 and 28 in kind: CVE-2020-29369, Linux 2ba99c5e0881, f268f6cf875f (2022)",
    story: "munmap unhooked tables, flushed and freed them, and kept off whoever holds the area lock. A kernel thread \
            that looked for a page by the reverse way holds none. It had found the table, and emptied an entry of \
            what that table had become, for another address.",
    mistake: Mistake::Memory(memory::Mistake::TablesTakenBesideReverseWalks),
    scenario: &MUNMAP_AND_EVICTION,
    breaks: "D1",
};
