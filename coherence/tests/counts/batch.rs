//! Batches: what is recorded, whom the round at the end reaches, and what is settled by whom.

use std::sync::{Arc, Mutex};

use coherence::{Cause, Event, Executed, Flush, Outcome, Row, Space, Switches, Translation};

use crate::machine::{Did, Machine, PAGE};
use crate::{ABSENT, PRESENT, READ_ONLY};

const CLEAN: Translation = Translation { dirty: false, ..PRESENT };

/// A machine on whose first CPUs a space runs.
fn running(cpus: usize) -> (Arc<Machine>, Arc<Space>) {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    (0..cpus).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    (machine, space)
}

/// How many rounds there were, and how many interrupts were sent for them.
fn rounds(machine: &Machine) -> (u64, u64) {
    (machine.total(Row::Requested(Cause::Reclaim)), machine.total(Row::Sent(Cause::Reclaim)))
}

#[test]
fn one_round_serves_all_spaces() {
    let (machine, one) = running(3);
    let two = machine.space(1);
    machine.run(3, &two);
    machine.idle(2);
    machine.log();
    machine.on(4, || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, vec!["a frame"]);
        assert!(batch.change(&one, 0, PAGE, &READ_ONLY, &PRESENT).is_none());
        assert!(!batch.is_outstanding());
        assert!(batch.change(&one, 0, PAGE, &PRESENT, &ABSENT).is_some());
        assert!(batch.change(&two, PAGE, PAGE, &PRESENT, &ABSENT).is_some());
        assert!(batch.is_outstanding());
        batch.list_mut().push("another");
        assert_eq!((machine.log(), rounds(&machine)), (vec![], (0, 0)));
        assert_eq!(batch.flush().into_inner(), ["a frame", "another"]);
        assert!(!batch.is_outstanding());
        assert_eq!(machine.log(), [(0, Did::All), (1, Did::All), (3, Did::All)]);
        batch.finish().into_inner();
    });
    assert_eq!(rounds(&machine), (1, 3), "the second time there was nothing to flush");
    assert_eq!(machine.total(Row::Event(Event::BatchRecorded)), 2);
    assert_eq!(machine.total(Row::Handled(Outcome::FullBehind)), 3);
    assert_eq!(machine.total(Row::Executed(Executed::RemoteFull)), 3);
    machine.run(2, &one);
    assert_eq!(machine.log(), [(2, Did::All)], "who borrowed finds out");
    // Whoever was reached has caught up with its own space: a single page is a single page again.
    machine.flush(0, &one, Flush::page(0, PAGE));
    assert_eq!(machine.log(), [1, 2, 0].map(|cpu| (cpu, Did::Page(0))));
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn the_agents_own_cpu_does_its_own_part() {
    let (machine, space) = running(2);
    let other = machine.space(1);
    let begin = || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, ());
        let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
        batch
    };
    begin().finish().into_inner();
    assert_eq!(machine.log(), [(1, Did::All), (0, Did::All)]);
    assert_eq!(machine.total(Row::Executed(Executed::LocalFull)), 1);

    let batch = begin();
    machine.idle(0);
    batch.finish().into_inner();
    assert_eq!(machine.log(), [(1, Did::All)], "it only borrows the space now");

    machine.run(0, &space);
    let batch = begin();
    machine.leave(0);
    machine.log();
    batch.finish().into_inner();
    assert_eq!(machine.log(), [(1, Did::All)], "it has none any more");

    machine.run(0, &other);
    machine.log();
    begin().finish().into_inner();
    assert_eq!(machine.log(), [(1, Did::All)], "what it runs has not changed");
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_request_before_the_end_finds_a_gap_and_spares_the_round_its_work() {
    let (machine, space) = running(2);
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
    machine.flush(2, &space, Flush::page(7 * PAGE, PAGE));
    assert_eq!(machine.log(), [(0, Did::All), (1, Did::All)], "more than that page is missing");
    machine.on(2, || batch.finish().into_inner());
    assert_eq!(machine.log(), []);
    assert_eq!(machine.total(Row::Handled(Outcome::Covered)), 2);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_suppressed_round_is_counted() {
    let (machine, space) = running(2);
    machine.coherence.suppress(Some(Cause::Reclaim));
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
    batch.finish().into_inner();
    assert_eq!((machine.log(), rounds(&machine)), (vec![], (0, 0)));
    assert_eq!(machine.total(Row::Event(Event::Suppressed)), 1);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn without_the_mechanism_each_change_is_flushed_at_once() {
    let machine = Machine::new(1, Switches::DEFAULT.without("batch").expect("it is a name"));
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    assert!(batch.change(&space, 3 * PAGE, PAGE, &PRESENT, &ABSENT).is_none());
    assert_eq!(machine.log(), [(1, Did::Page(3 * PAGE)), (0, Did::Page(3 * PAGE))]);
    assert!(batch.meet(&space).is_none());
    assert_eq!(machine.log(), [], "nobody else is at work");
    let gather = machine.coherence.gather(&space, Cause::Munmap, ());
    assert!(batch.meet(&space).is_none());
    assert_eq!(machine.log(), [(1, Did::All), (0, Did::All)]);
    assert!(!batch.is_outstanding());
    gather.finish().into_inner();
    batch.finish().into_inner();
    assert_eq!(machine.log(), []);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn pages_are_flushed_before_they_are_written_out_only_if_one_was_dirty() {
    let (machine, space) = running(1);
    let mut batch = machine.coherence.batch(Cause::Writeback, ());
    let _ = batch.change(&space, 0, PAGE, &CLEAN, &ABSENT);
    batch.flush_written();
    assert_eq!(machine.log(), []);
    let _ = batch.change(&space, PAGE, PAGE, &PRESENT, &ABSENT);
    let _ = batch.change(&space, 0, PAGE, &CLEAN, &ABSENT);
    batch.flush_written();
    assert_eq!(machine.log(), [(0, Did::All)]);
    let _ = batch.change(&space, 0, PAGE, &CLEAN, &ABSENT);
    batch.flush_written();
    assert_eq!(machine.log(), [], "those that were dirty have been flushed");
    batch.finish().into_inner();
    machine.leave(0);
}

#[test]
fn whoever_meets_an_operation_or_a_batch_shares_its_debt() {
    let (machine, space) = running(1);
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    assert!(batch.meet(&space).is_none());
    let gather = machine.coherence.gather(&space, Cause::Munmap, ());
    assert!(batch.meet(&space).is_some());
    batch.flush_written();
    assert_eq!(machine.log(), [(0, Did::All)], "the other's page may have been dirty");
    gather.finish().into_inner();
    batch.finish().into_inner();
    assert!(machine.coherence.settle(&space, Cause::Munmap));

    let mut first = machine.coherence.batch(Cause::Reclaim, ());
    let _ = first.change(&space, 0, PAGE, &PRESENT, &ABSENT);
    let mut second = machine.coherence.batch(Cause::Reclaim, ());
    assert!(second.meet(&space).is_some());
    assert_eq!(machine.total(Row::Event(Event::BatchMet)), 2);
    drop((first, second));
    machine.leave(0);
}

#[test]
fn what_is_recorded_is_settled_by_a_flush_of_everything() {
    let (machine, space) = running(1);
    let settle = || machine.coherence.settle(&space, Cause::Munmap);
    assert!(!settle());
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
    machine.flush(0, &space, Flush::page(5 * PAGE, PAGE));
    machine.log();
    assert!(settle(), "a page is not everything");
    assert_eq!(machine.log(), [(0, Did::All)]);
    assert!(!settle());
    assert_eq!(machine.log(), []);

    let _ = batch.change(&space, PAGE, PAGE, &PRESENT, &ABSENT);
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.settle();
    assert_eq!(gather.outstanding(), Some(Flush::all()));
    gather.finish().into_inner();
    assert!(!settle());
    let mut gather = machine.coherence.gather(&space, Cause::Munmap, ());
    gather.settle();
    assert_eq!(gather.outstanding(), None);
    gather.finish().into_inner();
    assert_eq!(machine.total(Row::Event(Event::BatchSettled)), 2);
    batch.finish().into_inner();
    machine.leave(0);
}

#[test]
fn a_batch_settles_what_it_has_recorded_and_nothing_younger() {
    let (machine, space) = running(1);
    let begin = || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, ());
        let recorded = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT).expect("it was there");
        (batch, recorded)
    };
    let settle = || machine.coherence.settle(&space, Cause::Munmap);
    let (batch, recorded) = begin();
    batch.finish().settles(&space, recorded);
    assert!(!settle());

    let ((first, older), (second, younger)) = (begin(), begin());
    first.finish().settles(&space, older);
    assert!(settle());
    second.finish().settles(&space, younger);
    assert!(!settle());
    machine.leave(0);
}

#[test]
fn what_a_batch_has_flushed_concerns_nobody_any_more() {
    let (machine, space) = running(1);
    let other = machine.space(1);
    machine.run(1, &other);
    machine.log();
    machine.on(5, || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, ());
        let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
        batch.flush().into_inner();
        assert_eq!(machine.log(), [(0, Did::All)]);
        let _ = batch.change(&other, 0, PAGE, &PRESENT, &ABSENT);
        batch.finish().into_inner();
    });
    assert_eq!((machine.log(), machine.total(Row::Sent(Cause::Reclaim))), (vec![(1, Did::All)], 2));
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_batch_that_is_dropped_or_finished_flushes_before_its_list_is_gone() {
    struct Frame(Arc<Machine>, Arc<Mutex<usize>>);
    impl Drop for Frame {
        fn drop(&mut self) {
            assert_eq!(self.0.log(), [(0, Did::All)], "a frame was freed before the flush");
            *self.1.lock().unwrap() += 1;
        }
    }
    let (machine, space) = running(1);
    let freed = Arc::new(Mutex::new(0));
    let begin = || {
        let frame = Frame(machine.clone(), freed.clone());
        let mut batch = machine.coherence.batch(Cause::Reclaim, Some(frame));
        let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
        batch
    };
    drop(begin());
    drop(begin().finish().into_inner());
    drop(begin().flush().into_inner());
    assert_eq!(*freed.lock().unwrap(), 3);
    machine.leave(0);
}
