//! The model: what each page contains and allows, by rules that know nothing of tables, and the spaces that must agree with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Access, Advice, AreaFlags, Fault, Identity, LargePolicy, MapRequest, MemoryObject, MoveTo, Place,
    RemapRequest, Rights,
};

use crate::operation::{Kind, OBJECT_PAGES, OBJECTS, Operation, PAGES, Run, SPACES, UNIT, address, unit};

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

pub(crate) struct World {
    pub(crate) environment: TurnEnvironment,
    spaces: Vec<Arc<TurnSpace>>,
    models: Vec<Model>,
    objects: Vec<Arc<MemoryObject<TurnEnvironment>>>,
    object_values: HashMap<(u64, u64), u64>,
    /// Which space each CPU runs in.
    running: [usize; CPUS],
}

impl World {
    pub(crate) fn new(switches: Switches) -> Self {
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

    pub(crate) fn apply(&mut self, cpu: usize, operation: Operation) {
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
    pub(crate) fn finish(self) {
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
