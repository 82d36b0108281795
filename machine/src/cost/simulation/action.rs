//! What a thread does, piece by piece.
//!
//! A step of a program becomes some actions, each of which takes no time, takes some, or waits for somebody.

use coherence::Mode;

use super::super::locks::Hold;
use super::super::parameters::{Time, nanoseconds};
use super::super::policy::Reclaim;
use super::super::workload::{Change, LockName, Step};
use super::{Position, Simulation, Thread};

const AREAS: usize = 0;
const LISTS: usize = 1;
/// Tables' locks follow, and then those of CPUs that have their own.
pub(super) const FIRST_TABLE: usize = 2;

/// A piece of a step.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Work(Time),
    Mode(Mode),
    /// A locked operation on the lock's line.
    Touch(usize),
    Take(usize, Hold),
    Release(usize, Hold),
    Downgrade(usize),
    /// Tell of a change.
    Flush(Change),
    /// From here on its caller waits.
    FlushBegins,
    /// One of its requests.
    Request(Change, usize),
    /// Tell CPUs to flush something of their own.
    Private(Vec<usize>, u64),
    Barrier,
    /// Wait for all answers.
    Await,
    /// Before user mode: flush what was not told.
    CatchUp,
    Reclaim,
    Hop,
    Done,
}

/// How an action ended.
enum Progress {
    Now,
    After(Time),
    At(Time),
    Waits,
}

impl Simulation<'_> {
    /// Goes on with a CPU's thread until that takes time.
    pub(super) fn advance(&mut self, cpu: usize) {
        // A hop moves the thread to another CPU, which goes on by itself.
        while let Some(action) = self.next_action(cpu) {
            match self.act(cpu, action) {
                Progress::Now => {}
                Progress::After(time) => return self.works(cpu, time),
                Progress::At(time) => {
                    let wait = time - self.now;
                    return self.works(cpu, wait);
                }
                Progress::Waits => return,
            }
        }
    }

    fn next_action(&mut self, cpu: usize) -> Option<Action> {
        loop {
            let may_begin = self.is_on();
            let thread = self.cpus[cpu].thread.as_mut()?;
            if let Some(action) = thread.todo.pop_front() {
                return Some(action);
            }
            if thread.next == 0 {
                if !may_begin {
                    self.cpus[cpu].thread = None;
                    return None;
                }
                self.started += 1;
            }
            let step = self.program[thread.next];
            thread.next = (thread.next + 1) % self.program.len();
            let actions = self.actions(cpu, step);
            self.thread(cpu).todo.extend(actions);
        }
    }

    pub(super) fn thread(&mut self, cpu: usize) -> &mut Thread {
        self.cpus[cpu].thread.as_mut().expect("only a CPU with a thread acts")
    }

    fn actions(&mut self, cpu: usize, step: Step) -> Vec<Action> {
        let parameters = self.setup.parameters;
        let policy = self.setup.policy;
        let word = if policy.user_only { parameters.cycles(parameters.mode_word / 2.0) } else { 0 };
        let crossing = nanoseconds(parameters.system_call / 2.0) + word;
        match step {
            Step::User(time) | Step::Kernel(time) => vec![Action::Work(time)],
            Step::Enter => vec![Action::Mode(Mode::Kernel), Action::Work(crossing)],
            Step::Leave => vec![Action::Work(crossing), Action::Mode(Mode::User), Action::CatchUp],
            Step::Lock(name, hold) => {
                let lock = self.lock(cpu, name);
                vec![Action::Touch(lock), Action::Take(lock, hold)]
            }
            Step::Unlock(name, hold) => {
                let lock = self.lock(cpu, name);
                vec![Action::Touch(lock), Action::Release(lock, hold)]
            }
            Step::Downgrade(name) => vec![Action::Downgrade(self.lock(cpu, name))],
            Step::Flush(change) => vec![Action::Flush(change)],
            Step::Barrier => vec![Action::FlushBegins, Action::Barrier, Action::Await],
            Step::Reclaim => vec![Action::Reclaim],
            Step::Hop => vec![Action::Hop],
            Step::Done => vec![Action::Done],
        }
    }

    fn lock(&mut self, cpu: usize, name: LockName) -> usize {
        let own = FIRST_TABLE + self.setup.case.cpus + cpu;
        match name {
            LockName::Areas if self.setup.policy.own_locks => own,
            LockName::Table if self.setup.policy.own_locks => FIRST_TABLE + cpu,
            LockName::Areas => AREAS,
            LockName::Lists => LISTS,
            LockName::Table => FIRST_TABLE + self.thread(cpu).table,
        }
    }

    fn act(&mut self, cpu: usize, action: Action) -> Progress {
        match action {
            Action::Work(time) => Progress::After(time),
            Action::Mode(mode) => {
                self.cpus[cpu].mode = mode;
                Progress::Now
            }
            Action::Touch(lock) => {
                let parameters = self.setup.parameters;
                let locked = parameters.cycles(parameters.locked_operation);
                Progress::At(self.locks[lock].line.write(cpu, self.now, locked, &self.topology))
            }
            Action::Take(lock, hold) => {
                if self.locks[lock].take(cpu, hold) {
                    Progress::Now
                } else {
                    Progress::Waits
                }
            }
            Action::Release(lock, hold) => {
                let next = self.locks[lock].release(hold);
                self.hand_over(cpu, &next)
            }
            Action::Downgrade(lock) => {
                let next = self.locks[lock].downgrade();
                self.hand_over(cpu, &next)
            }
            Action::Flush(change) => self.flush(cpu, change),
            Action::FlushBegins => {
                self.thread(cpu).flush_began = self.now;
                Progress::Now
            }
            Action::Request(change, index) => Progress::After(self.send_request(cpu, &change, index)),
            Action::Private(targets, pages) => Progress::After(self.send_private(cpu, &targets, pages)),
            Action::Barrier => Progress::After(self.send_barrier(cpu)),
            Action::Await => self.wait(cpu),
            Action::CatchUp => self.catch_up(cpu),
            Action::Reclaim => self.reclaim(cpu),
            Action::Hop => self.hop(cpu),
            Action::Done => self.done(cpu),
        }
    }

    fn hand_over(&mut self, from: usize, next: &[usize]) -> Progress {
        for cpu in next {
            let time = self.now + self.topology.line(from, *cpu);
            self.goes_on(*cpu, time);
        }
        Progress::Now
    }

    /// The requests that the change causes, each with a wait for its answers.
    fn flush(&mut self, cpu: usize, change: Change) -> Progress {
        let requests = self.answers[&super::key(&change)].len();
        let bookkeeping = Action::Work(self.setup.parameters.cycles(self.setup.parameters.flush_fixed));
        let todo = (0..requests).flat_map(|index| {
            [Action::FlushBegins, bookkeeping.clone(), Action::Request(change, index), Action::Await]
        });
        self.thread(cpu).todo.extend(todo);
        Progress::Now
    }

    fn wait(&mut self, cpu: usize) -> Progress {
        let state = &mut self.cpus[cpu];
        if state.outstanding > 0 || state.last_answer > self.now {
            let is_known = state.outstanding == 0;
            let time = state.last_answer;
            state.waits_for_answers = true;
            if is_known {
                self.answered(cpu, time);
            }
            return Progress::Waits;
        }
        self.note_wait(cpu, self.now);
        Progress::Now
    }

    /// All answers have come, or will have by that time.
    pub(super) fn answered(&mut self, cpu: usize, time: Time) {
        self.cpus[cpu].waits_for_answers = false;
        self.note_wait(cpu, time);
        self.goes_on(cpu, time);
    }

    fn note_wait(&mut self, cpu: usize, time: Time) {
        let began = self.thread(cpu).flush_began;
        self.tally.waits.push(time - began);
    }

    fn catch_up(&mut self, cpu: usize) -> Progress {
        if !self.setup.policy.user_only || self.cpus[cpu].caught_up == self.generation {
            return Progress::Now;
        }
        self.cpus[cpu].caught_up = self.generation;
        Progress::After(self.drop_everything())
    }

    /// What flushing everything costs, with the walks that follow.
    pub(super) fn drop_everything(&self) -> Time {
        let parameters = self.setup.parameters;
        parameters.cycles(parameters.invalidate_all + parameters.refill * parameters.working_set)
    }

    /// A page has come in. How pages of others are flushed is the policy's business.
    fn reclaim(&mut self, cpu: usize) -> Progress {
        let parameters = self.setup.parameters;
        let batch = parameters.reclaim_batch as u64;
        self.pooled += 1;
        let thread = self.thread(cpu);
        thread.reclaimable += 1;
        let is_full = thread.reclaimable >= batch;
        let owners = match self.setup.policy.reclaim {
            Reclaim::EachPage => vec![self.random.below(self.cpus.len())],
            Reclaim::Batches if is_full => self.owners_of(batch),
            Reclaim::Pools if self.pooled >= parameters.pool as u64 => {
                self.pooled = 0;
                (0..self.cpus.len()).collect()
            }
            Reclaim::Batches | Reclaim::Pools => return Progress::Now,
        };
        let pages = match self.setup.policy.reclaim {
            Reclaim::EachPage => 1,
            Reclaim::Batches | Reclaim::Pools => u64::MAX,
        };
        self.thread(cpu).reclaimable = 0;
        let others: Vec<usize> = owners.into_iter().filter(|owner| *owner != cpu).collect();
        if !others.is_empty() {
            let bookkeeping = Action::Work(parameters.cycles(parameters.flush_fixed));
            let flush = [Action::FlushBegins, bookkeeping, Action::Private(others, pages), Action::Await];
            self.thread(cpu).todo.extend(flush);
        }
        Progress::Now
    }

    /// Whose pages a batch has: they lie on the list in runs, at whose middle the batch may begin.
    fn owners_of(&mut self, batch: u64) -> Vec<usize> {
        let run = self.setup.parameters.reclaim_run as u64;
        let first = 1 + self.random.below(run as usize) as u64;
        let runs = 1 + batch.saturating_sub(first).div_ceil(run);
        let mut owners: Vec<usize> = (0..runs).map(|_| self.random.below(self.cpus.len())).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The thread goes to the next CPU, which comes back to the address space or enters it.
    fn hop(&mut self, from: usize) -> Progress {
        let to = (from + 1) % self.cpus.len();
        if to == from {
            return Progress::Now;
        }
        let thread = self.cpus[from].thread.take();
        (self.cpus[from].mode, self.cpus[from].position) = (Mode::Idle, Position::Lazy);
        let is_behind =
            self.cpus[to].caught_up != self.generation || self.cpus[to].position == Position::Absent;
        let flush = if is_behind { self.drop_everything() } else { 0 };
        let state = &mut self.cpus[to];
        (state.thread, state.mode, state.position) = (thread, Mode::User, Position::Active);
        state.caught_up = self.generation;
        // It is woken like any idle CPU, by an interrupt that is not for coherence.
        let time = self.now + self.topology.deliver(from, to) + flush;
        self.goes_on(to, time);
        Progress::Waits
    }

    fn done(&mut self, cpu: usize) -> Progress {
        let now = self.now;
        let thread = self.thread(cpu);
        thread.operations += 1;
        let sent = std::mem::take(&mut thread.sent);
        // The first two operations meet threads that have not begun.
        let (skipped, from) = *thread.counted_from.get_or_insert((thread.operations, now));
        let counted = thread.operations - skipped;
        let since = thread.last_done;
        thread.last_done = now;
        if counted > 0 {
            self.tally.timed_operations += 1;
            self.tally.time += now - since.max(from);
        }
        self.tally.operations += 1;
        self.tally.sent_in_operations += sent;
        Progress::Now
    }
}
