//! Random operations on several address spaces, against a model that knows nothing of page tables.
//!
//! The model maps each page to what it contains and what it allows. After every operation the caches of the simulated
//! CPUs are held against the tables, so a missing flush shows at once, not only when somebody happens to read through
//! a stale entry; and at the end every frame must be free again. A failure prints the shortest sequence that shows it
//! and is replayed first by later runs (`proptest` writes its seed beside this file).
//!
//! The same operations and the same model serve for large pages: what the model calls a page is a *unit* of 32 pages there, sixteen of
//! which are a large page, so that operations meet large pages whole, in part, and moved by less than their size.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coherence::{Cause, Switches};
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Access, Advice, AreaFlags, Fault, Identity, LargePolicy, MapRequest, MemoryObject, MoveTo, PAGE_SIZE,
    PageRange, Place, RemapRequest, Rights,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const SPACES: usize = 3;
const OBJECTS: u64 = 2;
const OBJECT_PAGES: u64 = 24;
/// The units in play, in two groups that each lie across the border of two leaf tables, a gigabyte apart.
const PAGES: u64 = 64;
/// Pages in a unit where large pages are in play.
const LARGE_UNIT: u64 = 32;

std::thread_local! {
    /// Pages in a unit.
    static UNIT: Cell<u64> = const { Cell::new(1) };
}

/// Bytes in a unit.
fn unit() -> u64 {
    UNIT.get() * PAGE_SIZE
}

fn address(page: u64) -> u64 {
    let group = page / 32;
    (0x4000_0000 * (group + 1)) + (0x20_0000 - 16 * unit()) % 0x20_0000 + page % 32 * unit()
}

/// Pages that follow each other in addresses, too.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    count: u64,
}

impl Run {
    fn range(self) -> PageRange {
        PageRange::new(address(self.first), self.count * unit()).unwrap()
    }

    fn pages(self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Anonymous,
    Object { object: u64, first_page: u64, shared: bool },
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Map {
        run: Run,
        kind: Kind,
        rights: u8,
    },
    Unmap {
        run: Run,
    },
    Protect {
        run: Run,
        rights: u8,
    },
    DontNeed {
        run: Run,
    },
    Populate {
        run: Run,
    },
    Move {
        from: Run,
        to: Run,
        keep_source: bool,
    },
    Fork {
        into: usize,
    },
    Load {
        page: u64,
    },
    Store {
        page: u64,
        value: u64,
        by_kernel: bool,
    },
    Collapse {
        run: Run,
    },
    /// Hardware walks ahead of any access.
    Fill {
        page: u64,
    },
    Enter {
        space: usize,
    },
    GoLazy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    Own(u64),
    /// Page of an object, as it is now.
    Object(u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Page {
    content: Content,
    original: Content,
    shared: bool,
    rights: Rights,
}

type Model = BTreeMap<u64, Page>;

struct World {
    environment: TurnEnvironment,
    spaces: Vec<Arc<TurnSpace>>,
    models: Vec<Model>,
    objects: Vec<Arc<MemoryObject<TurnEnvironment>>>,
    object_values: HashMap<(u64, u64), u64>,
    /// Which space each CPU runs in.
    running: [usize; CPUS],
}

impl World {
    fn new(switches: Switches) -> Self {
        let environment = match UNIT.get() {
            1 => TurnEnvironment::new(switches),
            _ => TurnEnvironment::with_ram(switches, 96 << 20),
        };
        environment.0.frames.large_pages().set_policy(LargePolicy::Always);
        let spaces: Vec<_> = (0..SPACES).map(|_| environment.space()).collect();
        let object = |inode| {
            let identity = Identity { device: 1, inode };
            let size = OBJECT_PAGES * unit();
            Arc::new(MemoryObject::new(&environment, identity, String::new(), size))
        };
        let objects = (0..OBJECTS).map(object).collect();
        for cpu in 0..CPUS {
            environment.be(cpu);
            environment.activate(&spaces[0]);
        }
        World {
            environment: environment.clone(),
            spaces,
            models: vec![Model::new(); SPACES],
            objects,
            object_values: HashMap::new(),
            running: [0; CPUS],
        }
    }

    fn value(&self, content: Content) -> u64 {
        match content {
            Content::Own(value) => value,
            Content::Object(object, page) => self.object_values.get(&(object, page)).copied().unwrap_or(0),
        }
    }

    fn apply(&mut self, cpu: usize, operation: Operation) {
        self.environment.be(cpu);
        let number = self.running[cpu];
        let space = self.spaces[number].clone();
        // Whoever runs an operation runs in the space, so a lazy CPU comes back first.
        self.environment.activate(&space);
        match operation {
            Operation::Map { run, kind, rights } => self.map(number, run, kind, rights),
            Operation::Unmap { run } => {
                space.unmap(run.range()).unwrap();
                self.forget(number, run);
            }
            Operation::Protect { run, rights } => self.protect(number, run, rights),
            Operation::DontNeed { run } => {
                let result = space.advise(run.range(), Advice::DontNeed);
                let model = &mut self.models[number];
                assert_eq!(result.is_ok(), run.pages().all(|page| model.contains_key(&page)));
                for page in run.pages() {
                    model.entry(page).and_modify(|page| page.content = page.original);
                }
            }
            // Changes nothing that a program sees, whether it can be done or not.
            Operation::Collapse { run } => drop(space.advise(run.range(), Advice::Collapse)),
            Operation::Populate { run } => drop(space.populate(run.range(), Access::READ)),
            Operation::Move { from, to, keep_source } => self.remap(number, from, to, keep_source),
            Operation::Fork { into } => self.fork(number, into),
            Operation::Load { page } => {
                let got = self.environment.load(&space, address(page));
                assert_eq!(got, self.expected(number, page, Access::READ), "load of page {page}");
            }
            Operation::Store { page, value, by_kernel } => self.store(number, page, value, by_kernel),
            Operation::Fill { page } => drop(self.environment.fill(address(page), false)),
            Operation::Enter { space } => {
                self.running[cpu] = space;
                self.environment.activate(&self.spaces[space]);
            }
            Operation::GoLazy => self.environment.go_lazy(),
        }
        self.environment.check_caches();
    }

    fn expected(&self, space: usize, page: u64, access: Access) -> Result<u64, Fault> {
        let page = self.models[space].get(&page).ok_or(Fault::NotMapped)?;
        if page.rights.allow(access) { Ok(self.value(page.content)) } else { Err(Fault::NotAllowed) }
    }

    fn map(&mut self, space: usize, run: Run, kind: Kind, rights: u8) {
        let rights = Rights::from_bits_truncate(rights);
        let (object, shared) = match kind {
            Kind::Anonymous => (None, false),
            Kind::Object { object, first_page, shared } => {
                (Some((self.objects[object as usize].clone() as _, first_page * UNIT.get())), shared)
            }
        };
        // Bringing in a writable private page makes its copy at once.
        let populate = run.count.is_multiple_of(5);
        let request = MapRequest {
            place: Place::Fixed(address(run.first)),
            length: run.count * unit(),
            rights,
            may: Rights::all(),
            flags: if shared { AreaFlags::SHARED } else { AreaFlags::empty() },
            object,
            populate,
        };
        self.spaces[space].map(request).unwrap();
        for (offset, page) in run.pages().enumerate() {
            let content = match kind {
                Kind::Anonymous => Content::Own(0),
                Kind::Object { object, first_page, .. } => {
                    Content::Object(object, first_page + offset as u64)
                }
            };
            let is_copied = populate && !shared && rights.contains(Rights::WRITE);
            let now = if is_copied { Content::Own(self.value(content)) } else { content };
            self.models[space].insert(page, Page { content: now, original: content, shared, rights });
        }
    }

    fn forget(&mut self, space: usize, run: Run) {
        self.models[space].retain(|page, _| !run.pages().contains(page));
    }

    fn protect(&mut self, space: usize, run: Run, rights: u8) {
        let rights = Rights::from_bits_truncate(rights);
        let result = self.spaces[space].protect(run.range(), rights, false);
        let model = &mut self.models[space];
        let mapped = run.pages().take_while(|page| model.contains_key(page)).collect::<Vec<_>>();
        assert_eq!(result.is_ok(), mapped.len() as u64 == run.count);
        for page in mapped {
            model.entry(page).and_modify(|page| page.rights = rights);
        }
    }

    fn remap(&mut self, space: usize, from: Run, to: Run, keep_source: bool) {
        let to = Run { count: from.count, ..to };
        let fits = to.first / 32 == (to.first + to.count - 1) / 32;
        let overlaps = from.first < to.first + to.count && to.first < from.first + from.count;
        let request = RemapRequest {
            address: address(from.first),
            old_length: from.count * unit(),
            new_length: to.count * unit(),
            may_move: true,
            to: MoveTo::Fixed(address(to.first)),
            keep_source,
        };
        if !fits {
            return;
        }
        let result = self.spaces[space].remap(request);
        if overlaps {
            assert!(result.is_err());
            return;
        }
        if self.models[space].contains_key(&from.first) {
            // As on Linux, the target is cleared before the source is found to span several mappings.
            self.forget(space, to);
        }
        if result.is_err() {
            return;
        }
        let model = &mut self.models[space];
        for (source, target) in from.pages().zip(to.pages()) {
            let page = model[&source];
            model.insert(target, page);
            if keep_source {
                model.insert(source, Page { content: page.original, ..page });
            } else {
                model.remove(&source);
            }
        }
    }

    fn fork(&mut self, from: usize, into: usize) {
        if from == into {
            return;
        }
        let child = self.spaces[from].fork().unwrap();
        let me = self.environment.0.coherence.platform();
        let cpu = coherence::Platform::current_cpu(me).index();
        // The old space ends: its CPUs go over to the child, and the last one out tears it down.
        let old = std::mem::replace(&mut self.spaces[into], child);
        for other in 0..CPUS {
            if self.running[other] == into {
                self.environment.be(other);
                self.environment.go_lazy();
            }
        }
        let interrupts = self.environment.interrupts_of(|| old.teardown_user());
        assert_eq!(interrupts, 0, "the end of a space interrupted somebody");
        self.environment.check_caches();
        for other in 0..CPUS {
            if self.running[other] == into {
                self.environment.be(other);
                self.environment.activate(&self.spaces[into]);
            }
        }
        self.environment.be(cpu);
        self.models[into] = self.models[from].clone();
    }

    fn store(&mut self, space: usize, page: u64, value: u64, by_kernel: bool) {
        let expected = self.expected(space, page, Access::WRITE).map(|_| ());
        let got = if by_kernel {
            self.spaces[space].write_user(address(page), &value.to_ne_bytes())
        } else {
            self.environment.store(&self.spaces[space].clone(), address(page), value)
        };
        assert_eq!(got, expected, "store to page {page}");
        if got.is_err() {
            return;
        }
        let Some(page) = self.models[space].get_mut(&page) else {
            return;
        };
        match page.content {
            Content::Object(object, index) if page.shared => {
                let _ = self.object_values.insert((object, index), value);
            }
            _ => page.content = Content::Own(value),
        }
    }

    /// Compares all of memory with the model, and takes everything down.
    fn finish(self) {
        for (space, model) in self.spaces.iter().zip(&self.models) {
            for number in 0..PAGES {
                let mut bytes = [0; 8];
                let got = space.read_user(address(number), &mut bytes).map(|()| u64::from_ne_bytes(bytes));
                let expected = match model.get(&number) {
                    None => Err(Fault::NotMapped),
                    Some(page) if page.rights.is_empty() => Err(Fault::NotAllowed),
                    Some(page) => Ok(self.value(page.content)),
                };
                assert_eq!(got, expected, "page {number} at the end");
            }
            assert_eq!(space.sizes().mapped, model.len() as u64 * UNIT.get());
        }
        let World { environment, spaces, objects, .. } = self;
        environment.leave_everywhere();
        drop((spaces, objects));
        let statistics = environment.0.frames.statistics();
        // The page of zeroes is never given back.
        assert_eq!(statistics.free, statistics.total - 1, "frames were lost");
    }
}

fn run() -> impl Strategy<Value = Run> {
    (0..PAGES, 1..20u64).prop_map(|(first, count)| Run { first, count: count.min(32 - first % 32) })
}

fn kind() -> impl Strategy<Value = Kind> {
    let object = (0..OBJECTS, 0..4u64, any::<bool>());
    prop_oneof![
        3 => Just(Kind::Anonymous),
        2 => object.prop_map(|(object, first_page, shared)| Kind::Object { object, first_page, shared }),
    ]
}

fn rights() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(3u8), 2 => Just(1u8), 1 => Just(0u8), 1 => Just(7u8), 1 => Just(5u8)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let store = (0..PAGES, 1..u64::MAX, any::<bool>());
    prop_oneof![
        4 => (run(), kind(), rights()).prop_map(|(run, kind, rights)| Operation::Map { run, kind, rights }),
        2 => run().prop_map(|run| Operation::Unmap { run }),
        3 => (run(), rights()).prop_map(|(run, rights)| Operation::Protect { run, rights }),
        2 => run().prop_map(|run| Operation::DontNeed { run }),
        1 => run().prop_map(|run| Operation::Populate { run }),
        2 => (0..2u64).prop_map(|group| Operation::Collapse { run: Run { first: group * 32, count: 32 } }),
        2 => (run(), run(), any::<bool>()).prop_map(|(from, to, keep_source)| Operation::Move { from, to, keep_source }),
        2 => (0..SPACES).prop_map(|into| Operation::Fork { into }),
        8 => (0..PAGES).prop_map(|page| Operation::Load { page }),
        10 => store.prop_map(|(page, value, by_kernel)| Operation::Store { page, value, by_kernel }),
        6 => (0..PAGES).prop_map(|page| Operation::Fill { page }),
        2 => (0..SPACES).prop_map(|space| Operation::Enter { space }),
        2 => Just(Operation::GoLazy),
    ]
}

fn check(switches: Switches, suppressed: Option<Cause>, operations: &[(usize, Operation)]) {
    let mut world = World::new(switches);
    world.environment.0.coherence.suppress(suppressed);
    for (cpu, operation) in operations {
        world.apply(*cpu, *operation);
    }
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn memory_is_what_the_model_says(operations in prop::collection::vec((0..CPUS, operation()), 1..120)) {
        check(Switches::ALL, None, &operations);
    }

    #[test]
    fn also_without_any_mechanism(operations in prop::collection::vec((0..CPUS, operation()), 1..60)) {
        check(Switches::VANILLA, None, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn large_pages_are_what_the_model_says(operations in large_sequences()) {
        UNIT.set(LARGE_UNIT);
        check(Switches::ALL, None, &operations);
    }
}

/// Sequences that have two large pages to begin with, one of which fell to pieces and was put together again.
fn large_sequences() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    prop::collection::vec((0..CPUS, operation()), 1..80).prop_map(|operations| {
        let run = Run { first: 0, count: 32 };
        let first = [
            (0, Operation::Map { run, kind: Kind::Anonymous, rights: 3 }),
            (1, Operation::Store { page: 3, value: 1, by_kernel: false }),
            (2, Operation::Load { page: 7 }),
            (2, Operation::Store { page: 17, value: 2, by_kernel: true }),
            (0, Operation::DontNeed { run: Run { first: 2, count: 1 } }),
            (1, Operation::Load { page: 3 }),
            (3, Operation::Collapse { run }),
        ];
        first.into_iter().chain(operations).collect()
    })
}

/// Shows that the properties have teeth: leave out the flushes of one operation, and they fail.
fn is_noticed(cause: Cause, sequences: impl Strategy<Value = Vec<(usize, Operation)>>) -> bool {
    let mut runner = TestRunner::deterministic();
    (0..60).any(|_| {
        let operations = sequences.new_tree(&mut runner).unwrap().current();
        std::panic::catch_unwind(|| check(Switches::ALL, Some(cause), &operations)).is_err()
    })
}

#[test]
fn every_suppressed_flush_is_noticed() {
    let causes = [
        Cause::Munmap,
        Cause::Mmap,
        Cause::Mprotect,
        Cause::Dontneed,
        Cause::Mremap,
        Cause::Fork,
        Cause::CopyOnWrite,
    ];
    for cause in causes {
        let sequences = prop::collection::vec((0..CPUS, operation()), 60..120);
        assert!(is_noticed(cause, sequences), "nothing failed without the flushes of {cause:?}");
    }
}

#[test]
fn every_suppressed_flush_of_large_pages_is_noticed() {
    UNIT.set(LARGE_UNIT);
    for cause in [
        Cause::Munmap,
        Cause::Mprotect,
        Cause::Dontneed,
        Cause::Madvise,
        Cause::Mremap,
        Cause::Fork,
        Cause::CopyOnWrite,
    ] {
        let noticed = is_noticed(cause, large_sequences());
        assert!(noticed, "nothing failed without the flushes of {cause:?}");
    }
}
