//! Who is told of a change, and when the interrupts arrive.
//!
//! ```text
//!  initiator                                              each target
//!  bookkeeping
//!  [flush here, if that comes first]
//!  a post for each target; a write for each cluster  ---> deliver by distance [+ the hypervisor]
//!  [flush here, meanwhile]                                [interrupts off: later]  entry; flush; answer
//!  wait                                          <------- a line for each answer, or one counter
//! ```

use coherence::Mode;

use super::super::consultation::{Request, Work};
use super::super::parameters::{Time, nanoseconds};
use super::super::policy::Means;
use super::super::workload::Change;
use super::{Errand, Event, Position, Posted, Simulation};

impl Simulation<'_> {
    /// One request of a change, after its bookkeeping; returns how long the initiator works for it.
    pub(super) fn send_request(&mut self, me: usize, change: &Change, index: usize) -> Time {
        let request = self.answers[&super::key(change)][index];
        let parameters = self.setup.parameters;
        let is_mine = self.setup.policy.sharers_only && !change.shared;
        if is_mine {
            return self.flush_time(request.here);
        }
        self.generation += 1;
        let here = self.execute(me, self.generation, request.here);
        if self.is_broadcast() {
            return here + self.broadcast(request.here);
        }
        if self.is_put_off(me, change) {
            return here + nanoseconds(parameters.lazy_record);
        }
        let targets = self.targets(me, &request);
        let errand = Errand::Flush { generation: self.generation, work: request.there };
        let after = if self.setup.policy.concurrent { 0 } else { here };
        here + self.send(me, &targets, errand, after)
    }

    /// A flush of what only the targets have loaded.
    pub(super) fn send_private(&mut self, me: usize, targets: &[usize], pages: u64) -> Time {
        let work = if pages == u64::MAX { Work::All } else { Work::Pages(pages) };
        if self.is_broadcast() {
            return self.broadcast(work);
        }
        self.send(me, targets, Errand::Private(work), 0)
    }

    /// A memory barrier on the CPUs that run the program.
    pub(super) fn send_barrier(&mut self, me: usize) -> Time {
        let spares_kernel = self.setup.policy.barrier_user_only;
        let [user, kernel, lazy] = self.barrier;
        let targets: Vec<usize> = self
            .others(me)
            .filter(|cpu| match (self.cpus[*cpu].position, self.cpus[*cpu].mode) {
                (Position::Active, Mode::User) => user,
                (Position::Active, _) => kernel || !spares_kernel,
                (Position::Lazy, _) => lazy,
                (Position::Absent, _) => false,
            })
            .collect();
        self.send(me, &targets, Errand::Barrier, 0)
    }

    fn others(&self, me: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.cpus.len()).filter(move |cpu| *cpu != me)
    }

    /// Enough CPUs run the program for the hardware to be told.
    fn is_broadcast(&self) -> bool {
        let running = self.cpus.iter().filter(|cpu| cpu.position == Position::Active).count();
        self.setup.policy.means == Means::Broadcast && running as f64 >= self.setup.parameters.broadcast_from
    }

    /// All CPUs have flushed when this time is over.
    fn broadcast(&mut self, work: Work) -> Time {
        self.tally.broadcasts += 1;
        for cpu in &mut self.cpus {
            cpu.caught_up = self.generation;
        }
        let parameters = self.setup.parameters;
        let orders = match work {
            Work::Pages(pages) => pages.div_ceil(8) as f64,
            Work::All | Work::None => 1.0,
        };
        let furthest = (0..self.cpus.len()).map(|cpu| self.topology.line(0, cpu)).max().unwrap_or(0);
        nanoseconds(parameters.broadcast * orders + parameters.broadcast_wait) + furthest
    }

    /// Whether the change waits for other CPUs' ticks: rights that are taken away cannot, and the entries are few.
    fn is_put_off(&mut self, me: usize, change: &Change) -> bool {
        let is_lazy = self.setup.policy.means == Means::Lazily
            && change.cause != coherence::Cause::Mprotect
            && self.cpus[me].lazy_used < self.setup.parameters.lazy_slots as u64;
        if is_lazy {
            self.cpus[me].lazy_used += 1;
            self.lazy_entries += 1;
            self.tally.put_off += 1;
        }
        is_lazy
    }

    /// Who is told, by where each CPU is: as `coherence` does it, and then what the policy spares.
    fn targets(&mut self, me: usize, request: &Request) -> Vec<usize> {
        let user_only = self.setup.policy.user_only;
        let is_told = |cpu: &super::Cpu| match cpu.position {
            Position::Active => request.tells_running && (!user_only || cpu.mode == Mode::User),
            Position::Lazy => request.tells_lazy,
            Position::Absent => false,
        };
        let targets: Vec<usize> = self.others(me).filter(|cpu| is_told(&self.cpus[*cpu])).collect();
        for target in &targets {
            if self.cpus[*target].position == Position::Lazy && request.lazy_lets_go {
                self.cpus[*target].position = Position::Absent;
            }
        }
        targets
    }

    /// Posts an errand and sends the interrupts, `after` this time; returns how long that takes the initiator.
    fn send(&mut self, me: usize, targets: &[usize], errand: Errand, after: Time) -> Time {
        let parameters = self.setup.parameters;
        let write = parameters.cycles(parameters.interrupt_write + parameters.send_exit);
        let cluster = parameters.cluster as usize;
        let told: Vec<(usize, Time)> =
            targets.iter().filter_map(|target| Some((*target, self.time_until_it_runs()?))).collect();
        let mut time = after + nanoseconds(parameters.post * told.len() as f64);
        let mut written = None;
        for (target, away) in told {
            self.cpus[me].outstanding += 1;
            let is_pending = !self.cpus[target].inbox.is_empty();
            self.cpus[target].inbox.push(Posted { initiator: me, errand });
            if is_pending && self.setup.policy.merges {
                self.tally.merged += 1;
                continue;
            }
            if written.replace(target / cluster) != Some(target / cluster) {
                time += write;
            }
            self.tally.sent += 1;
            self.thread(me).sent += 1;
            let arrives = self.now + time + self.topology.deliver(me, target) + away;
            self.at(arrives, Event::Arrive(target));
        }
        time - after
    }

    /// How long it takes until a virtual CPU runs; none if it need not be told because it does not.
    fn time_until_it_runs(&mut self) -> Option<Time> {
        let parameters = self.setup.parameters;
        if parameters.preempted_share == 0.0 || self.random.share() >= parameters.preempted_share {
            return Some(0);
        }
        let away = nanoseconds(self.random.share() * parameters.preempted_most);
        (parameters.flush_when_run == 0.0).then_some(away)
    }
}
