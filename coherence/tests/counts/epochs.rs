//! Deferred batches: what may wait, who has flushed meanwhile and is not told, and who settles.

use std::sync::Arc;

use coherence::{Cause, Deferred, Event, Executed, Flush, Reason, Row, Space, Switches, Translation};

use crate::machine::{Did, Features, Machine, PAGE};
use crate::{ABSENT, PRESENT, READ_ONLY};

/// What waits: clean, and it could not be stored through.
const WAITS: Translation = Translation { dirty: false, ..READ_ONLY };

/// A machine on whose first CPUs a space runs.
fn running(cpus: usize) -> (Arc<Machine>, Arc<Space>) {
    let machine = Machine::new(3, Switches::DEFAULT);
    let space = machine.space(0);
    (0..cpus).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    (machine, space)
}

/// CPU 5 takes a page out and lets the flush wait.
fn put_by(machine: &Machine, space: &Space) -> Deferred<u8> {
    machine.on(5, || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, 7).deferring();
        assert!(batch.change(space, 0, PAGE, &WAITS, &ABSENT).is_some());
        batch.defer().expect("it can wait")
    })
}

/// CPU 5 needs what waits: who flushes now.
fn retire(machine: &Machine, deferred: Deferred<u8>) -> Vec<(usize, Did)> {
    machine.log();
    assert_eq!(machine.on(5, || machine.coherence.retire(deferred, Cause::Reclaim).into_inner()), 7);
    machine.log()
}

/// Interrupts sent for reclaim, CPUs that need not be told as they had flushed, rounds, and deferred batches that needed none.
fn counted(machine: &Machine) -> [u64; 4] {
    [
        Row::Sent(Cause::Reclaim),
        Row::Skipped(Reason::EpochReached),
        Row::Event(Event::EpochFlush),
        Row::Event(Event::EpochFree),
    ]
    .map(|row| machine.total(row))
}

#[test]
fn who_has_not_flushed_is_told_when_the_list_is_needed() {
    let (machine, space) = running(3);
    let deferred = put_by(&machine, &space);
    assert_eq!((machine.log(), machine.total(Row::Event(Event::EpochDeferred))), (vec![], 1));
    let deferred = machine.coherence.redeem(deferred).expect_err("nobody has flushed");
    assert_eq!(retire(&machine, deferred), [0, 1, 2].map(|cpu| (cpu, Did::All)));
    assert_eq!(counted(&machine), [3, 0, 1, 0]);
    assert_eq!(machine.total(Row::Requested(Cause::Reclaim)), 1);
    // That round counts for what was put by before it.
    let (first, second) = (put_by(&machine, &space), put_by(&machine, &space));
    assert_eq!(retire(&machine, second), [0, 1, 2].map(|cpu| (cpu, Did::All)));
    assert_eq!(retire(&machine, first), []);
    assert_eq!(counted(&machine), [6, 3, 2, 1]);
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn who_has_flushed_for_another_reason_is_not_told() {
    let (machine, space) = running(5);
    let other = machine.space(1);
    let deferred = put_by(&machine, &space);
    // Goes elsewhere; borrows and comes back; lets go; goes elsewhere and comes back.
    machine.run(0, &other);
    machine.idle(1);
    machine.run(1, &space);
    machine.leave(2);
    machine.run(3, &other);
    machine.run(3, &space);
    assert_eq!(retire(&machine, deferred), [(4, Did::All)]);
    assert_eq!(counted(&machine), [1, 4, 1, 0]);
    [0, 1, 3, 4].into_iter().for_each(|cpu| machine.leave(cpu));
}

#[test]
fn nobody_is_taken_to_have_flushed_before_he_has() {
    let ways: [fn(&Machine, &Arc<Space>); 5] = [
        |machine, space| _ = machine.flush(1, space, Flush::all()),
        |machine, space| {
            let mut batch = machine.coherence.batch(Cause::Truncate, ());
            let _ = batch.change(space, PAGE, PAGE, &PRESENT, &ABSENT);
            machine.on(5, || batch.finish().into_inner());
        },
        |machine, _| machine.leave(0),
        |machine, _| machine.run(0, &machine.space(1)),
        |machine, space| {
            machine.idle(0);
            machine.run(0, space);
        },
    ];
    for way in ways {
        let (machine, space) = running(1);
        let deferred = put_by(&machine, &space);
        machine.before_dropping(move |machine| {
            let _ =
                machine.coherence.redeem(deferred).expect_err("what is cached is used until it is dropped");
        });
        way(&machine, &space);
        assert!(!machine.is_to_drop());
        machine.leave(0);
    }
}

#[test]
fn a_flush_of_everything_will_do_and_one_of_a_page_if_others_were_missed() {
    for flush in [Flush::all(), Flush::page(9 * PAGE, PAGE)] {
        let (machine, space) = running(3);
        let deferred = put_by(&machine, &space);
        machine.flush(1, &space, flush);
        assert_eq!(retire(&machine, deferred), []);
        assert_eq!(counted(&machine), [0, 3, 0, 1]);
        (0..3).for_each(|cpu| machine.leave(cpu));
    }
}

#[test]
fn a_page_flushed_alone_is_not_everything() {
    let (machine, space) = running(1);
    let other = machine.space(1);
    machine.run(1, &other);
    let deferred = put_by(&machine, &space);
    machine.flush(1, &other, Flush::page(0, PAGE));
    assert_eq!(retire(&machine, deferred), [(0, Did::All)], "that was another space");
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn the_round_of_another_batch_will_do_whatever_it_finds_to_flush() {
    let (machine, space) = running(2);
    let deferred = put_by(&machine, &space);
    let mut batch = machine.coherence.batch(Cause::Truncate, ());
    let _ = batch.change(&space, PAGE, PAGE, &PRESENT, &ABSENT);
    machine.flush(5, &space, Flush::page(2 * PAGE, PAGE));
    machine.log();
    machine.on(5, || batch.finish().into_inner());
    assert_eq!(machine.log(), [], "the page's request found the gap");
    assert_eq!(retire(&machine, deferred), []);

    // One that has nothing to do with the space, and finds everything flushed.
    let mut batch = machine.coherence.batch(Cause::Truncate, ());
    let _ = batch.change(&space, PAGE, PAGE, &PRESENT, &ABSENT);
    let other = machine.space(1);
    let deferred = put_by(&machine, &other);
    let concerned = counted(&machine);
    machine.on(5, || batch.finish().into_inner());
    assert_eq!(retire(&machine, deferred), [], "nobody used that space");
    assert_eq!(counted(&machine)[0], concerned[0]);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_round_that_finds_nothing_to_flush_counts_too() {
    let (machine, space) = running(1);
    let mut early = machine.coherence.batch(Cause::Truncate, ());
    let _ = early.change(&space, PAGE, PAGE, &PRESENT, &ABSENT);
    // CPU 0 catches up with both by its own request, in its own space, and then another batch's round comes.
    let deferred = put_by(&machine, &space);
    machine.flush(0, &space, Flush::all());
    let second = put_by(&machine, &space);
    machine.flush(0, &space, Flush::page(0, PAGE));
    machine.log();
    machine.on(5, || early.finish().into_inner());
    assert_eq!(machine.log(), []);
    assert_eq!(retire(&machine, second), []);
    assert_eq!(retire(&machine, deferred), []);
    machine.leave(0);
}

#[test]
fn who_missed_it_in_the_kernel_is_not_told_once_it_is_back() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    machine.call(1);
    machine.call(2);
    let deferred = put_by(&machine, &space);
    machine.flush(5, &space, Flush::page(0, PAGE));
    machine.back(1);
    assert_eq!(machine.total(Row::Executed(Executed::ReturnFull)), 1);
    assert_eq!(retire(&machine, deferred), [], "CPU 2 is spared in the kernel");
    assert_eq!(machine.total(Row::Skipped(Reason::EpochReached)), 2);
    machine.back(2);
    assert_eq!(machine.log(), [(2, Did::All)]);
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn two_are_one_flush() {
    let (machine, one) = running(1);
    let two = machine.space(1);
    machine.run(1, &two);
    let (first, second) = (put_by(&machine, &one), put_by(&machine, &two));
    let both = first.map(|page| vec![page]).merge(second.map(|page| vec![page]), |mut one, two| {
        one.extend(two);
        one
    });
    machine.log();
    let flushed = machine.on(5, || machine.coherence.retire(both, Cause::Reclaim));
    assert_eq!(flushed.get(), &[7, 7]);
    assert_eq!(machine.log(), [(0, Did::All), (1, Did::All)]);
    assert_eq!(counted(&machine), [2, 0, 1, 0]);

    // The younger one counts for both.
    let (first, second) = (put_by(&machine, &one), {
        machine.flush(5, &one, Flush::all());
        put_by(&machine, &one)
    });
    let (older, younger) = (first, second);
    let both = younger.merge(older, |one, _| one);
    assert_eq!(retire(&machine, both), [(0, Did::All)]);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn what_could_be_stored_through_is_flushed_at_the_end() {
    let writable = Translation { writable: true, ..WAITS };
    let dirty = Translation { dirty: true, ..WAITS };
    let moved = Translation { frame: WAITS.frame + 1, ..WAITS };
    let with_clean = Switches { clean: true, ..Switches::DEFAULT };
    let without_epochs = Switches { epochs: false, ..Switches::DEFAULT };
    let usual = Features { tags: 1, ..Features::default() };
    let with_devices = Features { devices: true, ..usual };
    for (features, switches, old, new, waits) in [
        (usual, Switches::DEFAULT, WAITS, ABSENT, true),
        (usual, Switches::DEFAULT, writable, ABSENT, false),
        (usual, Switches::DEFAULT, dirty, ABSENT, false),
        (usual, Switches::DEFAULT, PRESENT, ABSENT, false),
        (usual, Switches::DEFAULT, WAITS, moved, false),
        (usual, with_clean, writable, ABSENT, true),
        (usual, with_clean, PRESENT, ABSENT, false),
        (usual, without_epochs, WAITS, ABSENT, false),
        (with_devices, Switches::DEFAULT, WAITS, ABSENT, true),
        // Not every device looks again before it stores.
        (with_devices, with_clean, writable, ABSENT, false),
    ] {
        let machine = Machine::with_features(features, switches);
        let space = machine.space(0);
        machine.run(0, &space);
        machine.log();
        let mut batch = machine.coherence.batch(Cause::Reclaim, 7).deferring();
        let _ = batch.change(&space, 0, PAGE, &WAITS, &ABSENT);
        let _ = batch.change(&space, PAGE, PAGE, &old, &new);
        let deferred = machine.on(5, || batch.defer());
        assert_eq!(deferred.is_ok(), waits, "{old:?}");
        assert_eq!(machine.log().is_empty(), waits);
        machine.leave(0);
    }
}

#[test]
fn without_batches_nothing_waits() {
    let machine = Machine::new(1, Switches { batch: false, ..Switches::DEFAULT });
    let space = machine.space(0);
    machine.run(0, &space);
    machine.log();
    let mut batch = machine.coherence.batch(Cause::Reclaim, 7).deferring();
    assert!(batch.change(&space, 0, PAGE, &WAITS, &ABSENT).is_none());
    assert_eq!(machine.log(), [(0, Did::Page(0))]);
    assert_eq!(batch.defer().expect_err("it is flushed").into_inner(), 7);
    machine.leave(0);
}

#[test]
fn only_who_says_so_defers_and_what_is_met_cannot_wait() {
    let (machine, space) = running(1);
    let mut batch = machine.coherence.batch(Cause::Reclaim, 7);
    let _ = batch.change(&space, 0, PAGE, &WAITS, &ABSENT);
    assert!(machine.on(5, || batch.defer()).is_err());
    assert_eq!(machine.log(), [(0, Did::All)]);

    let gather = machine.coherence.gather(&space, Cause::Munmap, ());
    let mut batch = machine.coherence.batch(Cause::Reclaim, 7).deferring();
    assert!(batch.meet(&space).is_some());
    let _ = batch.change(&space, 0, PAGE, &WAITS, &ABSENT);
    assert!(machine.on(5, || batch.defer()).is_err());
    assert_eq!(machine.log(), [(0, Did::All)]);
    gather.finish().into_inner();

    // After a flush in between it is a new one.
    let mut batch = machine.coherence.batch(Cause::Reclaim, Vec::<u8>::new()).deferring();
    let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
    machine.on(5, || batch.flush().into_inner());
    let _ = batch.change(&space, 0, PAGE, &WAITS, &ABSENT);
    assert!(batch.defer().is_ok());
    machine.leave(0);
}

#[test]
fn what_nobody_uses_waits_for_nobody() {
    let (machine, space) = running(1);
    let batch = machine.coherence.batch(Cause::Reclaim, 7).deferring();
    let deferred = batch.defer().expect("nothing is recorded");
    assert_eq!(machine.coherence.redeem(deferred).expect("nobody is concerned").into_inner(), 7);
    machine.leave(0);
    let deferred = put_by(&machine, &space);
    assert_eq!(machine.coherence.redeem(deferred).expect("nobody uses it").into_inner(), 7);
}

#[test]
fn operations_settle_what_waits_and_who_maps_the_same_page_need_not() {
    let (machine, space) = running(1);
    let settle = || machine.coherence.settle(&space, Cause::Munmap);
    let waits = put_by(&machine, &space);
    assert!(!machine.coherence.settle_for_the_same_page(&space, Cause::Reclaim));
    assert_eq!(machine.log(), []);
    assert!(settle());
    assert_eq!(machine.log(), [(0, Did::All)]);
    assert!(!settle());
    assert_eq!(retire(&machine, waits), []);

    let waits = put_by(&machine, &space);
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.settle();
    assert_eq!(gather.outstanding(), Some(Flush::all()));
    gather.finish().into_inner();
    assert!(!settle());
    assert_eq!(retire(&machine, waits), []);

    // What does not wait concerns whoever maps a page, whichever that is.
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let _ = batch.change(&space, 0, PAGE, &WAITS, &ABSENT);
    machine.log();
    assert!(machine.coherence.settle_for_the_same_page(&space, Cause::Reclaim));
    assert_eq!(machine.log(), [(0, Did::All)]);
    assert!(!machine.coherence.settle_for_the_same_page(&space, Cause::Reclaim));
    batch.finish().into_inner();
    machine.leave(0);
}

#[test]
fn a_retired_batch_settles_what_it_has_recorded() {
    let (machine, space) = running(1);
    let mut batch = machine.coherence.batch(Cause::Reclaim, ()).deferring();
    let recorded = batch.change(&space, 0, PAGE, &WAITS, &ABSENT).expect("it was there");
    let deferred = batch.defer().expect("it can wait");
    machine.on(5, || machine.coherence.retire(deferred, Cause::Reclaim)).settles(&space, recorded);
    assert!(!machine.coherence.settle(&space, Cause::Munmap));
    machine.leave(0);
}

#[test]
fn who_promises_something_meets_what_waits() {
    let (machine, space) = running(1);
    let waits = put_by(&machine, &space);
    let mut reclaim = machine.coherence.batch(Cause::Reclaim, ()).deferring();
    assert!(reclaim.meet(&space).is_none(), "it promises nothing");
    let mut cleaning = machine.coherence.batch(Cause::Writeback, ());
    assert!(cleaning.meet(&space).is_none(), "what waits is clean");
    cleaning.flush_written();
    assert!(!cleaning.is_outstanding());
    let mut truncation = machine.coherence.batch(Cause::Truncate, ()).concluding_absence();
    assert!(truncation.meet(&space).is_some());
    machine.log();
    machine.on(5, || truncation.finish().into_inner());
    assert_eq!(machine.log(), [(0, Did::All)]);
    assert_eq!(retire(&machine, waits), []);
    machine.leave(0);
}

#[test]
fn a_suppressed_round_is_counted() {
    let (machine, space) = running(1);
    machine.coherence.suppress(Some(Cause::Reclaim));
    let waits = put_by(&machine, &space);
    assert_eq!(retire(&machine, waits), []);
    assert_eq!(machine.total(Row::Event(Event::Suppressed)), 1);
    machine.leave(0);
}
