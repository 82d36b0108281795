//! Exact counts of flushes where entries are unused: none, unless somebody may still be about to make them so, or a device uses them.

use coherence::{Cause, Decision, Reason, Row, Space, Switches, Translation, Why};

use super::ABSENT;
use super::machine::{Features, Machine, PAGE};

const USED: Translation = super::PRESENT;
const UNUSED: Translation = Translation { writable: false, accessed: false, unused: true, ..USED };

/// What a gather decides of taking out an entry that is unused.
fn taken_out(machine: &Machine, space: &Space) -> Decision {
    machine.on(0, || {
        let mut gather = machine.coherence.gather_under_lock(space, Cause::CopyOnWrite, ());
        let decision = gather.change(0, PAGE, &UNUSED, &ABSENT);
        gather.finish().into_inner();
        decision
    })
}

#[test]
fn what_no_cpu_has_used_is_taken_out_without_a_flush() {
    for (switches, interrupts) in [(Switches::DEFAULT, 0), (Switches::DEFAULT.without("unused").unwrap(), 3)]
    {
        let machine = Machine::new(4, switches);
        let space = machine.space(1);
        (0..4).for_each(|cpu| machine.run(cpu, &space));
        taken_out(&machine, &space);
        assert_eq!(machine.total(Row::Sent(Cause::CopyOnWrite)), interrupts);
        assert_eq!(machine.total(Row::Skipped(Reason::Unused)), u64::from(interrupts == 0));
        (0..4).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn who_makes_entries_unused_is_believed_when_it_has_flushed() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    let mut fork = machine.coherence.gather(&space, Cause::Fork, ());
    assert_eq!(fork.change(0, PAGE, &USED, &UNUSED), Decision::Flush(Why::WriteRemoved));
    assert_eq!(taken_out(&machine, &space), Decision::Flush(Why::Removed), "its flush is still to come");
    let mut other = machine.coherence.gather(&space, Cause::Dontneed, ());
    assert_eq!(
        other.change(0, PAGE, &UNUSED, &ABSENT),
        Decision::Flush(Why::Removed),
        "nor is this one alone"
    );
    fork.finish().into_inner();
    assert_eq!(other.change(0, PAGE, &UNUSED, &ABSENT), Decision::Skip(Reason::Unused));
    other.finish().into_inner();
    assert_eq!(taken_out(&machine, &space), Decision::Skip(Reason::Unused));
    machine.leave(0);
}

#[test]
fn a_batch_believes_it_too_unless_one_is_pending() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    let mut first = machine.coherence.batch(Cause::Reclaim, ());
    let mut second = machine.coherence.batch(Cause::Reclaim, ());
    assert!(first.change(&space, 0, PAGE, &UNUSED, &ABSENT).is_none());
    let recorded = first.change(&space, PAGE, PAGE, &USED, &ABSENT).expect("somebody has used it");
    assert!(second.change(&space, 0, PAGE, &UNUSED, &ABSENT).is_some(), "a batch has still to flush");
    second.finish().into_inner();
    let flushed = first.finish();
    flushed.settles(&space, recorded);
    flushed.into_inner();
    machine.leave(0);
}

#[test]
fn what_a_device_may_have_used_is_flushed() {
    let machine =
        Machine::with_features(Features { tags: 1, devices: true, ..Features::default() }, Switches::DEFAULT);
    let space = machine.space(1);
    machine.run(0, &space);
    assert_eq!(taken_out(&machine, &space), Decision::Flush(Why::Removed));
    machine.leave(0);
}
