//! A machine that drops translations on other CPUs without interrupts: whom it is asked to reach, and what the CPUs do for themselves.

use coherence::{Cause, Coherence, CpuId, CpuSet, Event, Flush, Platform, Reason, Row, Switches, Tag};

use crate::machine::{Did, Features, Machine, PAGE};
use crate::{ABSENT, PRESENT, cpus};

fn page(number: u64) -> Flush {
    Flush::page(number * PAGE, PAGE)
}

#[test]
fn nobody_is_interrupted_and_borrowers_are_reached_only_for_tables() {
    let machine = Machine::reaching_remotely(3);
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    machine.idle(3);
    machine.log();
    machine.flush(0, &space, page(5));
    assert_eq!(
        machine.log(),
        [(0, Did::Remote(cpus(&[1, 2]))), (0, Did::Page(5 * PAGE)), (0, Did::WaitForRemote)]
    );
    machine.flush(0, &space, page(5).freeing_tables());
    assert_eq!(
        machine.log(),
        [(0, Did::Remote(cpus(&[1, 2, 3]))), (0, Did::Page(5 * PAGE)), (0, Did::WaitForRemote)]
    );
    assert_eq!(machine.sent(), 0);
    assert_eq!(machine.total(Row::Event(Event::RemoteFlush)), 2);
    assert_eq!(machine.total(Row::Skipped(Reason::ReachedRemotely)), 5);
    assert_eq!(machine.total(Row::Skipped(Reason::LazyCpu)), 1);
    assert_eq!(machine.total(Row::Skipped(Reason::NoOtherCpu)), 0);
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_cpu_that_was_reached_remotely_flushes_once_when_it_comes_back() {
    let machine = Machine::reaching_remotely(3);
    let space = machine.space(0);
    (0..2).for_each(|cpu| machine.run(cpu, &space));
    (0..3).for_each(|_| {
        machine.flush(0, &space, page(5));
    });
    machine.log();
    // It misses three, of which it knows nothing, so its own range is all that it drops.
    machine.flush(1, &space, page(6));
    assert_eq!(
        machine.log(),
        [(1, Did::Remote(cpus(&[0]))), (1, Did::Page(6 * PAGE)), (1, Did::WaitForRemote)]
    );
    machine.idle(1);
    machine.run(1, &space);
    assert_eq!(machine.log(), [(1, Did::All)]);
    machine.idle(1);
    machine.run(1, &space);
    assert_eq!(machine.log(), []);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn who_is_alone_reaches_nobody_and_who_was_away_compares() {
    let machine = Machine::reaching_remotely(3);
    let [space, other] = [0, 1].map(|root| machine.space(root));
    machine.run(1, &space);
    machine.run(1, &other);
    machine.run(0, &space);
    machine.log();
    machine.flush(0, &space, page(5));
    assert_eq!(machine.log(), [(0, Did::Page(5 * PAGE))]);
    machine.run(1, &space);
    assert_eq!(machine.log(), [(1, Did::Load { root: 0, keep: false })]);
    (0..2).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn a_shared_tag_is_one_spaces_until_its_end() {
    let machine = Machine::reaching_remotely(3);
    let [first, second] = [0, 1].map(|root| machine.space(root));
    let tag = first.shared_tag().expect("there are some");
    assert_ne!(second.shared_tag(), Some(tag));
    machine.coherence.end_space(&first);
    assert_eq!(first.shared_tag(), None);
    // Once is enough: the second time it has nothing to give back.
    let heir = machine.space(2);
    machine.coherence.end_space(&first);
    assert_eq!(heir.shared_tag(), Some(tag));
    assert_ne!(machine.space(3).shared_tag(), Some(tag));
}

#[test]
fn a_machine_with_interrupts_alone_has_no_shared_tags() {
    let machine = Machine::new(3, Switches::DEFAULT);
    assert_eq!(machine.space(0).shared_tag(), None);
}

#[test]
fn cpus_that_do_not_run_are_not_waited_for() {
    let features = Features { tags: 1, descheduled: cpus(&[2, 3]), ..Features::default() };
    let machine = Machine::with_features(features, Switches::DEFAULT);
    let space = machine.space(0);
    (0..4).for_each(|cpu| machine.run(cpu, &space));
    machine.log();
    machine.flush(0, &space, page(5));
    assert_eq!(machine.log(), [(1, Did::Page(5 * PAGE)), (0, Did::Page(5 * PAGE))]);
    assert_eq!(machine.sent(), 1);
    assert_eq!(machine.total(Row::Skipped(Reason::FlushedBeforeRunning)), 2);
    machine.leave(1);
    machine.flush(0, &space, page(5));
    assert_eq!(machine.sent(), 1);
    assert_eq!(machine.total(Row::Skipped(Reason::NoOtherCpu)), 0, "there are others");
    (0..4).for_each(|cpu| machine.leave(cpu));
}

#[test]
fn devices_are_told_as_long_as_they_are_attached() {
    let features = Features { tags: 1, devices: true, ..Features::default() };
    let machine = Machine::with_features(features, Switches::DEFAULT);
    let space = machine.space(0);
    machine.flush(0, &space, page(5));
    assert_eq!(machine.log(), []);
    machine.coherence.attach_device(&space);
    let freeing = page(5).freeing_tables();
    machine.flush(0, &space, freeing);
    assert_eq!(machine.log(), [(0, Did::Devices(freeing))]);
    let mut batch = machine.coherence.batch(Cause::Reclaim, ());
    let recorded = batch.change(&space, 7 * PAGE, PAGE, &PRESENT, &ABSENT);
    assert_eq!(machine.log(), [(0, Did::Devices(page(7)))], "a device cannot catch up later");
    batch.finish().settles(&space, recorded.expect("it was there"));
    assert_eq!(machine.total(Row::Event(Event::DeviceFlush)), 2);
    machine.coherence.detach_device(&space);
    machine.flush(0, &space, page(5));
    assert_eq!(machine.log(), []);
}

/// What a machine must be able to do, and nothing besides.
struct Plain;

// SAFETY: there are no translations here that anyone could use.
unsafe impl Platform for Plain {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(0).expect("it is the first")
    }

    fn interrupt(&self, _: &CpuSet) {}

    fn interrupts_enabled(&self) -> bool {
        true
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }

    fn invalidate_page(&self, _: u64) {}

    fn invalidate_all(&self) {}

    fn load_root(&self, _: u64, _: Tag, _: bool) {}

    fn load_kernel_root(&self) {}

    fn relax(&self) {}
}

#[test]
#[should_panic(expected = "a machine that says it has none")]
fn a_plain_machine_has_no_devices() {
    let machine = Coherence::new(Plain, Switches::DEFAULT);
    machine.attach_device(&machine.new_space(0));
}
