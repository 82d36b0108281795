//! Sharers of tables: who is told of a change, who is not, and what a CPU does with roots of its own.

use std::sync::Arc;

use coherence::{Cause, CpuId, Executed, Flush, Gather, Reason, Row, Sharers, Space, Switches};

use crate::machine::{Did, Features, Hardware, Machine, PAGE};
use crate::{ABSENT, PRESENT};

type Operation<'a> = Gather<'a, Hardware, ()>;

const ON: Switches = Switches { sharers: true, ..Switches::DEFAULT };

/// A machine on whose first CPUs a space runs.
fn running(cpus: usize, switches: Switches) -> (Arc<Machine>, Arc<Space>) {
    let machine = Machine::new(2, switches);
    let space = machine.space(0);
    (0..cpus).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    (machine, space)
}

fn table_of(machine: &Machine, cpus: &[usize]) -> Sharers {
    let sharers = Sharers::new();
    for cpu in cpus {
        let cpu = CpuId::new(*cpu).unwrap();
        machine.coherence.join_sharers(cpu, &sharers);
        assert!(sharers.contains(cpu));
    }
    sharers
}

/// CPU 0 makes an operation; who did what for it.
fn operate(machine: &Machine, space: &Space, work: impl FnOnce(&mut Operation<'_>)) -> Vec<(usize, Did)> {
    machine.log();
    machine.on(0, || {
        let mut gather = machine.coherence.gather(space, Cause::Munmap, ());
        work(&mut gather);
        gather.finish().into_inner();
    });
    machine.log()
}

fn take_out(gather: &mut Operation<'_>, page: u64) {
    gather.change(page * PAGE, PAGE, &PRESENT, &ABSENT);
}

fn not_sharing(machine: &Machine) -> u64 {
    machine.total(Row::Skipped(Reason::NotSharing))
}

#[test]
fn those_are_told_who_have_found_the_table() {
    let (machine, space) = running(4, ON);
    let table = table_of(&machine, &[0, 2]);
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
    });
    assert_eq!(told, [(2, Did::Page(PAGE)), (0, Did::Page(PAGE))]);
    assert_eq!((not_sharing(&machine), machine.total(Row::Sent(Cause::Munmap))), (2, 1));
    // Who was not told is behind, and drops everything when it is.
    let told = operate(&machine, &space, |gather| take_out(gather, 1));
    assert_eq!(told, [(1, Did::All), (2, Did::Page(PAGE)), (3, Did::All), (0, Did::Page(PAGE))]);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn several_tables_concern_all_who_have_found_one() {
    let (machine, space) = running(4, ON);
    let (table, other, everywhere) =
        (table_of(&machine, &[1]), table_of(&machine, &[2]), table_of(&machine, &[]));
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table, &everywhere]);
        take_out(gather, 2);
        gather.within(&[&other, &everywhere]);
    });
    assert_eq!(told.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [1, 1, 2, 2, 0, 0]);
    assert_eq!(not_sharing(&machine), 1);
    // One flush later nothing of that is left.
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
        gather.flush().into_inner();
        take_out(gather, 2);
        gather.within(&[&other]);
    });
    assert_eq!(told.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [1, 0, 2, 0]);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn what_is_in_no_known_table_concerns_everyone() {
    let cases: [fn(&mut Operation<'_>, &Sharers); 4] = [
        |gather, table| {
            take_out(gather, 1);
            gather.within(&[table]);
            take_out(gather, 1);
        },
        |gather, table| {
            take_out(gather, 1);
            gather.concerns_everyone();
            take_out(gather, 1);
            gather.within(&[table]);
        },
        |gather, table| {
            gather.within(&[table]);
            gather.add(Flush::page(PAGE, PAGE));
        },
        |gather, table| {
            gather.settle();
            take_out(gather, 1);
            gather.within(&[table]);
        },
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let (machine, space) = running(3, ON);
        let table = table_of(&machine, &[0]);
        let mut batch = machine.coherence.batch(Cause::Reclaim, ());
        if number == 3 {
            let _ = batch.change(&space, 9 * PAGE, PAGE, &PRESENT, &ABSENT);
        }
        let told = operate(&machine, &space, |gather| case(gather, &table));
        assert_eq!(told.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [1, 2, 0], "case {number}");
        assert_eq!(not_sharing(&machine), 0);
        machine.on(5, || batch.finish().into_inner());
        (0..3).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn who_meets_another_operation_tells_everyone() {
    let (machine, space) = running(3, ON);
    let table = table_of(&machine, &[0]);
    let other = machine.coherence.gather(&space, Cause::Mremap, ());
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
    });
    assert_eq!(told.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [1, 2, 0]);
    other.finish().into_inner();
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn what_one_cpu_alone_has_found_is_its_own_business() {
    let (machine, space) = running(3, ON);
    let table = table_of(&machine, &[0]);
    let before = space.generation();
    let mine = |gather: &mut Operation<'_>| {
        take_out(gather, 1);
        gather.within(&[&table]);
    };
    assert_eq!(operate(&machine, &space, mine), [(0, Did::Page(PAGE))]);
    assert_eq!(space.generation(), before, "nobody has to catch up with it");
    assert_eq!((not_sharing(&machine), machine.total(Row::Requested(Cause::Munmap))), (2, 1));
    assert_eq!(machine.total(Row::Executed(Executed::LocalRanged)), 1);
    let told = operate(&machine, &space, |gather| {
        gather.table_freed(0, 512 * PAGE);
        take_out(gather, 1);
        gather.add(Flush::all());
        gather.within(&[&table]);
    });
    assert_eq!(told, [(0, Did::All)]);
    assert_eq!(machine.total(Row::Executed(Executed::LocalFull)), 1);
    // The next one that concerns others finds no gap.
    let told = operate(&machine, &space, |gather| take_out(gather, 3));
    assert_eq!(told, [1, 2, 0].map(|cpu| (cpu, Did::Page(3 * PAGE))));

    // Not where it does not use the space: what it has cached is compared when it does.
    machine.idle(0);
    assert_eq!(operate(&machine, &space, mine), [(0, Did::LoadKernel)]);
    assert_ne!(space.generation(), before);
    machine.run(0, &space);
    assert_eq!(machine.log(), [(0, Did::Load { root: 0, keep: false })]);
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_cpu_that_borrows_the_space_is_told_of_freed_tables_if_it_has_found_them() {
    for has_found in [false, true] {
        let (machine, space) = running(3, ON);
        let table = table_of(&machine, if has_found { &[0, 1] } else { &[0, 2] });
        machine.idle(1);
        let told = operate(&machine, &space, |gather| {
            gather.table_freed(0, 512 * PAGE);
            gather.within(&[&table]);
        });
        let other = if has_found { (1, Did::LoadKernel) } else { (2, Did::Page(0)) };
        assert_eq!(told, [other, (0, Did::Page(0))]);
        assert_eq!(not_sharing(&machine), 1);
        (0..3).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn a_flush_of_everything_for_some_settles_nothing() {
    let (machine, space) = running(3, ON);
    let table = table_of(&machine, &[0, 1]);
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let some = |gather: &mut Operation<'_>| {
        gather.add(Flush::all());
        gather.within(&[&table]);
    };
    let _ = batch.change(&space, 9 * PAGE, PAGE, &PRESENT, &ABSENT);
    operate(&machine, &space, some);
    assert!(machine.coherence.settle(&space, Cause::Munmap), "CPU 2 has not flushed");
    machine.on(5, || batch.finish().into_inner());
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn devices_are_told_of_what_one_cpu_has_found() {
    let features = Features { tags: 2, devices: true, ..Features::default() };
    let machine = Machine::with_features(features, ON);
    let space = machine.space(0);
    machine.run(0, &space);
    machine.coherence.attach_device(&space);
    let table = table_of(&machine, &[0]);
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
    });
    assert_eq!(told, [(0, Did::Page(PAGE)), (0, Did::Devices(Flush::page(PAGE, PAGE)))]);
    machine.coherence.detach_device(&space);
    machine.leave(0);
}

#[test]
fn without_the_mechanism_everyone_is_told() {
    let (machine, space) = running(3, Switches::DEFAULT);
    let table = table_of(&machine, &[0]);
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
    });
    assert_eq!(told.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), [1, 2, 0]);
    assert_eq!(not_sharing(&machine), 0);
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn what_is_suppressed_is_not_flushed_here_either() {
    let (machine, space) = running(2, ON);
    let table = table_of(&machine, &[0]);
    machine.coherence.suppress(Some(Cause::Munmap));
    let told = operate(&machine, &space, |gather| {
        take_out(gather, 1);
        gather.within(&[&table]);
    });
    assert_eq!(told, []);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn tables_have_new_sharers_when_they_have_a_new_use() {
    let (machine, _) = running(0, ON);
    let table = table_of(&machine, &[1, 2]);
    let [one, two] = [1, 2].map(|cpu| CpuId::new(cpu).unwrap());
    table.leave(one);
    assert!(!table.contains(one) && table.contains(two));
    table.clear();
    assert!(!table.contains(two));
}

#[test]
fn a_cpu_loads_its_own_root_and_keeps_what_it_may() {
    let (machine, space) = running(1, ON);
    let other = machine.space(1);
    machine.run(0, &other);
    machine.log();
    assert!(machine.run_at(0, &space, (7, true)));
    assert_eq!(machine.log(), [(0, Did::Load { root: 7, keep: true })]);
    assert!(!machine.run_at(0, &space, (8, false)), "it is loaded");
    assert_eq!(machine.log(), []);
    machine.run(0, &other);
    assert!(machine.run_at(0, &space, (8, false)));
    assert_eq!(machine.log()[1..], [(0, Did::Load { root: 8, keep: false })]);

    // Loading another one drops everything, and so catches up.
    machine.flush(5, &other, Flush::page(0, PAGE));
    let missed = operate(&machine, &space, |gather| take_out(gather, 1));
    assert_eq!(missed, [(0, Did::Page(PAGE))]);
    machine.on(0, || machine.load_again(&space, 9));
    assert_eq!(machine.log(), [(0, Did::Load { root: 9, keep: false })]);
    assert_eq!(machine.total(Row::Executed(Executed::SwitchFull)), 4);
    machine.leave(0);
}
