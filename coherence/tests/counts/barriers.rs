//! Exact counts of barriers: who is interrupted for one, by where each CPU is.

use std::cell::Cell;

use coherence::{BarrierFlags, Cause, CpuId, Event, Mode, Outcome, Reason, Registration, Row, Switches};

use crate::cpus;
use crate::machine::Machine;

/// What of the ledger is about barriers: interrupts sent, CPUs spared as they were in the kernel.
fn counted(machine: &Machine) -> (u64, u64) {
    (machine.total(Row::Sent(Cause::Membarrier)), machine.total(Row::Skipped(Reason::InKernel)))
}

#[test]
fn only_cpus_in_user_mode_are_interrupted() {
    let machine = Machine::counting_crossings();
    let [space, other] = [machine.space(0), machine.space(1)];
    (0..5).for_each(|cpu| machine.run(cpu, &space));
    machine.run(5, &other);
    machine.call(0);
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(counted(&machine), (4, 0));
    machine.call(1);
    machine.call(2);
    machine.idle(2);
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(counted(&machine), (4 + 2, 1), "CPU 1 is in the kernel, CPU 2 idle, CPU 5 elsewhere");
    assert_eq!(machine.total(Row::Received(Mode::User)), 6);
    assert_eq!(machine.total(Row::Handled(Outcome::Barrier)), 6);
    assert_eq!(machine.total(Row::Requested(Cause::Membarrier)), 2);
    (0..6).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn without_crossings_every_cpu_of_the_space_is_interrupted() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(3);
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(counted(&machine), (2, 0));
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn barriers_for_all_reach_those_that_are_registered() {
    let machine = Machine::counting_crossings();
    let [registered, child, other] = [0, 1, 2].map(|root| machine.space(root));
    machine.run(1, &registered);
    machine.run(2, &registered);
    machine.run(3, &other);
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (0, 0));

    machine.call(1);
    machine.on(1, || machine.coherence.register(&registered, Registration::Global));
    assert_eq!(counted(&machine), (1, 0), "the other CPU of the space is told");
    machine.on(1, || machine.coherence.register(&registered, Registration::Global));
    assert_eq!(counted(&machine), (1, 0), "once is enough");
    machine.back(1);
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (1 + 2, 0));

    child.inherit_registrations(&registered);
    machine.run(3, &child);
    machine.run(2, &other);
    machine.idle(1);
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (3 + 1, 0), "CPU 3 runs the child; the others have left");
    (1..4).for_each(|cpu| machine.leave(cpu));
    machine.on(4, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (4, 0));
}

#[test]
fn barriers_for_code_reach_cpus_in_the_kernel_too() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..3).for_each(|cpu| machine.run(cpu, &space));
    (0..2).for_each(|cpu| machine.call(cpu));
    assert!(!space.is_registered(Registration::Cores));
    machine.on(0, || machine.coherence.register(&space, Registration::Cores));
    assert!(space.is_registered(Registration::Cores) && !space.is_registered(Registration::Private));
    machine.on(0, || machine.coherence.core_barrier(&space));
    assert_eq!(counted(&machine), (2, 0));
    assert_eq!(machine.serialised(), 3, "two targets, and the caller");
    machine.idle(1);
    machine.run(1, &space);
    assert_eq!(machine.serialised(), 1, "it may have fetched old instructions before it went idle");
    (0..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn sequences_are_restarted_wherever_their_process_runs() {
    let machine = Machine::counting_crossings();
    let [space, other] = [machine.space(0), machine.space(1)];
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    machine.run(4, &other);
    (0..2).for_each(|cpu| machine.call(cpu));
    machine.idle(3);
    machine.on(0, || machine.coherence.register(&space, Registration::Sequences));
    assert!(space.is_registered(Registration::Sequences) && !space.is_registered(Registration::Cores));
    machine.on(0, || machine.coherence.sequence_barrier(&space));
    assert_eq!(counted(&machine), (2, 0), "CPU 1 may go on in the middle of one; CPU 3 has left");
    assert_eq!((machine.restarted(), machine.serialised()), (2, 0), "not on the caller's CPU");
    let restarted_by = |cpu| {
        machine.on(0, || machine.coherence.sequence_barrier_on(&space, CpuId::new(cpu).expect("a CPU")));
        machine.restarted()
    };
    assert_eq!([0, 1, 2, 3, 4, 5].map(restarted_by), [0, 1, 1, 0, 0, 0]);
    assert_eq!(machine.total(Row::Requested(Cause::Membarrier)), 1 + 6, "each has a round of its own");
    (0..5).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_grace_period_waits_for_cpus_in_user_mode() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    machine.call(0);
    machine.call(1);
    let mut period = machine.coherence.begin_grace_period(cpus(&[1, 2, 3]));
    assert!(!period.is_over(&machine.coherence));
    machine.call(2);
    machine.back(2);
    assert!(!period.is_over(&machine.coherence), "CPU 3 has not moved");
    machine.call(3);
    machine.back(1);
    assert!(period.is_over(&machine.coherence));
    assert_eq!(machine.sent(), 0);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn flags_choose_the_form() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.call(0);
    let waits = Cell::new(0);
    let by_flags = |flags| {
        machine.coherence.barrier_by_flags(&space, BarrierFlags::new(flags).unwrap(), cpus(&[1]), || {
            waits.set(waits.get() + 1);
            if waits.get() == 3 {
                machine.call(1);
                machine.back(1);
            }
        });
        (machine.sent(), waits.get())
    };
    assert_eq!(by_flags(BarrierFlags::QUERY | BarrierFlags::EXPEDITED), (0, 0));
    assert_eq!(by_flags(BarrierFlags::EXPEDITED), (1, 0));
    assert_eq!(by_flags(BarrierFlags::DELAYED), (1, 3));
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_suppressed_barrier_is_counted() {
    let machine = Machine::counting_crossings();
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.coherence.suppress(Some(Cause::Membarrier));
    machine.on(0, || machine.coherence.barrier(&space));
    assert_eq!(counted(&machine), (0, 0));
    assert_eq!(machine.total(Row::Event(Event::Suppressed)), 1);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
#[should_panic(expected = "a grace period needs counted crossings")]
fn a_grace_period_needs_crossings() {
    let machine = Machine::new(1, Switches::DEFAULT);
    machine.coherence.begin_grace_period(cpus(&[1]));
}

#[test]
fn a_caller_that_is_registered_itself_is_not_interrupted() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    machine.on(0, || machine.coherence.register(&space, Registration::Global));
    machine.on(0, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (2, 0), "once to be told, once for the barrier");
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn registrations_do_not_hide_each_other() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let [space, child] = [0, 1].map(|root| machine.space(root));
    machine.run(1, &space);
    Registration::ALL
        .iter()
        .for_each(|registration| machine.on(1, || machine.coherence.register(&space, *registration)));
    child.inherit_registrations(&space);
    assert!(Registration::ALL.iter().all(|registration| child.is_registered(*registration)));
    machine.run(2, &child);
    assert_eq!(machine.serialised(), 1, "the child is registered for cores");
    machine.on(0, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (2, 0));
    (1..3).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn who_registers_another_process_stays_what_it_is() {
    let machine = Machine::new(1, Switches::DEFAULT);
    let [space, other] = [0, 1].map(|root| machine.space(root));
    machine.run(1, &space);
    machine.on(1, || machine.coherence.register(&space, Registration::Global));
    machine.on(1, || machine.coherence.register(&other, Registration::Global));
    machine.on(2, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (1, 0), "CPU 1 still runs a registered process");
    let third = machine.space(2);
    machine.run(1, &third);
    machine.on(1, || machine.coherence.register(&machine.space(3), Registration::Global));
    machine.on(2, || machine.coherence.global_barrier());
    assert_eq!(counted(&machine), (1, 0), "CPU 1 runs one that is not registered");
    machine.leave(1);
}
