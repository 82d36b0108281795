//! Exact counts of flushes by the mode that each CPU is in: in the kernel nobody is interrupted, and what was missed is flushed once.

use coherence::policy::Translation;
use coherence::{Cause, Executed, Flush, Mode, Reason, Row, Switches};

use crate::machine::Machine;

/// Interrupts sent for munmap, CPUs spared as they were in the kernel, flushes on the way back to user mode.
fn counted(machine: &Machine) -> (u64, u64, u64) {
    let rows =
        [Row::Sent(Cause::Munmap), Row::Skipped(Reason::InKernel), Row::Executed(Executed::ReturnFull)];
    let [sent, spared, flushed] = rows.map(|row| machine.total(row));
    (sent, spared, flushed)
}

#[test]
fn cpus_in_the_kernel_are_spared_and_flush_once_for_all_they_missed() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    (0..3).for_each(|cpu| machine.call(cpu));
    let unmap =
        || machine.on(0, || machine.coherence.flush(&space, Flush::page(0x1000, 0x1000), Cause::Munmap));
    unmap();
    assert_eq!(counted(&machine), (1, 2, 0), "CPU 3 runs user code");
    unmap();
    unmap();
    assert_eq!(counted(&machine), (3, 6, 0));
    machine.back(1);
    machine.back(2);
    assert_eq!(counted(&machine), (3, 6, 2));
    machine.call(1);
    machine.back(1);
    machine.back(0);
    assert_eq!(counted(&machine), (3, 6, 2), "who has missed nothing flushes nothing");
    assert_eq!(machine.total(Row::Received(Mode::Kernel)), 0);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn who_is_alone_in_user_mode_interrupts_nobody_and_knows_why() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    (0..2).for_each(|cpu| machine.call(cpu));
    machine.on(0, || machine.coherence.flush(&space, Flush::all(), Cause::Munmap));
    assert_eq!(counted(&machine), (0, 1, 0));
    assert_eq!(machine.total(Row::Skipped(Reason::NoOtherCpu)), 0, "there is another CPU");
    // It goes elsewhere, and comes to the space again as to any that it has not got any more.
    let other = machine.space(1);
    machine.run(1, &other);
    machine.run(1, &space);
    assert_eq!(counted(&machine), (0, 1, 0));
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn freed_tables_are_told_in_the_kernel_too() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    (0..2).for_each(|cpu| machine.call(cpu));
    let flush = Flush::page(0x1000, 0x1000).freeing_tables();
    machine.on(0, || machine.coherence.flush(&space, flush, Cause::Munmap));
    assert_eq!(counted(&machine), (1, 0, 0));
    machine.back(1);
    assert_eq!(counted(&machine), (1, 0, 0));
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn without_the_mechanism_or_without_lazy_every_cpu_is_interrupted() {
    for list in ["mode", "lazy"] {
        let machine = Machine::counting_crossings_with(Switches::DEFAULT.without(list).unwrap());
        let space = machine.space(0);
        (0..3).for_each(|cpu| machine.run(cpu, &space));
        (0..2).for_each(|cpu| machine.call(cpu));
        machine.on(0, || machine.coherence.flush(&space, Flush::page(0x1000, 0x1000), Cause::Munmap));
        assert_eq!(counted(&machine), (2, 0, 0), "without {list}");
        (0..3).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn an_interrupt_that_cannot_be_masked_uses_no_user_memory_in_the_kernel() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    machine.run(1, &space);
    let may = || machine.on(1, || machine.coherence.may_use_user_memory(&space));
    assert!(may());
    machine.call(1);
    assert!(!may(), "nobody waits for it");
    machine.on(0, || machine.coherence.flush(&space, Flush::all(), Cause::Munmap));
    machine.back(1);
    assert!(may(), "it has made up for what it missed");
    machine.leave(1);
    for list in ["mode", "lazy"] {
        let machine = Machine::counting_crossings_with(Switches::DEFAULT.without(list).unwrap());
        let space = machine.space(0);
        machine.run(1, &space);
        machine.call(1);
        assert!(
            machine.on(1, || machine.coherence.may_use_user_memory(&space)),
            "without {list} all wait for it"
        );
        machine.leave(1);
    }
}

#[test]
fn a_batch_spares_cpus_in_the_kernel() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (1..4).for_each(|cpu| machine.run(cpu, &space));
    machine.call(1);
    let reclaim = || {
        machine.on(0, || {
            let mut batch = machine.coherence.batch(Cause::Reclaim, ());
            let present = Translation { present: true, frame: 1, ..Translation::default() };
            batch.change(&space, 0x1000, 0x1000, &present, &Translation::default());
            batch.finish().into_inner();
        });
        (machine.total(Row::Sent(Cause::Reclaim)), machine.total(Row::Skipped(Reason::InKernel)))
    };
    assert_eq!(reclaim(), (2, 1));
    machine.back(1);
    assert_eq!(machine.total(Row::Executed(Executed::ReturnFull)), 1);
    (1..4).for_each(|cpu| machine.call(cpu));
    assert_eq!(reclaim(), (2, 4));
    assert_eq!(machine.total(Row::Skipped(Reason::NoOtherCpu)), 0, "there are others");
    (1..4).for_each(|cpu| machine.leave(cpu));
}
