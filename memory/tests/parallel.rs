//! Threads of one program that take pages away from each other's sight while the others look.
//!
//! Every page has an owner, who writes it and changes its mapping, and readers on all other CPUs. A page's *stage* is even
//! while it holds a value that everybody must see (stage 2k: value k), and odd while its owner changes it. A reader that
//! finds the same even stage before and after its load must have read exactly that value: a stale translation shows as
//! an old value (D3, D4), a frame that was given away too early as a value of some other page (D1).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use machine::threads::{CPUS, ThreadEnvironment, ThreadSpace};
use memory::{
    Access, Advice, AreaFlags, Fault, MapRequest, MoveTo, PAGE_SIZE, PageRange, Place, RemapRequest, Rights,
};

const PAGES: usize = 24;
const ROUNDS: u64 = 400;
/// Half of the pages lie in one leaf table, half in the next.
const BASE: u64 = 0x4020_0000 - PAGES as u64 / 2 * PAGE_SIZE;
/// Where pages go and come back from.
const ELSEWHERE: u64 = 0x5000_0000;
const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);

struct World {
    environment: ThreadEnvironment,
    space: Arc<ThreadSpace>,
    stages: [AtomicU64; PAGES],
    owners_at_work: AtomicUsize,
    left: AtomicUsize,
}

fn address(page: usize) -> u64 {
    BASE + page as u64 * PAGE_SIZE
}

/// What a page holds in stage 2k.
fn value(page: usize, k: u64) -> u64 {
    (page as u64 + 1) << 32 | k
}

impl World {
    fn map(&self, page: usize) {
        let request = MapRequest {
            place: Place::Fixed(address(page)),
            length: PAGE_SIZE,
            rights: READ_WRITE,
            may: Rights::all(),
            flags: AreaFlags::empty(),
            object: None,
            populate: false,
        };
        self.space.map(request).unwrap();
    }

    fn range(page: usize) -> PageRange {
        PageRange::new(address(page), PAGE_SIZE).unwrap()
    }

    fn load(&self, page: usize) -> Result<u64, Fault> {
        Ok(self.environment.access(&self.space, address(page), Access::READ)?.load(SeqCst))
    }

    fn store(&self, page: usize, value: u64) -> Result<(), Fault> {
        self.environment.access(&self.space, address(page), Access::WRITE)?.store(value, SeqCst);
        Ok(())
    }

    fn move_page(&self, from: u64, to: u64) {
        let request = RemapRequest {
            address: from,
            old_length: PAGE_SIZE,
            new_length: PAGE_SIZE,
            may_move: true,
            to: MoveTo::Fixed(to),
            keep_source: false,
        };
        assert_eq!(self.space.remap(request), Ok(to));
    }

    /// The owner takes the page from stage 2k to stage 2k + 2 by some operation.
    fn change(&self, page: usize, k: u64, kind: u64) {
        self.stages[page].store(2 * k + 1, SeqCst);
        let mut expected = Ok(0);
        match kind % 5 {
            0 => self.space.advise(Self::range(page), Advice::DontNeed).unwrap(),
            1 => {
                self.space.unmap(Self::range(page)).unwrap();
                assert_eq!(self.load(page), Err(Fault::NotMapped));
                self.map(page);
            }
            2 => {
                self.space.protect(Self::range(page), Rights::READ, false).unwrap();
                assert_eq!(self.store(page, 1), Err(Fault::NotAllowed));
                self.space.protect(Self::range(page), READ_WRITE, false).unwrap();
                expected = Ok(value(page, k));
            }
            3 => {
                let elsewhere = ELSEWHERE + page as u64 * PAGE_SIZE;
                self.move_page(address(page), elsewhere);
                assert_eq!(self.load(page), Err(Fault::NotMapped));
                self.move_page(elsewhere, address(page));
                expected = Ok(value(page, k));
            }
            _ => {
                // The child has a copy of everything, whatever others did meanwhile, and keeps it over our store.
                let child = self.space.fork().unwrap();
                self.store(page, value(page, k)).unwrap();
                let mut bytes = [0; 8];
                child.read_user(address(page), &mut bytes).unwrap();
                assert_eq!(u64::from_ne_bytes(bytes), value(page, k));
                child.write_user(address(page), &[0xff; 8]).unwrap();
                expected = Ok(value(page, k));
            }
        }
        assert_eq!(self.load(page), expected);
        self.store(page, value(page, k + 1)).unwrap();
        self.stages[page].store(2 * k + 2, SeqCst);
    }

    /// Looks at a page as one who does not own it.
    fn look(&self, page: usize) {
        let before = self.stages[page].load(SeqCst);
        let seen = self.load(page);
        let after = self.stages[page].load(SeqCst);
        if before == after && before.is_multiple_of(2) {
            assert_eq!(seen, Ok(value(page, before / 2)), "page {page} in stage {before}");
        } else if let Ok(seen) = seen {
            assert!(seen == 0 || seen >> 32 == page as u64 + 1, "page {page} shows {seen:#x}");
        }
    }

    fn run(&self, cpu: usize, seed: u64) {
        self.environment.enter(cpu, &self.space);
        let mut random = seed * CPUS as u64 + cpu as u64 + 1;
        let mut draw = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut values = [0; PAGES];
        for _ in 0..ROUNDS {
            let own = draw() as usize % (PAGES / CPUS) * CPUS + cpu;
            self.change(own, values[own], draw());
            values[own] += 1;
            (0..12).for_each(|_| self.look(draw() as usize % PAGES));
        }
        self.owners_at_work.fetch_sub(1, SeqCst);
        while self.owners_at_work.load(SeqCst) > 0 {
            self.look(draw() as usize % PAGES);
        }
        self.environment.leave(&self.space, &self.left);
    }
}

#[test]
fn nobody_sees_a_page_as_it_was() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SEED={seed}");
    let environment = ThreadEnvironment::new();
    let free = environment.0.frames.statistics().free;
    let space = memory::AddressSpace::new(&environment).unwrap();
    let world = Arc::new(World {
        environment: environment.clone(),
        space,
        stages: [const { AtomicU64::new(0) }; PAGES],
        owners_at_work: AtomicUsize::new(CPUS),
        left: AtomicUsize::new(0),
    });
    for page in 0..PAGES {
        world.map(page);
        world.space.write_user(address(page), &value(page, 0).to_ne_bytes()).unwrap();
    }
    let threads: Vec<_> = (0..CPUS)
        .map(|cpu| {
            let world = world.clone();
            std::thread::spawn(move || {
                let run = std::panic::AssertUnwindSafe(|| world.run(cpu, seed));
                if std::panic::catch_unwind(run).is_err() {
                    // The others wait for this CPU's answers, for ever: end here, the message is out.
                    std::process::abort();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(world);
    assert_eq!(environment.0.frames.statistics().free, free, "frames were lost");
}
