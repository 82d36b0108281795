//! The scenarios, one file for each family.

pub(super) mod address;
pub(super) mod barrier;
pub(super) mod batch;
pub(super) mod broadcast;
pub(super) mod clean_entries;
pub(super) mod copy;
pub(super) mod cores;
pub(super) mod devices;
pub(super) mod eviction;
pub(super) mod gathers;
pub(super) mod guarded_objects;
pub(super) mod holes;
pub(super) mod large_pages;
pub(super) mod lazy;
pub(super) mod merge;
pub(super) mod migration;
pub(super) mod preemption;
pub(super) mod protect;
pub(super) mod reclaim;
pub(super) mod registration;
pub(super) mod remove;
pub(super) mod rounds;
pub(super) mod sequences;
pub(super) mod several;
pub(super) mod stepwise_moves;
pub(super) mod switch;
pub(super) mod table_moves;
pub(super) mod tables;
pub(super) mod unmaskable;
pub(super) mod userfault;

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
    &clean_entries::UNFLUSHED_MPROTECT_AND_WRITER,
    &clean_entries::UNFLUSHED_MPROTECT_THERE_AND_BACK,
    &clean_entries::UNFLUSHED_MPROTECT_AND_WRITEBACK,
    &clean_entries::UNFLUSHED_MPROTECT_OF_A_DIRTY_NEIGHBOUR,
    &copy::FORK_AND_WRITER,
    &copy::FORK_AND_TWO_WRITERS,
    &copy::COPY_AND_READER,
    &copy::COPY_AND_TWO_READERS,
    &copy::FIRST_STORE_AND_TWO_READERS,
    &copy::TWO_COPY_THE_SAME_PAGE,
    &address::MREMAP_AND_WRITER,
    &address::MREMAP_BESIDE_A_NEIGHBOUR,
    &address::MREMAP_AND_EVICTION,
    &address::MREMAP_AND_WRITEBACK,
    &address::MREMAP_WITHOUT_MEMORY,
    &stepwise_moves::STEPWISE_MOVE_AND_EVICTION,
    &stepwise_moves::STEPWISE_MOVE_AND_WRITEBACK,
    &stepwise_moves::STEPWISE_MOVE_AND_TRUNCATION,
    &table_moves::TABLE_MOVE_AND_WRITER,
    &table_moves::TABLE_MOVE_AND_EVICTION,
    &table_moves::TABLE_MOVE_AND_EVICTION_BEHIND_IT,
    &table_moves::TABLE_MOVE_AND_TRUNCATION,
    &table_moves::TABLE_MOVE_AND_RETRACTION,
    &table_moves::PROTECTED_TABLE_MOVE_AND_READER,
    &table_moves::BORROWER_WALKS_A_MOVED_TABLE,
    &large_pages::MUNMAP_OF_PART_AND_READER,
    &large_pages::SPLIT_AND_READER,
    &large_pages::MPROTECT_AND_WRITER,
    &large_pages::COLLAPSE_AND_WRITER,
    &large_pages::COLLAPSE_AND_BORROWER,
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
    &tables::MUNMAP_AND_EVICTION,
    &barrier::BARRIER_USER_CODE,
    &barrier::BARRIER_SWITCHING_OUT,
    &barrier::BARRIER_SWITCHING_IN,
    &barrier::BARRIER_EXIT,
    &barrier::BARRIER_KERNEL_TASK,
    &barrier::BARRIER_CROSSING,
    &barrier::UNCOUNTED_SWITCHING_IN,
    &barrier::UNCOUNTED_KERNEL_TASK,
    &barrier::UNCOUNTED_COMING_BACK,
    &barrier::GLOBAL_USER_CODE,
    &barrier::GLOBAL_SWITCHING_OUT,
    &barrier::GLOBAL_SWITCHING_IN,
    &barrier::GLOBAL_EXIT,
    &barrier::GLOBAL_KERNEL_TASK,
    &barrier::GLOBAL_CROSSING,
    &barrier::CORE_USER_CODE,
    &barrier::CORE_SWITCHING_OUT,
    &barrier::CORE_SWITCHING_IN,
    &barrier::CORE_EXIT,
    &barrier::CORE_KERNEL_TASK,
    &barrier::DELAYED_USER_CODE,
    &barrier::DELAYED_SWITCHING_OUT,
    &barrier::DELAYED_SWITCHING_IN,
    &barrier::DELAYED_KERNEL_TASK,
    &barrier::DELAYED_CROSSING,
    &registration::REGISTER_AND_GLOBAL_BARRIER,
    &registration::TWO_REGISTER,
    &registration::BETWEEN_REGISTERED_AND_OTHERS,
    &registration::A_CHILD_INHERITS,
    &cores::CODE_BESIDE_USER_CODE,
    &cores::CODE_AND_SYSTEM_CALL,
    &cores::CODE_AND_SWITCHING_IN,
    &cores::CODE_AND_COMING_BACK,
    &rounds::TWO_CALLERS,
    &rounds::A_STORM,
    &gathers::GATHERS_THAT_MEET,
    &gathers::GATHERS_THAT_NAME_NOTHING,
    &gathers::GATHERS_AND_FREED_TABLES,
    &unmaskable::NMI_AND_SWITCH,
    &unmaskable::NMI_AND_COMING_BACK,
    &unmaskable::NMI_AND_BORROWER,
    &unmaskable::NMI_AND_RECLAIM,
    &migration::MOVING_AND_MUNMAP,
    &migration::MOVING_AND_BARRIER,
    &migration::MOVING_AND_CODE,
    &broadcast::BROADCAST_AND_WRITER,
    &broadcast::BROADCAST_WHILE_ENTERING,
    &broadcast::BROADCAST_WHILE_BORROWING,
    &broadcast::BROADCAST_OF_FREED_TABLES,
    &broadcast::SHARED_TAG_PASSED_ON,
    &broadcast::HYPERCALL_WHILE_ENTERING,
    &broadcast::HYPERCALL_OF_FREED_TABLES,
    &broadcast::HYPERCALL_OR_INTERRUPT,
    &eviction::FORGETFUL_BORROWER,
    &eviction::FORGETFUL_WRITER,
    &preemption::DESCHEDULED_READER,
    &preemption::DESCHEDULED_WRITER,
    &preemption::DESCHEDULED_WHILE_ENTERING,
    &preemption::DESCHEDULED_WHILE_BORROWING,
    &preemption::DESCHEDULED_BORROWER,
    &devices::DEVICE_AND_MUNMAP,
    &devices::DEVICE_AND_MUNMAP_OF_ONE_PAGE,
    &devices::DEVICE_AND_FORK,
    &devices::DEVICE_ATTACHED_AND_MUNMAP,
    &sequences::SEQUENCE_AND_USER_CODE,
    &sequences::SEQUENCE_AND_TICK,
    &sequences::SEQUENCE_AND_COMING_BACK,
    &sequences::SEQUENCES_ON_ONE_CPU,
    &batch::RECLAIM_AND_READER,
    &batch::RECLAIM_AND_COMING_BACK,
    &batch::RECLAIM_AND_WRITER,
    &batch::RECLAIM_AND_MUNMAP,
    &batch::RECLAIM_AND_MREMAP,
    &batch::RECLAIM_AND_UNMAP_OF_TWO_TABLES,
    &batch::RECLAIM_AND_TWO_DROPS,
    &batch::RECLAIM_AND_PRIVATE_COPY,
    &batch::CLEAN_AND_WRITER,
    &batch::CLEAN_AND_MPROTECT,
    &batch::CLEAN_AND_MUNMAP,
    &batch::CLEAN_TWICE_AND_WRITER,
    &batch::TRUNCATE_AND_READER,
    &batch::TRUNCATE_AND_MUNMAP,
    &holes::HOLE_AND_READER,
    &holes::HOLE_AND_WRITER,
    &holes::HOLE_AND_FIRST_USE,
    &holes::HOLE_AND_MUNMAP,
    &holes::TWO_HOLES_AND_CALLS,
    &reclaim::RECLAIM_BESIDE_A_DEVICE,
    &reclaim::RECLAIM_OF_A_DESCHEDULED_READER,
    &reclaim::RECLAIM_AND_MUNMAP_BY_BROADCAST,
    &reclaim::RECLAIM_AND_MUNMAP_BY_HYPERCALL,
    &reclaim::RECLAIM_WHILE_ENTERING,
    &reclaim::RECLAIM_WHILE_ENTERING_A_SHARED_TAG,
    &merge::MERGE_AND_WRITER,
    &merge::MERGE_AND_TWO_WRITERS,
    &merge::MERGE_TWICE_AND_WRITER,
    &merge::MERGE_AND_READER,
    &merge::MERGE_AND_FORK,
    &merge::MERGE_AND_MUNMAP,
    &userfault::GUARD_AND_WRITER,
    &userfault::GUARD_AND_FORK,
    &userfault::GUARD_TWICE_AND_WRITER,
    &userfault::GUARD_AND_COPY,
    &userfault::UNGUARD_AND_CHILD,
    &userfault::GUARDED_PAGE_MOVES,
    &guarded_objects::GUARDED_PAGE_AND_HOLE,
    &guarded_objects::GUARDED_PAGE_AND_RECLAIM,
    &guarded_objects::GUARDED_PAGE_AND_CLEANING,
    &guarded_objects::GUARDED_PAGE_DROPPED,
    &guarded_objects::GUARDED_PAGE_AND_TRUNCATE,
    &guarded_objects::GUARD_OF_AN_ABSENT_PAGE_AND_WRITER,
    &guarded_objects::GUARD_BESIDE_RECLAIM,
    &guarded_objects::GUARD_OF_A_SHARED_PAGE_AND_FORK,
    &userfault::FAULT_AND_FILL,
    &userfault::FAULT_AND_UNWATCH,
    &userfault::FAULT_AND_MUNMAP,
    &userfault::FILL_AND_MMAP_OVER,
];

/// The scenario of that name.
pub(super) fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// A page of every scenario, and its neighbour.
pub(super) const PAGE: u64 = 0x40_0000;
pub(super) const NEXT: u64 = PAGE + memory::PAGE_SIZE;
