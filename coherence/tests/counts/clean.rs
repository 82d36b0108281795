//! The mechanism `clean`: what it saves, what is counted where it is off, and where it skips nothing.

use coherence::{Cause, Event, Reason, Row, Switches, Translation, Why};

use super::PRESENT as DIRTY;
use super::machine::{Features, Machine, PAGE};

const CLEAN: Translation = Translation { dirty: false, ..DIRTY };
const CLEAN_READ_ONLY: Translation = Translation { writable: false, ..CLEAN };

/// What taking write from those entries, in one operation, comes to: interrupts, entries that `clean` skips or would, flushes
/// that it would save.
fn cost(switches: Switches, devices: bool, entries: &[Translation]) -> [u64; 4] {
    let machine = Machine::with_features(Features { tags: 1, devices, ..Features::default() }, switches);
    let space = machine.space(1);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    let mut gather = machine.coherence.gather(&space, Cause::Mprotect, ());
    for (page, old) in (0..).zip(entries) {
        gather.change(page * PAGE, PAGE, old, &Translation { writable: false, ..*old });
    }
    gather.finish().into_inner();
    (0..2).for_each(|cpu| machine.leave(cpu));
    [
        machine.sent(),
        machine.total(Row::Skipped(Reason::CleanWriteRemoved)),
        machine.total(Row::Needed(Why::CleanWriteRemoved)),
        machine.total(Row::Event(Event::CleanFlush)),
    ]
}

#[test]
fn write_taken_from_clean_entries_interrupts_nobody_and_is_counted_where_it_does() {
    let with = Switches { clean: true, ..Switches::DEFAULT };
    assert_eq!(cost(with, false, &[CLEAN, CLEAN]), [0, 2, 0, 0]);
    assert_eq!(cost(Switches::DEFAULT, false, &[CLEAN, CLEAN]), [1, 0, 2, 1]);
    // Without `gather` each entry is a flush of its own.
    let single = Switches { gather: false, ..Switches::DEFAULT };
    assert_eq!(cost(single, false, &[CLEAN, CLEAN]), [2, 0, 2, 2]);
}

#[test]
fn one_dirty_entry_needs_the_flush_all_the_same() {
    let with = Switches { clean: true, ..Switches::DEFAULT };
    assert_eq!(cost(with, false, &[CLEAN, DIRTY]), [1, 1, 0, 0]);
    assert_eq!(cost(Switches::DEFAULT, false, &[CLEAN, DIRTY]), [1, 0, 1, 0]);
    assert_eq!(cost(Switches::DEFAULT, false, &[DIRTY, CLEAN]), [1, 0, 1, 0]);
    assert_eq!(cost(Switches::DEFAULT, false, &[CLEAN_READ_ONLY]), [0, 0, 0, 0]);
}

#[test]
fn on_a_machine_with_devices_nothing_is_skipped() {
    let with = Switches { clean: true, ..Switches::DEFAULT };
    assert_eq!(cost(with, true, &[CLEAN]), [1, 0, 1, 1]);
}

/// A flush that another operation in progress asks for is not one that `clean` would have saved.
#[test]
fn a_flush_for_another_operation_is_not_saved() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(1);
    let first = machine.coherence.gather(&space, Cause::Dontneed, ());
    let mut second = machine.coherence.gather(&space, Cause::Mprotect, ());
    second.change(0, PAGE, &CLEAN, &CLEAN_READ_ONLY);
    second.finish().into_inner();
    first.finish().into_inner();
    assert_eq!(machine.total(Row::Event(Event::NestedGather)), 1);
    assert_eq!(machine.total(Row::Event(Event::CleanFlush)), 0);
}
