//! The scenarios, one file for each family.

pub(super) mod address;
pub(super) mod copy;
pub(super) mod lazy;
pub(super) mod protect;
pub(super) mod remove;
pub(super) mod several;
pub(super) mod switch;
pub(super) mod tables;

use super::scenario::Scenario;

/// All of them.
pub(super) const ALL: &[&Scenario] = &[
    &remove::MUNMAP_AND_READER,
    &remove::MUNMAP_AND_WRITER,
    &remove::DONTNEED_AND_WRITER,
    &remove::MMAP_OVER_AND_READER,
    &several::TWO_DROP_THE_SAME_PAGE,
    &several::TWO_DROP_AND_ONE_READS,
    &several::TWO_DROP_AND_ONE_COMES_BACK,
    &protect::MPROTECT_AND_WRITER,
    &protect::MPROTECT_THERE_AND_BACK,
    &copy::FORK_AND_WRITER,
    &copy::FORK_AND_TWO_WRITERS,
    &copy::COPY_AND_READER,
    &copy::COPY_AND_TWO_READERS,
    &copy::FIRST_STORE_AND_TWO_READERS,
    &copy::TWO_COPY_THE_SAME_PAGE,
    &address::MREMAP_AND_WRITER,
    &address::MREMAP_AND_EVICTION,
    &switch::ENTER_AND_MUNMAP,
    &switch::ENTER_WITH_A_TAG_AND_MUNMAP,
    &switch::SWITCH_BACK_AND_FORTH,
    &switch::ENTER_FROM_BORROWING,
    &switch::THREE_SPACES_ON_TWO_TAGS,
    &switch::FLUSH_OF_ANOTHER_SPACE,
    &switch::LEAVE_AND_MUNMAP,
    &lazy::BORROW_AND_MUNMAP,
    &lazy::COME_BACK_AND_MUNMAP,
    &tables::BORROWER_WALKS_FREED_TABLES,
    &tables::USER_WALKS_FREED_TABLES,
    &tables::COMING_BACK_WHILE_TABLES_ARE_FREED,
    &tables::SWITCHING_AWAY_WHILE_TABLES_ARE_FREED,
];

/// The scenario of that name.
pub(super) fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// A page of every scenario, and its neighbour.
pub(super) const PAGE: u64 = 0x40_0000;
pub(super) const NEXT: u64 = PAGE + memory::PAGE_SIZE;
