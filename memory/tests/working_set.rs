//! What stays in memory when there is too little: pages that are used again, whatever streams by them.
//!
//! A set of pages is used over and over beside somebody who reads a disk many times the size of memory. Counted is how often
//! a page of the set has to be read again; and the same where pages go in the order of their numbers, as they did before anybody
//! looked at whether they are used.

use std::sync::Arc;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnDisk, TurnEnvironment, TurnSpace};
use memory::{
    AreaFlags, Environment, MapRequest, MemoryObject, PAGE_SIZE, PageCounts, Place, Rights, Trail, take_back,
};

const BASE: u64 = 0x4000_0000;
/// Pages of the disk, of memory that may be used for it, and of the set, which lies in its middle.
const PAGES: u64 = 4096;
const BUDGET: usize = 256;
const SET: u64 = 80;
const FIRST_OF_SET: u64 = PAGES / 2;
/// What is taken back at once.
const STEP: usize = 16;

type Object = Arc<MemoryObject<TurnEnvironment>>;

/// How room is made.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    ByUse,
    /// A hand that goes round the disk.
    ByNumber,
}

/// How somebody uses pages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Calls,
    Mapping,
}

struct Memory {
    environment: TurnEnvironment,
    space: Arc<TurnSpace>,
    disk: Arc<TurnDisk>,
    object: Object,
    order: Order,
    hand: u64,
}

impl Memory {
    fn new(order: Order) -> Self {
        let environment = TurnEnvironment::new(Switches::DEFAULT);
        // Page n begins with n.
        let disk = TurnDisk::prompt(0..PAGES);
        let object = disk.object(&environment);
        let space = environment.space();
        let request = MapRequest {
            place: Place::Fixed(BASE),
            length: PAGES * PAGE_SIZE,
            rights: Rights::READ,
            may: Rights::all(),
            flags: AreaFlags::SHARED,
            object: Some((object.clone(), 0)),
            populate: false,
        };
        environment.be(0);
        environment.activate(&space);
        space.map(request).unwrap();
        for cpu in (0..CPUS).rev() {
            environment.be(cpu);
            environment.activate(&space);
        }
        Self { environment, space, disk, object, order, hand: 0 }
    }

    fn counts(&self) -> PageCounts {
        self.environment.frames().page_counts()
    }

    /// As whoever brings in pages does first.
    fn keep_room(&mut self) {
        let goal = BUDGET - STEP;
        if self.counts().all() <= BUDGET - 8 {
            return;
        }
        let excess = self.counts().all() - goal;
        match self.order {
            Order::ByUse => {
                take_back(&self.environment, std::slice::from_ref(&self.object), excess);
            }
            Order::ByNumber => {
                let mut gone = 0;
                while gone < excess {
                    gone += self.object.reclaim(self.hand..self.hand + 1);
                    self.hand = (self.hand + 1) % PAGES;
                }
            }
        }
        assert!(self.counts().all() < BUDGET);
    }

    fn use_page(&mut self, page: u64, way: Way, trail: &Trail) {
        self.keep_room();
        let mut word = [0; 8];
        let found = match way {
            Way::Calls => {
                self.object.read(page * PAGE_SIZE, &mut word, trail).unwrap();
                u64::from_ne_bytes(word)
            }
            Way::Mapping => self.environment.load(&self.space, BASE + page * PAGE_SIZE).unwrap(),
        };
        assert_eq!(found, page);
    }

    /// How often pages of the set have come.
    fn readings(&self) -> u64 {
        self.disk.asked_for(FIRST_OF_SET..FIRST_OF_SET + SET)
    }

    /// Uses the set in turn, `often` pages of it for each eight of the stream; says how often pages of the set had to be read again.
    fn stream_beside_set(&mut self, set: Way, stream: Way, often: u64) -> u64 {
        let (of_set, of_stream) = (Trail::new(), Trail::new());
        for page in (0..SET).chain(0..SET) {
            self.use_page(FIRST_OF_SET + page, set, &of_set);
        }
        let before = self.readings();
        let mut next = 0;
        for page in (0..FIRST_OF_SET).chain(FIRST_OF_SET + 2 * SET..PAGES) {
            self.environment.be(1);
            self.use_page(page, stream, &of_stream);
            self.environment.be(0);
            if page % 8 == 0 {
                for _ in 0..often {
                    self.use_page(FIRST_OF_SET + next, set, &of_set);
                    next = (next + 1) % SET;
                }
            }
        }
        self.environment.check_caches();
        self.readings() - before
    }
}

#[test]
fn a_set_in_use_stays_while_a_disk_streams_by_and_goes_each_time_in_the_order_of_numbers() {
    // Eight pages of the set for each eight of the stream, and two.
    for (set, stream, often) in [
        (Way::Calls, Way::Calls, 8),
        (Way::Calls, Way::Calls, 2),
        (Way::Calls, Way::Mapping, 2),
        (Way::Mapping, Way::Calls, 2),
        (Way::Mapping, Way::Mapping, 8),
        (Way::Mapping, Way::Mapping, 4),
    ] {
        let passes = |order| {
            let mut memory = Memory::new(order);
            [(); 4].map(|()| memory.stream_beside_set(set, stream, often))
        };
        // While all pages have been used once, nothing tells which are used again.
        let [_, later @ ..] = passes(Order::ByUse);
        assert_eq!(later, [0; 3], "{set:?}, {stream:?}, {often}");
        assert_eq!(passes(Order::ByNumber), [SET; 4], "{set:?}, {stream:?}, {often}");
    }
}

#[test]
fn a_new_set_takes_the_place_of_an_old_one_though_the_idle_list_is_too_short_for_it() {
    let (old, new) = (0..100, 1000..1170);
    let mut memory = Memory::new(Order::ByUse);
    let passes = |memory: &mut Memory, pages: std::ops::Range<u64>, count: usize| {
        for page in (0..count).flat_map(|_| pages.clone()) {
            memory.use_page(page, Way::Calls, &Trail::new());
        }
    };
    passes(&mut memory, old, 2);
    assert_eq!(memory.counts().used, 100);
    // What is left for idle pages has no room for all of the new set, of which each pass finds nothing. It has for those that pages of the
    // old set would make room for, which is what the marks say that are left of them.
    passes(&mut memory, new.clone(), 3);
    let counts = memory.counts();
    assert!(counts.refaulted_in_use > 0 && counts.deactivated > 0, "{counts:?}");
    passes(&mut memory, new.clone(), 3);
    let before = memory.disk.asked_for(new.clone());
    passes(&mut memory, new.clone(), 3);
    assert_eq!(memory.disk.asked_for(new), before, "{:?}", memory.counts());
}

#[test]
fn small_pieces_of_one_page_in_a_row_are_one_use() {
    let memory = Memory::new(Order::ByUse);
    let trail = Trail::new();
    for piece in 0..64 {
        memory.object.read(piece * 64, &mut [0; 64], &trail).unwrap();
    }
    assert_eq!(memory.counts().used, 0);
    memory.object.read(PAGE_SIZE, &mut [0; 64], &trail).unwrap();
    memory.object.read(0, &mut [0; 64], &trail).unwrap();
    assert_eq!((memory.counts().used, memory.counts().activated), (1, 1));
}
