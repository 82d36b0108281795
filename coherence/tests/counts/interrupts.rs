//! What an interrupt asks for, and what a CPU does about it that has moved on before it arrives.

use coherence::{Asked, Cause, Event, Flush, Mode, Outcome, Registration, Row, Switches};

use crate::machine::{Did, Features, Machine, PAGE};
use crate::{ABSENT, PRESENT};

#[test]
fn it_is_known_what_an_interrupt_asks_for() {
    let features = Features { tags: 1, logs_interrupts: true, ..Features::default() };
    let machine = Machine::with_features(features, Switches::DEFAULT);
    let space = machine.space(0);
    machine.run(1, &space);
    machine.log();
    let asked = |flushes, barriers| (1, Did::Asked(Asked { flushes, barriers }));
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!(machine.log(), [asked(1, 0), (1, Did::Page(0))], "before anybody can know of the answer");
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(machine.log(), [asked(0, 1)]);
    machine.on(0, || machine.coherence.core_barrier(&space));
    let serialised = [(1, Did::Serialise), (0, Did::Serialise)];
    assert_eq!(machine.log(), [asked(0, 1), serialised[0], serialised[1]], "the caller is the last");
    machine.on(0, || machine.coherence.sequence_barrier(&space));
    assert_eq!(machine.log(), [asked(0, 1)]);
    machine.on(0, || {
        let mut batch = machine.coherence.batch(Cause::Reclaim, ());
        let _ = batch.change(&space, 0, PAGE, &PRESENT, &ABSENT);
        batch.finish().into_inner();
    });
    assert_eq!(machine.log(), [asked(1, 0), (1, Did::All)]);
    machine.leave(1);
}

#[test]
fn an_interrupt_serves_whoever_has_asked_meanwhile() {
    let features = Features { tags: 1, logs_interrupts: true, ..Features::default() };
    let machine = Machine::with_features(features, Switches::DEFAULT);
    let space = machine.space(0);
    machine.run(1, &space);
    machine.log();
    let theirs = space.clone();
    machine.meanwhile(move |machine| {
        // Its interrupt takes both.
        machine.flush(2, &theirs, Flush::page(0, PAGE));
    });
    machine.on(3, || machine.coherence.barrier(&space));
    let asked = |flushes, barriers| (1, Did::Asked(Asked { flushes, barriers }));
    // CPU 3's was in the inbox already, so CPU 2 sent none; and the one that CPU 3 sent has done it all.
    assert_eq!(machine.log(), [asked(1, 1), (1, Did::Page(0))]);
    assert_eq!((machine.sent(), machine.total(Row::Handled(Outcome::Barrier))), (1, 1));
    machine.leave(1);
}

#[test]
fn whoever_waits_with_interrupts_off_answers_all_the_same() {
    let features = Features { tags: 1, deaf: true, ..Features::default() };
    let machine = Machine::with_features(features, Switches::DEFAULT);
    let space = machine.space(0);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    machine.flush(0, &space, Flush::page(0, PAGE));
    assert_eq!(machine.log(), [0, 1, 2].map(|cpu| (cpu, Did::Page(0))));
    assert_eq!(machine.total(Row::Event(Event::AnsweredWaiting)), 2);
    assert_eq!(machine.total(Row::Received(Mode::User)), 0);
    assert_eq!(machine.total(Row::Handled(Outcome::Ranged)), 2);
    machine.flush(0, &space, Flush::page(PAGE, PAGE));
    assert_eq!(
        machine.log(),
        [0, 1, 2].map(|cpu| (cpu, Did::Page(PAGE))),
        "the first answer is not the second's"
    );
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_request_is_what_was_posted_last() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    machine.run(1, &space);
    machine.flush(0, &space, Flush::page(0, PAGE));
    machine.on(0, || machine.coherence.core_barrier(&space));
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(machine.total(Row::Handled(Outcome::Barrier)), 2);
    assert_eq!(machine.serialised(), 2, "one target, and the caller; not for the last");
    machine.leave(1);
}

#[test]
fn who_goes_idle_before_it_hears_of_a_registration_receives_nothing() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    machine.run(1, &space);
    machine.meanwhile(|machine| machine.idle(1));
    machine.on(4, || machine.coherence.register(&space, Registration::Global));
    assert_eq!(machine.total(Row::Handled(Outcome::Barrier)), 1);
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(machine.sent(), 1, "it only borrows the space");
    machine.run(1, &space);
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(machine.sent(), 2);
    machine.leave(1);
}

#[test]
fn who_lets_go_before_it_hears_of_a_registration_receives_nothing() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    machine.run(1, &space);
    let theirs = space.clone();
    machine.meanwhile(move |machine| {
        machine.idle(1);
        machine.flush(0, &theirs, Flush::all().freeing_tables());
    });
    machine.on(4, || machine.coherence.register(&space, Registration::Global));
    let before = machine.sent();
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(machine.sent(), before, "it has let go of the space, though its kernel does not know");
    machine.leave(1);
}
