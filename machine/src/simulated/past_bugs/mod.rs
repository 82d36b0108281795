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
    announced_registration_accepted,
    anonymous_pages_moved_without_flush,
    another_space_flushed,
    borrower_mark_kept,
    borrower_not_told_of_freed_tables,
    borrowers_left_before_the_flush,
    calling_core_left_out,
    copy_mapped_before_flush,
    core_barrier_was_a_fence,
    core_not_serialised_when_joining,
    dirty_page_moved_and_cleaned,
    drop_flushed_after_unlock,
    early_acknowledgement,
    flush_moves_to_another_cpu,
    fork_flushed_after_unlock,
    frames_freed_before_flush,
    freed_tables_not_declared,
    gap_rule_forgotten,
    gather_withdrawn_before_its_flush,
    generation_advanced_by_plain_store,
    generation_read_before_coming_back,
    generation_read_before_the_set_is_joined,
    generations_not_compared,
    grace_period_without_barrier,
    kernel_task_without_barrier,
    largest_stride_wins,
    move_flushed_after_unlock,
    move_flushed_where_it_went,
    move_given_up_in_the_middle,
    moved_table_flushed_as_one_page,
    moved_table_not_flushed,
    nested_gather_forgets_its_tables,
    nested_gather_not_flushed,
    newer_request_claimed,
    nmi_before_a_borrower_has_flushed,
    nmi_in_the_middle_of_a_switch,
    page_missed_while_it_moves,
    registrar_not_told,
    registration_not_followed,
    request_lost_in_a_full_queue,
    request_without_generation,
    return_from_interrupt_trusted_to_serialise,
    return_to_user_mode_without_barrier,
    round_that_began_before,
    running_threads_not_told_of_registration,
    set_joined_without_a_barrier,
    sets_left_before_the_load,
    sets_read_in_the_wrong_order,
    storm_of_barriers,
    table_move_flushed_after_unlock,
    table_moved_beside_a_reverse_walk,
    table_retracted_while_it_moves,
    tables_freed_before_flush,
    tag_entered_without_comparison,
    tag_of_another_space_kept,
    users_left_before_borrowers_are_joined,
    waits_with_interrupts_off,
    zeroes_not_flushed,
}
