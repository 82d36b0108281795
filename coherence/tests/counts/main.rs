//! Exact counts: who is interrupted, what each CPU executes, and what the ledger says about it, with and without each mechanism.
#![cfg(not(any(loom, shuttle)))]

mod barriers;
mod batch;
mod clean;
mod epochs;
mod interrupts;
mod machine;
mod modes;
mod remote;
mod sharers;
mod unused;

use std::panic::{AssertUnwindSafe, catch_unwind};

use coherence::{
    Cause, CpuId, CpuSet, Event, Executed, Flush, Mode, Outcome, Reason, Row, Switched, Switches, Translation,
};
use machine::{Did, Machine, PAGE};

const PRESENT: Translation = Translation {
    present: true,
    frame: 1,
    writable: true,
    user: true,
    executable: false,
    accessed: true,
    unused: false,
    dirty: true,
    global: false,
    huge: false,
    other: 0,
    software: 0,
};
const READ_ONLY: Translation = Translation { writable: false, ..PRESENT };
const ABSENT: Translation = Translation { present: false, ..PRESENT };

fn cpus(numbers: &[usize]) -> CpuSet {
    numbers.iter().filter_map(|number| CpuId::new(*number)).collect()
}

#[test]
fn each_cpu_that_runs_the_space_is_interrupted_once() {
    for others in 0..7 {
        let machine = Machine::new(1, Switches::DEFAULT);
        let space = machine.space(0);
        (0..=others).for_each(|cpu| machine.run(cpu, &space));
        machine.log();
        machine.flush(0, &space, Flush::page(5 * PAGE, PAGE));
        assert_eq!(machine.sent(), others as u64);
        assert_eq!(machine.total(Row::Sent(Cause::Munmap)), others as u64);
        assert_eq!(machine.total(Row::Received(Mode::User)), others as u64);
        assert_eq!(machine.total(Row::Handled(Outcome::Ranged)), others as u64);
        assert_eq!(machine.total(Row::Skipped(Reason::NoOtherCpu)), u64::from(others == 0));
        let mut log = machine.log();
        log.sort_by_key(|(cpu, _)| *cpu);
        assert_eq!(log, (0..=others).map(|cpu| (cpu, Did::Page(5 * PAGE))).collect::<Vec<_>>());
        (0..=others).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn lazy_cpus_are_left_alone_and_find_out() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    (1..4).for_each(|cpu| machine.idle(cpu));
    assert_eq!((space.active(), space.lazy()), (cpus(&[0]), cpus(&[1, 2, 3])));
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!(machine.sent(), 0);
    assert_eq!(machine.total(Row::Skipped(Reason::LazyCpu)), 3);
    machine.log();
    machine.run(1, &space);
    assert_eq!(machine.log(), [(1, Did::All)]);
    machine.idle(1);
    machine.run(1, &space);
    assert_eq!(machine.log(), [], "nothing was missed meanwhile");
    assert_eq!(machine.total(Row::Executed(Executed::LazyFull)), 1);
    assert_eq!(machine.total(Row::Switched(Switched::CameBack)), 2);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn freed_tables_make_lazy_cpus_let_go() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(7);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    (1..3).for_each(|cpu| machine.idle(cpu));
    machine.log();
    machine.flush(0, &space, Flush::page(0, PAGE).freeing_tables());
    assert_eq!(machine.sent(), 2);
    assert_eq!(machine.total(Row::Received(Mode::Idle)), 2);
    assert_eq!(machine.total(Row::Handled(Outcome::LeftLazy)), 2);
    assert_eq!((space.active(), space.lazy()), (cpus(&[0]), CpuSet::EMPTY));
    assert_eq!(machine.log(), [(1, Did::LoadKernel), (2, Did::LoadKernel), (0, Did::Page(0))]);
    machine.flush(0, &space, Flush::page(0, PAGE).freeing_tables());
    assert_eq!(machine.sent(), 2, "they have let go already");
    // The kernel still believes that it has the space loaded; coming back loads it anew.
    machine.run(1, &space);
    assert_eq!(machine.log(), [(0, Did::Page(0)), (1, Did::Load { root: 7, keep: false })]);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn cpus_that_switched_away_are_forgotten() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let (one, two) = (machine.space(1), machine.space(2));
    (0..3).for_each(|cpu| machine.run(cpu, &one));
    machine.run(1, &two);
    machine.idle(2);
    machine.run(2, &two);
    machine.flush(0, &one, Flush::all().freeing_tables());
    assert_eq!(machine.sent(), 0);
    assert_eq!((one.active(), one.lazy(), two.active()), (cpus(&[0]), CpuSet::EMPTY, cpus(&[1, 2])));
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn threads_of_one_space_follow_each_other_for_nothing() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.log();
    machine.run(0, &space);
    assert_eq!(machine.log(), []);
    assert_eq!(machine.total(Row::Switched(Switched::Kept)), 1);
    machine.leave(0);
}

#[test]
fn a_tag_slot_is_kept_unless_something_was_missed() {
    let machine = Machine::new(4, Switches::DEFAULT);
    let (one, two) = (machine.space(1), machine.space(2));
    machine.run(0, &one);
    machine.run(0, &two);
    machine.log();
    machine.run(0, &one);
    assert_eq!(machine.log(), [(0, Did::Load { root: 1, keep: true })]);
    machine.run(0, &two);
    machine.flush(1, &one, Flush::page(0, PAGE));
    machine.log();
    machine.run(0, &one);
    assert_eq!(machine.log(), [(0, Did::Load { root: 1, keep: false })]);
    assert_eq!(machine.sent(), 0);
    machine.leave(0);
}

#[test]
fn a_kernel_path_may_flush_a_space_that_it_borrows() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.idle(0);
    machine.log();
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!(machine.log(), [(0, Did::LoadKernel)]);
    assert_eq!((space.active(), space.lazy()), (CpuSet::EMPTY, CpuSet::EMPTY));
    machine.leave(0);
}

#[test]
fn large_flushes_drop_everything() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.log();
    machine.flush(0, &space, Flush::range(0, 33 * PAGE, PAGE));
    assert_eq!(machine.log().len(), 33);
    machine.flush(0, &space, Flush::range(0, 34 * PAGE, PAGE));
    assert_eq!(machine.log(), [(0, Did::All)]);
    machine.coherence.set_ceiling(1);
    machine.flush(0, &space, Flush::range(0, 2 * PAGE, PAGE));
    assert_eq!(machine.log(), [(0, Did::All)]);
    assert_eq!(machine.total(Row::Event(Event::OverCeiling)), 2);
    assert_eq!(machine.total(Row::Executed(Executed::LocalPages)), 33);
    machine.leave(0);
}

#[test]
fn a_gather_flushes_once_and_only_what_needs_it() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    let mut gather = machine.coherence.gather(&space, Cause::Mprotect, vec!["a frame"]);
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    gather.change(PAGE, PAGE, &READ_ONLY, &PRESENT);
    gather.change(2 * PAGE, PAGE, &ABSENT, &PRESENT);
    gather.change(3 * PAGE, PAGE, &PRESENT, &READ_ONLY);
    assert_eq!(machine.sent(), 0);
    assert_eq!(gather.outstanding(), Some(Flush::range(0, 4 * PAGE, PAGE)));
    assert_eq!(gather.finish().into_inner(), ["a frame"]);
    assert_eq!(machine.sent(), 1);
    assert_eq!(machine.log().len(), 8);
    assert_eq!(machine.total(Row::Skipped(Reason::Promotion)), 1);
    assert_eq!(machine.total(Row::Skipped(Reason::NotPresentBefore)), 1);

    let mut gather = machine.coherence.gather(&space, Cause::Mprotect, ());
    gather.change(0, PAGE, &READ_ONLY, &PRESENT);
    gather.finish().into_inner();
    assert_eq!(machine.sent(), 1);
    assert_eq!(machine.log(), []);
    assert_eq!(machine.total(Row::Skipped(Reason::NothingToFlush)), 1);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_gather_that_is_dropped_or_emptied_flushes_before_its_list_is_gone() {
    struct Frame<'a>(&'a Machine);
    impl Drop for Frame<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.log(), [(0, Did::Page(0))], "a frame was freed before the flush");
        }
    }
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.log();
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, Some(Frame(&machine)));
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    drop(gather);

    let mut gather = machine.coherence.gather(&space, Cause::Munmap, Some(Frame(&machine)));
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    drop(gather.flush().into_inner());
    assert!(gather.finish().into_inner().is_none());
    assert_eq!(machine.log(), [], "nothing was left to flush");
    machine.leave(0);
}

#[test]
fn nested_gathers_flush_everything() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.log();
    let first = machine.coherence.gather(&space, Cause::Dontneed, ());
    let second = machine.coherence.gather(&space, Cause::Dontneed, ());
    second.finish().into_inner();
    assert_eq!(machine.log(), [(0, Did::All)]);
    first.finish().into_inner();
    assert_eq!(machine.log(), [], "the other one is over");
    assert_eq!(machine.total(Row::Event(Event::NestedGather)), 1);
    assert_eq!(machine.total(Row::Event(Event::Gather)), 2);
    machine.leave(0);
}

#[test]
fn a_nested_gather_flushes_what_it_is_about_and_leaves_lazy_cpus_alone() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(2);
    machine.log();
    let first = machine.coherence.gather(&space, Cause::Dontneed, ());
    let mut second =
        machine.coherence.gather(&space, Cause::Dontneed, ()).about(Flush::range(0, 2 * PAGE, PAGE));
    second.change(0, PAGE, &PRESENT, &ABSENT);
    second.finish().into_inner();
    let pages = [Did::Page(0), Did::Page(PAGE)];
    assert_eq!(machine.log(), [(1, pages[0]), (1, pages[1]), (0, pages[0]), (0, pages[1])]);
    first.finish().into_inner();
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_gather_under_a_lock_meets_nobody() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    machine.log();
    let announced = machine.coherence.gather(&space, Cause::Dontneed, ());
    let mut fault = machine.coherence.gather_under_lock(&space, Cause::CopyOnWrite, ());
    fault.change(0, PAGE, &READ_ONLY, &PRESENT);
    fault.finish().into_inner();
    let fault = machine.coherence.gather_under_lock(&space, Cause::CopyOnWrite, ());
    announced.finish().into_inner();
    fault.finish().into_inner();
    assert_eq!(machine.log(), []);
    assert_eq!(machine.total(Row::Event(Event::NestedGather)), 0);
    machine.leave(0);
}

/// What a fixed little history costs: a promotion, a removal of two pages in one operation, while one CPU runs and one is lazy.
fn history(switches: Switches) -> (u64, Vec<Did>, Vec<Did>) {
    let machine = Machine::new(1, switches);
    let space = machine.space(1);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(2);
    machine.log();
    let mut gather = machine.coherence.gather(&space, Cause::Mprotect, ());
    gather.change(0, PAGE, &READ_ONLY, &PRESENT);
    gather.finish().into_inner();
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    gather.change(PAGE, PAGE, &PRESENT, &ABSENT);
    gather.finish().into_inner();
    machine.run(2, &space);
    let log = machine.log();
    let of = |cpu| log.iter().filter(|(by, _)| *by == cpu).map(|(_, did)| *did).collect();
    let result = (machine.sent(), of(1), of(2));
    (0..3).for_each(|cpu| machine.leave(cpu));
    result
}

#[test]
fn each_mechanism_changes_what_it_should() {
    use Did::{All, Load, LoadKernel, Page};
    let pages = vec![Page(0), Page(PAGE)];
    let reload = vec![LoadKernel, Load { root: 1, keep: false }];
    let without = |name| history(Switches::DEFAULT.without(name).expect("it is a name"));
    assert_eq!(without(""), (1, pages.clone(), vec![All]));
    // The lazy CPU is interrupted by the first request and lets go.
    assert_eq!(without("lazy"), (2, pages.clone(), reload.clone()));
    assert_eq!(without("generations"), (1, vec![All], vec![All]));
    assert_eq!(without("ranged"), (1, vec![All], vec![All]));
    assert_eq!(without("promotion"), (2, vec![Page(0), Page(0), Page(PAGE)], vec![All]));
    assert_eq!(without("gather"), (2, pages, vec![All]));
    assert_eq!(without("vanilla"), (4, vec![All, All, All], reload));
}

#[test]
fn without_generations_coming_back_always_flushes() {
    let machine = Machine::new(4, Switches::DEFAULT.without("generations").expect("it is a name"));
    let (one, two) = (machine.space(1), machine.space(2));
    machine.run(0, &one);
    machine.idle(0);
    machine.log();
    machine.run(0, &one);
    assert_eq!(machine.log(), [(0, Did::All)]);
    machine.run(0, &two);
    machine.run(0, &one);
    assert_eq!(machine.log().last(), Some(&(0, Did::Load { root: 1, keep: false })));
    machine.leave(0);
}

#[test]
fn a_suppressed_cause_is_left_out_and_counted() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    machine.coherence.suppress(Some(Cause::Munmap));
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!((machine.log().len(), machine.sent()), (0, 0));
    assert_eq!(machine.total(Row::Event(Event::Suppressed)), 1);
    machine.coherence.suppress([Cause::Fork, Cause::Mprotect]);
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!((machine.log().len(), machine.sent()), (2, 1), "others are not");
    machine.coherence.suppress([Cause::Fork, Cause::Munmap]);
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!((machine.log().len(), machine.sent()), (0, 1), "one of several is");
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_kernel_that_forgets_what_is_loaded_is_told() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let (one, two) = (machine.space(1), machine.space(2));
    machine.run(0, &one);
    let mistake = AssertUnwindSafe(|| machine.activate_forgetting(&two));
    let panic = catch_unwind(mistake).expect_err("the mistake is noticed");
    let message = panic.downcast::<String>().expect("it is a message");
    assert!(message.contains("its kernel does not know of"), "{message}");
    machine.leave(0);
}

#[test]
fn operations_that_flushed_on_the_way_had_something_to_flush() {
    let machine = Machine::new(1, Switches::DEFAULT.without("gather").expect("it is a name"));
    let space = machine.space(1);
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    gather.finish().into_inner();
    assert_eq!(machine.total(Row::Requested(Cause::Munmap)), 1);
    assert_eq!(machine.total(Row::Event(Event::CleanFlush)), 0, "it was no write taken from a clean entry");
    machine.coherence.set_switches(Switches::DEFAULT);
    assert_eq!(machine.coherence.switches(), Switches::DEFAULT);
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.change(0, PAGE, &PRESENT, &ABSENT);
    gather.flush().into_inner();
    gather.finish().into_inner();
    assert_eq!(machine.total(Row::Requested(Cause::Munmap)), 2);
    assert_eq!(machine.total(Row::Skipped(Reason::NothingToFlush)), 0);
}

#[test]
fn a_slot_that_is_not_the_first_is_the_one_that_catches_up() {
    let machine = Machine::new(4, Switches::DEFAULT);
    let (one, two) = (machine.space(1), machine.space(2));
    machine.run(0, &one);
    machine.run(0, &two);
    machine.flush(1, &two, Flush::page(0, PAGE));
    machine.log();
    machine.run(0, &one);
    machine.run(0, &two);
    let kept = |root| (0, Did::Load { root, keep: true });
    assert_eq!(machine.log(), [kept(1), kept(2)]);
    machine.leave(0);
}

#[test]
fn who_enters_a_space_that_has_changed_has_missed_nothing_from_then_on() {
    let machine = Machine::new(4, Switches::DEFAULT);
    let space = machine.space(1);
    (0..3).for_each(|page| {
        machine.flush(1, &space, Flush::page(page * PAGE, PAGE));
    });
    machine.run(0, &space);
    machine.log();
    machine.flush(1, &space, Flush::page(0, PAGE));
    assert_eq!(machine.log(), [(0, Did::Page(0))]);
    machine.leave(0);
}

#[test]
fn who_has_let_go_in_a_handler_does_so_once() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(1);
    machine.idle(1);
    assert_eq!(machine.total(Row::Switched(Switched::WentLazy)), 1);
    machine.flush(0, &space, Flush::all().freeing_tables());
    machine.log();
    machine.idle(1);
    assert_eq!(space.lazy(), CpuSet::EMPTY);
    machine.leave(1);
    assert_eq!(machine.log(), []);
    assert_eq!(machine.total(Row::Switched(Switched::Left)), 1);
    machine.idle(0);
    machine.flush(0, &space, Flush::all().freeing_tables());
    assert_eq!(machine.sent(), 1, "nobody but the initiator borrows it");
    assert_eq!(machine.total(Row::Skipped(Reason::LazyCpu)), 0);
    machine.leave(0);
}

#[test]
fn who_has_let_go_in_a_handler_joins_the_same_space_again() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(1);
    machine.flush(0, &space, Flush::all().freeing_tables());
    machine.run(1, &space);
    assert!(
        space.active().contains(CpuId::new(1).unwrap()),
        "its kernel believed that it was leaving that space"
    );
    machine.flush(0, &space, Flush::all());
    assert_eq!(machine.sent(), 2);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn without_lazy_coming_back_is_for_nothing_but_for_batches() {
    let told = |without| {
        let machine = Machine::new(1, Switches::DEFAULT.without(without).expect("they are names"));
        let space = machine.space(1);
        machine.run(0, &space);
        machine.idle(0);
        machine.log();
        machine.run(0, &space);
        let told = machine.log();
        machine.leave(0);
        told
    };
    assert_eq!(told("lazy,generations,batch"), [], "every request would have reached it");
    assert_eq!(told("lazy"), [], "nothing has happened meanwhile");
    assert_eq!(told("lazy,generations"), [(0, Did::All)], "a batch's round leaves borrowers alone");
}

#[test]
fn user_memory_may_be_used_where_the_space_is() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let (space, other) = (machine.space(1), machine.space(2));
    let may = |space| machine.on(0, || machine.coherence.may_use_user_memory(space));
    assert!(!may(&space));
    machine.run(0, &space);
    assert!(may(&space) && !may(&other));
    machine.idle(0);
    assert!(!may(&space));
    machine.run(0, &space);
    assert!(may(&space));
    machine.leave(0);
    assert!(!may(&space));
}
