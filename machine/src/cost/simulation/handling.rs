//! What a CPU does when an interrupt has come.
//!
//! It empties its inbox at once and answers each request in turn. The rows of the table below are those of `coherence/src/decision.rs`, which
//! depend on what meets in time and so cannot be asked beforehand; `machine/tests/predictions.rs` compares the two.

use super::super::consultation::Work;
use super::super::parameters::Time;
use super::{Errand, Event, Posted, Simulation};

/// What a CPU does that has caught up with one generation, is asked for `work` at another, while the address space is at a third; and
/// with which it has caught up then.
pub fn decide(caught_up: u64, generation: u64, current: u64, work: Work) -> (Work, u64) {
    if generation <= caught_up {
        (Work::None, caught_up)
    } else if generation == caught_up + 1 && generation == current {
        (work, current)
    } else {
        (Work::All, current)
    }
}

impl Simulation<'_> {
    /// An interrupt has come. The CPU may be in a handler, or have interrupts off.
    pub(super) fn arrive(&mut self, cpu: usize) {
        if self.cpus[cpu].will_begin {
            // The controller keeps one of a kind.
            self.tally.kept_as_one += 1;
            return;
        }
        let parameters = self.setup.parameters;
        let mut begins = self.now.max(self.cpus[cpu].handler_until);
        if begins == self.now
            && parameters.masked_share > 0.0
            && self.random.share() < parameters.masked_share
        {
            let (mean, most) = (parameters.masked_mean, parameters.masked_most);
            begins += super::nanoseconds(self.random.exponential(mean, most));
        }
        self.cpus[cpu].will_begin = true;
        if begins > self.now {
            self.at(begins, Event::Begin(cpu));
        } else {
            self.begin(cpu);
        }
    }

    /// The handler, from its first cycle to its last.
    pub(super) fn begin(&mut self, cpu: usize) {
        // A tick came in between.
        if self.cpus[cpu].handler_until > self.now {
            let later = self.cpus[cpu].handler_until;
            return self.at(later, Event::Begin(cpu));
        }
        self.cpus[cpu].will_begin = false;
        self.tally.received[self.cpus[cpu].mode as usize] += 1;
        let parameters = self.setup.parameters;
        let mut time = parameters.cycles(parameters.interrupt_entry);
        let mut walks = 0;
        for posted in std::mem::take(&mut self.cpus[cpu].inbox) {
            let (work, again) = self.run_errand(cpu, &posted);
            let answered = if self.setup.policy.early { time } else { time + work };
            self.answer(cpu, posted.initiator, self.now + answered);
            time += work;
            walks += again;
        }
        time += parameters.cycles(parameters.interrupt_exit);
        self.steal(cpu, time + walks);
    }

    /// What an errand takes, and what the walks take that follow.
    fn run_errand(&mut self, cpu: usize, posted: &Posted) -> (Time, Time) {
        let parameters = self.setup.parameters;
        match posted.errand {
            Errand::Barrier => (parameters.cycles(parameters.locked_operation), 0),
            Errand::Private(work) => (self.flush_time(work), self.walks(work)),
            Errand::Flush { generation, work } => {
                let work = self.decide(cpu, generation, work);
                (self.flush_time(work), self.walks(work))
            }
        }
    }

    /// The initiator's own flush.
    pub(super) fn execute(&mut self, cpu: usize, generation: u64, work: Work) -> Time {
        let work = self.decide(cpu, generation, work);
        self.flush_time(work)
    }

    /// What a CPU that is asked for `work` at `generation` invalidates.
    fn decide(&mut self, cpu: usize, generation: u64, work: Work) -> Work {
        if !self.setup.policy.compares {
            return work;
        }
        let (work, caught_up) = decide(self.cpus[cpu].caught_up, generation, self.generation, work);
        self.cpus[cpu].caught_up = caught_up;
        work
    }

    pub(super) fn flush_time(&self, work: Work) -> Time {
        let parameters = self.setup.parameters;
        match work {
            Work::None => 0,
            Work::Pages(pages) => parameters.cycles(parameters.invalidate_page * pages as f64),
            Work::All => parameters.cycles(parameters.invalidate_all),
        }
    }

    fn walks(&self, work: Work) -> Time {
        let parameters = self.setup.parameters;
        match work {
            Work::None => 0,
            Work::Pages(pages) => parameters.cycles(parameters.refill * pages as f64),
            Work::All => parameters.cycles(parameters.refill * parameters.working_set),
        }
    }

    /// The initiator learns of it: each answer is a line of its own, or all count down one.
    fn answer(&mut self, from: usize, initiator: usize, time: Time) {
        let line = self.topology.line(from, initiator);
        let arrives = if self.setup.parameters.shared_counter > 0.0 {
            // Whoever waits reads it all the time, so it goes to him and back for every answer.
            let locked = self.setup.parameters.cycles(self.setup.parameters.locked_operation);
            self.cpus[initiator].counter.write(initiator, time, 0, &self.topology);
            self.cpus[initiator].counter.write(from, time, locked, &self.topology) + line
        } else {
            time + line
        };
        let state = &mut self.cpus[initiator];
        state.outstanding -= 1;
        state.last_answer = state.last_answer.max(arrives);
        if state.outstanding == 0 && state.waits_for_answers {
            let last = state.last_answer;
            self.answered(initiator, last);
        }
    }
}
