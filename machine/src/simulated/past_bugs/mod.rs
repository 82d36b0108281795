//! Bugs that kernels had, each of which the check must find. One file for each.

use super::past_bug::PastBug;

macro_rules! past_bugs {
    ($($module:ident,)+) => {
        $(mod $module;)+

        /// All of them.
        pub(super) const ALL: &[&PastBug] = &[$(&$module::BUG),+];
    };
}

past_bugs! {
    borrower_not_told_of_freed_tables,
    copy_mapped_before_flush,
    drop_flushed_after_unlock,
    early_acknowledgement,
    fork_flushed_after_unlock,
    frames_freed_before_flush,
    freed_tables_not_declared,
    gap_rule_forgotten,
    generation_advanced_by_plain_store,
    generation_read_before_the_set_is_joined,
    generations_not_compared,
    sets_read_in_the_wrong_order,
    tables_freed_before_flush,
    zeroes_not_flushed,
}
