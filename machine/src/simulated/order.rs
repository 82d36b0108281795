//! Promise B: what a memory barrier on other CPUs orders, judged while it happens.
//!
//! A barrier promises that each other thread T of its scope has a *point* during the call: what T does after it comes after what the
//! caller did before the call, and what T did before it is visible to the caller afterwards. On x86 that comes to one rule, as
//! CPUs there do one thing only out of order: a load may be made while an older store waits in the buffer.
//!
//! Let d be the moment at which all that the caller stored before the call is visible (its beginning, if nothing waited), and e its end.
//!
//! * Loads that T makes after its point must be made after d. So T's point lies behind every load that it made before d.
//! * Stores that T makes before its point must be visible at e. So **a store of T's that still waits at e, and behind which T has
//!   made a load before d, leaves no place for the point**: that is the forbidden outcome of the litmus test *store buffering*,
//!   in which both threads store, and both miss the other's store.
//! * If there is no such store, there is a point: right behind the last load before d. All else keeps its order by itself: loads
//!   are made, and stores become visible, in the program's order. (So *message passing*, *load buffering* and the like are never
//!   observed; what they need on weaker machines is loom's business.)
//!
//! A load that finds the thread's own waiting store sees nothing of others and does not count. The caller is a thread too: what
//! it stored before the call must be visible at e.
//!
//! **Fetched instructions.** A CPU may fetch an instruction at any time and execute what it fetched at any later one, until it
//! *serialises*: here only by `Platform::serialise`, which is less than x86 offers (there every return from an interrupt does). A
//! barrier for cores promises that what a CPU of its scope executes after e was fetched after d.
//!
//! **Restartable sequences.** A thread loads something and then stores (*commits*), and starts again if it was told to abandon the
//! sequence in between. To whoever asked for a barrier for sequences, they happen at once: none that began before d commits
//! after e, and what one committed before is visible at e.
//!
//! **Rounds.** Callers of one kind of barrier share rounds, so no CPU is asked for two of one kind at a time, however many call.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use explorer::Digest;

use super::operation::OperationId;

/// Whose threads a barrier is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of the space with this root.
    Space(u64),
    /// The same, and its CPUs fetch instructions anew.
    Cores(u64),
    /// Those of all spaces that were registered when it began.
    Registered(BTreeSet<u64>),
    /// Those of the space with this root, which start their sequences again; only on one CPU, if there is one.
    Sequences(u64, Option<usize>),
    /// All there are: a grace period, which asks nobody for anything.
    All,
}

impl Scope {
    fn includes(&self, cpu: usize, root: u64) -> bool {
        match self {
            Scope::Sequences(own, only) => *own == root && only.is_none_or(|only| only == cpu),
            Scope::Space(own) | Scope::Cores(own) => *own == root,
            Scope::Registered(roots) => roots.contains(&root),
            Scope::All => true,
        }
    }

    /// Barriers of one kind share rounds.
    fn kind(&self) -> Option<(u64, u64)> {
        match self {
            Scope::Space(root) => Some((0, *root)),
            Scope::Cores(root) => Some((1, *root)),
            Scope::Registered(_) => Some((2, 0)),
            Scope::Sequences(root, None) => Some((3, *root)),
            Scope::Sequences(root, Some(_)) => Some((4, *root)),
            Scope::All => None,
        }
    }
}

/// A program's store that waits in a buffer.
#[derive(Debug)]
struct Waiting {
    root: u64,
    address: u64,
    physical: u64,
    /// The same thread has loaded something since, or in the sequence that ends with this store.
    loaded_behind: bool,
}

/// A barrier in progress.
#[derive(Debug)]
struct Barrier {
    id: OperationId,
    scope: Scope,
    /// How many stores of the caller's from before still wait. At 0 the moment d has come.
    own: usize,
    /// For each CPU, how many of its oldest stores must be visible at the end; known from d on.
    owed: Vec<usize>,
}

/// An instruction in a CPU's hands.
#[derive(Debug)]
struct Fetched {
    root: u64,
    value: u64,
    /// Barriers for cores that have come to their moment d since, and not ended.
    older_than: Vec<OperationId>,
    /// Why it may not be executed any more.
    dead: Option<String>,
}

/// A restartable sequence in progress.
#[derive(Debug)]
struct Sequence {
    root: u64,
    abandoned: bool,
    /// Barriers for sequences that have come to their moment d since, and not ended.
    older_than: Vec<OperationId>,
    /// Why it may not commit any more.
    dead: Option<String>,
}

/// What becomes of a sequence that is about to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Commit {
    /// It stores.
    Stores,
    /// It was told to start again.
    StartsAgain,
    /// It stores, which breaks this.
    Breaks(String),
}

/// The records.
#[derive(Debug)]
pub(super) struct Order {
    waiting: Vec<VecDeque<Waiting>>,
    barriers: Vec<Barrier>,
    counts: Vec<u64>,
    fetched: Vec<BTreeMap<u64, Fetched>>,
    /// By CPU.
    sequences: Vec<Option<Sequence>>,
    /// The store that comes next commits a sequence.
    commits: bool,
    /// Roots of the spaces whose registration for everybody's barriers has been confirmed.
    registered: BTreeSet<u64>,
    /// How many registrations are in progress.
    registering: usize,
    /// How many there were.
    registrations: u64,
}

impl Order {
    pub(super) fn new(cpus: usize) -> Self {
        Order {
            waiting: (0..cpus).map(|_| VecDeque::new()).collect(),
            barriers: Vec::new(),
            counts: vec![0; cpus],
            fetched: (0..cpus).map(|_| BTreeMap::new()).collect(),
            sequences: (0..cpus).map(|_| None).collect(),
            commits: false,
            registered: BTreeSet::new(),
            registering: 0,
            registrations: 0,
        }
    }

    /// A program stores.
    pub(super) fn stores(&mut self, cpu: usize, root: u64, address: u64, physical: u64) {
        let loaded_behind = std::mem::take(&mut self.commits);
        self.waiting[cpu].push_back(Waiting { root, address, physical, loaded_behind });
    }

    /// A program loads.
    pub(super) fn loads(&mut self, cpu: usize, root: u64, physical: u64) {
        let waiting = &mut self.waiting[cpu];
        if waiting.iter().any(|store| store.physical == physical) {
            return;
        }
        waiting.iter_mut().filter(|store| store.root == root).for_each(|store| store.loaded_behind = true);
    }

    /// The oldest waiting store of a CPU became visible.
    pub(super) fn store_lands(&mut self, cpu: usize) {
        self.waiting[cpu].pop_front();
        for barrier in &mut self.barriers {
            barrier.owed[cpu] = barrier.owed[cpu].saturating_sub(1);
        }
        for index in 0..self.barriers.len() {
            let barrier = &mut self.barriers[index];
            if barrier.id.cpu == cpu && barrier.own > 0 {
                barrier.own -= 1;
                if barrier.own == 0 {
                    self.take_stock(index);
                }
            }
        }
    }

    /// A barrier begins.
    pub(super) fn begin(&mut self, cpu: usize, scope: Scope) -> OperationId {
        self.counts[cpu] += 1;
        let id = OperationId { cpu, count: self.counts[cpu] };
        let (own, owed) = (self.waiting[cpu].len(), vec![0; self.waiting.len()]);
        self.barriers.push(Barrier { id, scope, own, owed });
        if own == 0 {
            self.take_stock(self.barriers.len() - 1);
        }
        id
    }

    /// What registered spaces there are, as the scope of a barrier that begins now.
    pub(super) fn registered(&self) -> Scope {
        Scope::Registered(self.registered.clone())
    }

    /// The moment d of a barrier: who has loaded already what they would have to load afterwards, and what they have fetched.
    fn take_stock(&mut self, index: usize) {
        let barrier = &mut self.barriers[index];
        for (cpu, waiting) in self.waiting.iter().enumerate().filter(|(cpu, _)| *cpu != barrier.id.cpu) {
            let counts = |store: &Waiting| barrier.scope.includes(cpu, store.root) && store.loaded_behind;
            barrier.owed[cpu] = waiting.iter().rposition(counts).map_or(0, |index| index + 1);
        }
        if let Scope::Sequences(..) = barrier.scope {
            let others = self.sequences.iter_mut().enumerate().filter(|(cpu, _)| *cpu != barrier.id.cpu);
            for (cpu, sequence) in others.filter_map(|(cpu, sequence)| Some((cpu, sequence.as_mut()?))) {
                if barrier.scope.includes(cpu, sequence.root) && !sequence.abandoned {
                    sequence.older_than.push(barrier.id);
                }
            }
        }
        if let Scope::Cores(root) = barrier.scope {
            let all = self.fetched.iter_mut().flat_map(|fetched| fetched.values_mut());
            all.filter(|fetched| fetched.root == root)
                .for_each(|fetched| fetched.older_than.push(barrier.id));
        }
    }

    /// A barrier ends. What it breaks, if anything.
    pub(super) fn end(&mut self, id: OperationId) -> Option<String> {
        let index = self.barriers.iter().position(|barrier| barrier.id == id)?;
        let barrier = self.barriers.remove(index);
        for (cpu, fetched) in self.fetched.iter_mut().enumerate() {
            for (address, fetched) in fetched.iter_mut() {
                let before = fetched.older_than.len();
                fetched.older_than.retain(|other| *other != id);
                if fetched.older_than.len() < before {
                    fetched.dead.get_or_insert_with(|| {
                        format!(
                            "B, barrier: CPU {cpu} executes what it fetched at {address:#x} before the barrier of CPU {}, \
                             which has ended",
                            id.cpu
                        )
                    });
                }
            }
        }
        self.end_for_sequences(id);
        if barrier.own > 0 {
            return Some(format!(
                "B, barrier: the barrier of CPU {} has ended, but what it stored before still waits in its buffer",
                id.cpu
            ));
        }
        let (cpu, owed) = barrier.owed.iter().enumerate().find(|(_, owed)| **owed > 0)?;
        let store = &self.waiting[cpu][owed - 1];
        Some(format!(
            "B, barrier: the barrier of CPU {} has ended, but the store of CPU {cpu} to {:#x} still waits in its buffer, and \
             what that CPU loaded after it came before the barrier: both have missed what the other stored",
            id.cpu, store.address
        ))
    }

    fn end_for_sequences(&mut self, id: OperationId) {
        for (cpu, sequence) in self.sequences.iter_mut().enumerate() {
            let Some(sequence) = sequence else { continue };
            let before = sequence.older_than.len();
            sequence.older_than.retain(|other| *other != id);
            if sequence.older_than.len() < before && !sequence.abandoned {
                sequence.dead.get_or_insert_with(|| {
                    format!(
                        "B, barrier: CPU {cpu} commits a sequence that it began before the barrier of CPU {}, which has ended",
                        id.cpu
                    )
                });
            }
        }
    }

    /// A thread begins a sequence.
    pub(super) fn begin_sequence(&mut self, cpu: usize, root: u64) {
        let sequence = Sequence { root, abandoned: false, older_than: Vec::new(), dead: None };
        self.sequences[cpu] = Some(sequence);
    }

    /// The thread on a CPU is to start its sequence again, if it is in one.
    pub(super) fn restarts(&mut self, cpu: usize) {
        if let Some(sequence) = &mut self.sequences[cpu] {
            sequence.abandoned = true;
        }
    }

    /// A thread is about to commit the sequence that it has begun.
    pub(super) fn commit(&mut self, cpu: usize) -> Commit {
        let Some(sequence) = self.sequences[cpu].take().filter(|sequence| !sequence.abandoned) else {
            return Commit::StartsAgain;
        };
        self.commits = true;
        let place = self.waiting[cpu].len() + 1;
        let older = self.barriers.iter_mut().filter(|barrier| sequence.older_than.contains(&barrier.id));
        older.for_each(|barrier| barrier.owed[cpu] = place);
        sequence.dead.map_or(Commit::Stores, Commit::Breaks)
    }

    /// A registration begins.
    pub(super) fn begin_registration(&mut self) {
        self.registering += 1;
        self.registrations += 1;
    }

    /// And is confirmed, for everybody's barriers or for the process's own.
    pub(super) fn end_registration(&mut self, root: u64, for_all: bool) {
        self.registering -= 1;
        if for_all {
            self.registered.insert(root);
        }
    }

    /// A child takes over what its parent is registered for.
    pub(super) fn inherits(&mut self, parent: u64, child: u64) {
        if self.registered.contains(&parent) {
            self.registered.insert(child);
        }
    }

    /// An interrupt asks a CPU for so many barriers at once. What that breaks, if anything.
    pub(super) fn asked(&self, cpu: usize, count: u64) -> Option<String> {
        let kinds: BTreeSet<_> = self.barriers.iter().filter_map(|barrier| barrier.scope.kind()).collect();
        let most = (kinds.len() + self.registering) as u64;
        (count > most).then(|| {
            format!(
                "B, one round at a time: CPU {cpu} is asked for {count} barriers at once, where {most} would do for all that call"
            )
        })
    }

    /// The instruction at an address, if the CPU has it in its hands; what executing it breaks comes with it.
    pub(super) fn fetched(&self, cpu: usize, address: u64) -> Option<(u64, Option<String>)> {
        self.fetched[cpu].get(&address).map(|fetched| (fetched.value, fetched.dead.clone()))
    }

    /// A CPU fetches.
    pub(super) fn fetch(&mut self, cpu: usize, root: u64, address: u64, value: u64) {
        self.fetched[cpu].insert(address, Fetched { root, value, older_than: Vec::new(), dead: None });
    }

    /// A CPU drops what it has fetched.
    pub(super) fn serialises(&mut self, cpu: usize) {
        self.fetched[cpu].clear();
    }

    /// How many calls there were that may interrupt each other CPU once.
    pub(super) fn calls(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.registrations
    }

    pub(super) fn state(&self) -> Digest {
        let mut digest = Digest::EMPTY.with(self.registering as u64);
        for store in self.waiting.iter().flatten() {
            digest = digest.with(store.address | u64::from(store.loaded_behind));
        }
        for barrier in &self.barriers {
            digest = digest.with(barrier.id.number()).with(barrier.own as u64);
            digest = barrier.owed.iter().fold(digest, |digest, owed| digest.with(*owed as u64));
        }
        for (address, fetched) in self.fetched.iter().flatten() {
            digest = digest.with(*address | u64::from(fetched.dead.is_some())).with(fetched.value);
            digest = fetched.older_than.iter().fold(digest, |digest, id| digest.with(id.number()));
        }
        for (cpu, sequence) in self.sequences.iter().enumerate() {
            let Some(sequence) = sequence else { continue };
            let flags = u64::from(sequence.abandoned) << 1 | u64::from(sequence.dead.is_some());
            digest = digest.with(cpu as u64).with(flags);
            digest = sequence.older_than.iter().fold(digest, |digest, id| digest.with(id.number()));
        }
        self.registered.iter().fold(digest, |digest, root| digest.with(*root))
    }
}
