//! What the threads do: the programs of the bench, as far as they are about coherence.
//!
//! Each CPU has a role. An *actor* goes through its program's steps again and again; the others spin in user mode, sit in the kernel
//! or sleep. Pages are not simulated: a change says what happens to how many, and whether other CPUs can hold them.

use coherence::Cause;

use super::locks::Hold;
use super::parameters::{Parameters, Time, nanoseconds};
use super::policy::Policy;

/// What happens to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is taken out.
    Remove,
    /// It loses a right.
    Demote,
    /// It gains one.
    Promote,
    /// It was never there.
    Untouched,
}

/// A change of some pages by one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happens to each.
    pub kind: Kind,
    /// How many pages.
    pub pages: u64,
    /// Whether a page table is freed.
    pub frees_table: bool,
    /// Why.
    pub cause: Cause,
    /// Whether other CPUs than the changing one have used the pages.
    pub shared: bool,
}

/// What a lock protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockName {
    /// The areas of an address space.
    Areas,
    /// The page table that the thread's pages are in.
    Table,
    /// Lists of pages that all CPUs share.
    Lists,
}

/// One step of a program.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The thread's own work.
    User(Time),
    /// Into the kernel.
    Enter,
    /// The kernel's work.
    Kernel(Time),
    /// Back to user mode.
    Leave,
    Lock(LockName, Hold),
    Unlock(LockName, Hold),
    Downgrade(LockName),
    /// What was changed is flushed.
    Flush(Change),
    /// A memory barrier on all CPUs that run the program.
    Barrier,
    /// A page of a file comes in, and another one has to go.
    Reclaim,
    /// The thread goes on on the next CPU; this one is idle.
    Hop,
    /// An operation is over.
    Done,
}

/// What CPUs do that do not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Spin in user mode.
    Spins,
    /// Sit in a system call.
    Calls,
    /// Sleep, and borrow the address space.
    Sleeps,
}

/// One case of a workload, for a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The workload, as in the bench.
    pub workload: &'static str,
    /// The case, as in the bench; none if there is only one.
    pub name: Option<String>,
    /// CPUs, all of which have a role.
    pub cpus: usize,
    /// Threads of the program.
    pub threads: usize,
    /// The first so many CPUs act.
    pub actors: usize,
    /// And the others?
    pub beside: Beside,
    /// What no correct kernel can stay below, in interrupts for each operation.
    pub bound: Option<f64>,
    /// Whether the same case of the bench counts the same each time, so that the model's count must equal it.
    pub is_exact: bool,
}

/// A workload: its name, what an operation of it is, and its cases on so many CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// As in the bench.
    pub name: &'static str,
    /// One sentence.
    pub operation: &'static str,
    cases: &'static [(&'static str, Arrangement)],
}

/// Who does what in a case.
#[derive(Clone, Copy, Debug)]
enum Arrangement {
    /// One thread, from CPU to CPU.
    Hops,
    /// One thread changes what all have used.
    OneShared,
    /// One thread changes what only it has used.
    OnePrivate,
    /// All threads change what only each has used.
    AllPrivate,
    /// One asks for barriers beside threads in user mode, named by how many those are.
    Barriers,
    /// One asks for barriers beside threads in system calls.
    BarriersBesideCalls,
    /// Processes, each alone on its CPU.
    Processes,
}

/// All that can be predicted, in the order of the tables.
pub const WORKLOADS: [Workload; 14] = [
    Workload {
        name: "lru-file-mmap-read",
        operation: "a page read while memory is full",
        cases: &[("processes", Arrangement::Processes)],
    },
    Workload {
        name: "dontneed-hop",
        operation: "MADV_DONTNEED of a page, a touch, a hop",
        cases: &[("", Arrangement::Hops)],
    },
    Workload {
        name: "pthread-mmap",
        operation: "mmap, 16 pages touched, munmap",
        cases: &[("every", Arrangement::AllPrivate)],
    },
    Workload {
        name: "mprotect-flip",
        operation: "a page read-only and writable again",
        cases: &[("threads-", Arrangement::OneShared)],
    },
    Workload {
        name: "mremap-move",
        operation: "16 pages moved",
        cases: &[("anonymous-threads-", Arrangement::AllPrivate)],
    },
    Workload {
        name: "membarrier-loop",
        operation: "a barrier",
        cases: &[("expedited-", Arrangement::Barriers), ("beside-calls-", Arrangement::BarriersBesideCalls)],
    },
    Workload { name: "private-dontneed", operation: "MADV_DONTNEED of a page and a touch", cases: PRIVATE },
    Workload { name: "private-munmap", operation: "munmap, mmap and a touch of a page", cases: PRIVATE },
    Workload { name: "private-mprotect", operation: "a page read-only and writable again", cases: PRIVATE },
    Workload { name: "shared-dontneed", operation: "MADV_DONTNEED of a page and a touch", cases: SHARED },
    Workload { name: "shared-munmap", operation: "munmap, mmap and a touch of a page", cases: SHARED },
    Workload { name: "shared-mprotect", operation: "a page read-only and writable again", cases: SHARED },
    Workload {
        name: "tlb-flush2",
        operation: "MADV_DONTNEED of a page and a touch",
        cases: &[("threads-", Arrangement::AllPrivate)],
    },
    Workload {
        name: "ebizzy",
        operation: "mmap, 64 pages filled and searched, munmap",
        cases: &[("threads-", Arrangement::AllPrivate)],
    },
];

const PRIVATE: &[(&str, Arrangement)] =
    &[("alone-", Arrangement::OnePrivate), ("all-", Arrangement::AllPrivate)];
const SHARED: &[(&str, Arrangement)] = &[("threads-", Arrangement::OneShared)];

impl Workload {
    /// The workload of that name.
    pub fn find(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// Its cases with as many threads as CPUs.
    pub fn cases(&self, cpus: usize) -> Vec<Case> {
        self.cases.iter().filter_map(|(start, arrangement)| self.case(start, *arrangement, cpus)).collect()
    }

    fn case(&self, start: &str, arrangement: Arrangement, cpus: usize) -> Option<Case> {
        let others = cpus - 1;
        let (actors, beside) = match arrangement {
            Arrangement::Hops => (1, Beside::Sleeps),
            Arrangement::OneShared | Arrangement::OnePrivate | Arrangement::Barriers => (1, Beside::Spins),
            Arrangement::BarriersBesideCalls => (1, Beside::Calls),
            Arrangement::AllPrivate | Arrangement::Processes => (cpus, Beside::Spins),
        };
        let bound = match arrangement {
            Arrangement::OneShared | Arrangement::Barriers => Some(others as f64),
            Arrangement::Processes => None,
            _ => Some(0.0),
        };
        let number = match arrangement {
            Arrangement::Barriers | Arrangement::BarriersBesideCalls => others,
            _ => cpus,
        };
        let name = match start {
            "" => None,
            start if start.ends_with('-') => Some(format!("{start}{number}")),
            start => Some(start.to_owned()),
        };
        (number > 0).then_some(Case {
            workload: self.name,
            name,
            cpus,
            threads: if let Arrangement::Hops = arrangement { 1 } else { cpus },
            actors,
            beside,
            bound,
            is_exact: actors == 1 && !matches!(arrangement, Arrangement::BarriersBesideCalls),
        })
    }
}

impl Case {
    /// "workload case".
    pub fn full_name(&self) -> String {
        self.name
            .as_ref()
            .map_or_else(|| self.workload.to_owned(), |name| format!("{} {name}", self.workload))
    }

    /// Whether each actor has an address space of its own.
    pub(super) fn has_own_spaces(&self) -> bool {
        self.workload == "lru-file-mmap-read"
    }

    /// How many actors have their pages in one page table of 2 MB.
    pub(super) fn per_table(&self) -> usize {
        match self.workload {
            "tlb-flush2" => 2,
            "private-dontneed" | "private-munmap" | "private-mprotect" => 7,
            _ => 1,
        }
    }

    /// What an actor does for one operation.
    pub(super) fn program(&self, parameters: &Parameters, policy: &Policy) -> Vec<Step> {
        let shared =
            self.beside == Beside::Spins && self.actors == 1 && !self.workload.starts_with("private");
        let writer = Writer { parameters, policy, shared };
        let user = Step::User(nanoseconds(50.0));
        let steps: Vec<Vec<Step>> = match self.workload {
            "dontneed-hop" => vec![vec![Step::Hop], writer.dontneed(), writer.fault(1)],
            "private-dontneed" | "shared-dontneed" | "tlb-flush2" => {
                vec![vec![user], writer.dontneed(), writer.fault(1)]
            }
            "private-munmap" | "shared-munmap" => {
                vec![vec![user], writer.munmap(1), writer.mmap(), writer.fault(1)]
            }
            "private-mprotect" | "shared-mprotect" | "mprotect-flip" => {
                vec![vec![user], writer.mprotect(Kind::Demote), writer.mprotect(Kind::Promote)]
            }
            "mremap-move" => vec![vec![user], writer.mremap(16)],
            "membarrier-loop" => vec![vec![user, Step::Enter, Step::Barrier, Step::Leave]],
            "pthread-mmap" => vec![vec![user], writer.mmap(), writer.fault(16), writer.munmap(16)],
            "ebizzy" => {
                let work = Step::User(nanoseconds(parameters.allocator_work));
                vec![writer.mmap(), writer.fault(64), vec![work], writer.munmap(64)]
            }
            "lru-file-mmap-read" => {
                let page = Step::Kernel(nanoseconds(parameters.file_page));
                vec![vec![user, Step::Enter, page, Step::Reclaim, Step::Leave]]
            }
            other => unreachable!("{other} is not in the list"),
        };
        steps.into_iter().flatten().chain([Step::Done]).collect()
    }
}

/// Writes the steps of calls.
struct Writer<'a> {
    parameters: &'a Parameters,
    policy: &'a Policy,
    shared: bool,
}

impl Writer<'_> {
    fn flush(&self, kind: Kind, pages: u64, cause: Cause) -> Step {
        Step::Flush(Change { kind, pages, frees_table: false, cause, shared: self.shared })
    }

    fn call(&self, hold: Hold, steps: Vec<Step>) -> Vec<Step> {
        let before = [Step::Enter, Step::Lock(LockName::Areas, hold)];
        let after = [Step::Unlock(LockName::Areas, hold), Step::Leave];
        before.into_iter().chain(steps).chain(after).collect()
    }

    /// Work, its table's lock, and the flush inside the lock or after it.
    fn dontneed(&self) -> Vec<Step> {
        let unlock = Step::Unlock(LockName::Table, Hold::Exclusive);
        let flush = self.flush(Kind::Remove, 1, Cause::Dontneed);
        let [next, last] = if self.policy.table_locked { [flush, unlock] } else { [unlock, flush] };
        let work = Step::Kernel(nanoseconds(self.parameters.dontneed));
        self.call(Hold::Shared, vec![Step::Lock(LockName::Table, Hold::Exclusive), work, next, last])
    }

    fn fault(&self, pages: u64) -> Vec<Step> {
        let (table, lists) = (LockName::Table, LockName::Lists);
        let mut steps = vec![Step::Kernel(nanoseconds(self.parameters.fault * pages as f64))];
        if self.policy.shared_lists {
            // Linux takes the lock of its lists for up to fifteen pages at once where there are as many.
            let work = Step::Kernel(nanoseconds(self.parameters.page_lists * pages.div_ceil(15) as f64));
            steps.extend([Step::Lock(lists, Hold::Exclusive), work, Step::Unlock(lists, Hold::Exclusive)]);
        }
        steps.extend([Step::Lock(table, Hold::Exclusive), Step::Unlock(table, Hold::Exclusive)]);
        self.call(Hold::Shared, steps)
    }

    fn mmap(&self) -> Vec<Step> {
        self.call(Hold::Exclusive, vec![Step::Kernel(nanoseconds(self.parameters.mmap))])
    }

    fn munmap(&self, pages: u64) -> Vec<Step> {
        let work = self.parameters.munmap + self.parameters.page * (pages - 1) as f64;
        let flush = self.flush(Kind::Remove, pages, Cause::Munmap);
        let mut steps = self.call(Hold::Exclusive, vec![Step::Kernel(nanoseconds(work)), flush]);
        if self.policy.downgrades {
            let end = steps.len();
            steps.insert(end - 3, Step::Downgrade(LockName::Areas));
            steps[end - 1] = Step::Unlock(LockName::Areas, Hold::Shared);
        }
        steps
    }

    /// `mprotect` in the table is what a caller measures, so the way in and out is part of it.
    fn mprotect(&self, kind: Kind) -> Vec<Step> {
        let way = nanoseconds(self.parameters.system_call);
        let work = self.parameters.cycles(self.parameters.mprotect).saturating_sub(way);
        self.call(Hold::Exclusive, vec![Step::Kernel(work), self.flush(kind, 1, Cause::Mprotect)])
    }

    fn mremap(&self, pages: u64) -> Vec<Step> {
        let work = self.parameters.munmap + self.parameters.mmap + self.parameters.page * pages as f64;
        let flush = self.flush(Kind::Remove, pages, Cause::Mremap);
        self.call(Hold::Exclusive, vec![Step::Kernel(nanoseconds(work)), flush])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::policy::NAMES;

    #[test]
    fn every_case_has_a_program_that_gives_back_what_it_takes() {
        for case in WORKLOADS.iter().flat_map(|workload| workload.cases(4)) {
            for name in NAMES {
                let policy = Policy::find(name).unwrap();
                let (mut held, mut inside, mut done) = (Vec::new(), false, 0);
                for step in case.program(&Parameters::START, &policy) {
                    match step {
                        Step::Enter => assert!(!std::mem::replace(&mut inside, true)),
                        Step::Leave => assert!(std::mem::replace(&mut inside, false) && held.is_empty()),
                        Step::Lock(name, hold) => held.push((name, hold)),
                        Step::Downgrade(_) => held.last_mut().unwrap().1 = Hold::Shared,
                        Step::Unlock(name, hold) => assert_eq!(held.pop(), Some((name, hold))),
                        Step::Done => done += 1,
                        Step::User(_) | Step::Hop => assert!(!inside),
                        Step::Kernel(_) | Step::Flush(_) | Step::Barrier | Step::Reclaim => assert!(inside),
                    }
                }
                assert!(done == 1 && !inside && held.is_empty(), "{} on {name}", case.full_name());
            }
        }
    }

    #[test]
    fn one_cpu_has_nobody_beside_it() {
        let names: Vec<_> =
            WORKLOADS.iter().flat_map(|workload| workload.cases(1)).map(|case| case.full_name()).collect();
        assert!(
            names.contains(&"private-dontneed alone-1".into())
                && !names.iter().any(|name| name.contains("expedited"))
        );
    }
}
