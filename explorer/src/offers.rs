//! What may happen next, and at what price.
//!
//! * **CPUs and their buffers**: the CPU whose turn it is goes on for nothing, as does any other when it cannot; everything else is a
//!   deviation, and costs 1. The free choice comes first, so that a schedule is what it has besides.
//! * **Hardware** acts before a step for which that could matter, and when nobody can go on.
//! * **Nothing** is offered when all CPUs are idle, which is the end, or wait for each other, which is a finding.

use crate::choice::{Choice, Priced};
use crate::execution::{Execution, Processor};
use crate::processor::{SharedHardware, place};
use crate::{Access, Step};

/// Offers what the hardware will do sooner or later: for nothing if there is nothing else to do.
pub(crate) fn offer_due(hardware: &SharedHardware, next: &Step, offers: &mut Vec<Priced>) {
    let price = u8::from(!offers.is_empty());
    if price == 0 || matters(next) {
        let mut due = Vec::new();
        hardware.due(&mut due);
        offers.extend(due.into_iter().map(|event| Priced { choice: Choice::Hardware(event), price }));
    }
}

/// Whether what the hardware does could matter for a CPU that makes this step next.
fn matters(next: &Step) -> bool {
    next.changes_memory() || matches!(next, Step::Wait | Step::Idle)
}

pub(crate) fn offer_hardware(
    hardware: &SharedHardware,
    next: &Step,
    offers: &mut Vec<Priced>,
    all_idle: bool,
) {
    let mut events = Vec::new();
    if all_idle || matters(next) {
        hardware.events(next, &mut events);
    }
    offers.extend(events.into_iter().map(|event| Priced { choice: Choice::Hardware(event), price: 1 }));
}

impl Execution {
    /// Lists the choices there are about CPUs and buffers, the free one first, and says what the CPU of that one does next.
    /// Nothing is offered if all CPUs are idle or wait for each other.
    pub(crate) fn offer(&self, offers: &mut Vec<Priced>) -> Step {
        let count = self.processors.len();
        let price = u8::from(self.can_proceed(self.current));
        // Stores do not stay in a buffer for ever.
        let is_waiting = |cpu: &usize| matches!(self.processors[*cpu].step, Step::Wait | Step::Idle);
        let (at_rest, held_up): (Vec<_>, Vec<_>) =
            (0..count).filter(|cpu| self.memory.holds(*cpu)).partition(is_waiting);
        offers.extend(at_rest.into_iter().map(|cpu| Priced { choice: Choice::Drain(cpu), price: 0 }));
        for offset in 0..count {
            let cpu = (self.current + offset) % count;
            self.offer_cpu(cpu, if offset == 0 { 0 } else { price }, offers);
        }
        if offers.is_empty() {
            return Step::Idle;
        }
        let next = offers[0].choice.cpu().map_or(Step::Idle, |cpu| self.processors[cpu].step);
        offers.extend(held_up.into_iter().map(|cpu| Priced { choice: Choice::Drain(cpu), price: 1 }));
        let unmaskable = (0..count).filter(|cpu| self.can_take_unmaskable(*cpu)).map(Choice::Unmaskable);
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        let exchanges = pairs.filter(|(one, other)| self.can_exchange(*one, *other));
        let exchanges = exchanges.map(|(one, other)| Choice::Exchange(one, other));
        offers.extend(unmaskable.chain(exchanges).map(|choice| Priced { choice, price: 1 }));
        next
    }

    fn can_take_unmaskable(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        let is_running = !matches!(processor.step, Step::Begin | Step::Idle | Step::Failed);
        processor.unmaskable > 0 && !processor.paused && !processor.beyond_masks && is_running
    }

    fn can_exchange(&self, one: usize, other: usize) -> bool {
        let can_move = |cpu: usize| {
            let processor = &self.processors[cpu];
            let is_there = !matches!(processor.step, Step::Begin | Step::Failed);
            processor.preemptible && !processor.masked && is_there
        };
        let is_idle = |cpu: usize| matches!(self.processors[cpu].step, Step::Idle);
        can_move(one) && can_move(other) && !(is_idle(one) && is_idle(other))
    }

    fn offer_cpu(&self, cpu: usize, price: u8, offers: &mut Vec<Priced>) {
        let processor = &self.processors[cpu];
        let (can_run, can_take) = (self.can_run(cpu), self.can_take(cpu));
        let mut offer = |choice, price| offers.push(Priced { choice, price });
        if can_take && !(processor.postponed && can_run) {
            offer(Choice::Interrupt(cpu), price);
            if can_run && !matches!(processor.step, Step::Wait) {
                offer(Choice::RunPostponing(cpu), price + 1);
            }
            return;
        }
        if can_run {
            offer(Choice::Run(cpu), price);
            let stores = matches!(
                processor.step,
                Step::Memory { access: Access::Store, .. } | Step::Machine { stores: true, .. }
            );
            if stores && !self.memory.holds(cpu) {
                offer(Choice::RunHolding(cpu), price + 1);
            }
        }
        if can_take {
            offer(Choice::Interrupt(cpu), price + 1);
        }
    }

    fn can_run(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        if processor.paused {
            return false;
        }
        match processor.step {
            Step::Wait => processor.watched.iter().any(|(word, seen)| word.get() != *seen),
            Step::Idle | Step::Failed => false,
            _ => true,
        }
    }

    fn can_take(&self, cpu: usize) -> bool {
        let processor = &self.processors[cpu];
        processor.pending && !processor.masked && !processor.paused && !matches!(processor.step, Step::Begin)
    }

    fn can_proceed(&self, cpu: usize) -> bool {
        self.can_run(cpu) || self.can_take(cpu)
    }

    pub(crate) fn is_stuck(&mut self) -> bool {
        self.processors.iter().any(|processor| matches!(processor.step, Step::Wait) || processor.pending)
    }

    pub(crate) fn fail_stuck(&mut self) {
        let describe = |(cpu, processor): (usize, &Processor)| {
            let what = match (processor.step, processor.last_line) {
                (Step::Wait, Some(line)) => format!("waits at {}", place(line)),
                _ => "has nothing to do".to_owned(),
            };
            let off = if processor.masked { " with interrupts off" } else { "" };
            let pending = if processor.pending { ", an interrupt before it" } else { "" };
            format!("CPU {cpu} {what}{off}{pending}")
        };
        let all: Vec<_> = self.processors.iter().enumerate().map(describe).collect();
        self.fail(format!("nobody can go on: {}", all.join("; ")));
    }
}
