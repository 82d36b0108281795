//! Objects whose pages come from a store: what is brought in, written back and taken back, when, and with how many interrupts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use coherence::Switches;
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    AreaFlags, Backing, BackingError, Direction, Fault, FrameRef, Identity, MapRequest, MemoryObject,
    PAGE_SIZE, PageRange, Place, Rights, Store, StoreFailed, Transfer,
};

const BASE: u64 = 0x4000_0000;
const OTHERS: u64 = CPUS as u64 - 1;
/// Pages of the store; the last has 512 bytes.
const PAGES: u64 = 33;
const SIZE: u64 = 32 * PAGE_SIZE + 512;
/// Pages that one transfer carries.
const MOST: u64 = 8;

type Object = Arc<MemoryObject<TurnEnvironment>>;
type Hook = Box<dyn FnMut() + Send>;

/// A disk that is done when somebody waits for it.
#[derive(Default)]
struct Disk {
    bytes: Mutex<Vec<u8>>,
    begun: Mutex<Vec<(Direction, u64, usize)>>,
    waiting: Mutex<Vec<Waiting>>,
    is_broken: AtomicBool,
    /// Called when something has begun to go out.
    on_writing: Mutex<Option<Hook>>,
}

struct Waiting {
    direction: Direction,
    first: u64,
    frames: Vec<FrameRef<TurnEnvironment>>,
    transfer: Arc<Transfer>,
}

impl Disk {
    /// Its page `n` is full of `n`.
    fn new() -> Arc<Self> {
        let bytes = (0..SIZE).map(|offset| (offset / PAGE_SIZE) as u8).collect();
        Arc::new(Self { bytes: Mutex::new(bytes), ..Self::default() })
    }

    fn object(self: &Arc<Self>, environment: &TurnEnvironment) -> Object {
        let identity = Identity { device: 254, inode: 0 };
        Arc::new(MemoryObject::with_store(environment, identity, "disk".into(), SIZE, self.clone()))
    }

    /// What was begun since the last time: how often, and how many pages.
    fn take_begun(&self, direction: Direction) -> (usize, usize) {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap());
        let of: Vec<_> = begun.iter().filter(|(begun, ..)| *begun == direction).collect();
        (of.len(), of.iter().map(|(.., pages)| pages).sum())
    }

    fn word(&self, page: u64) -> u64 {
        let at = (page * PAGE_SIZE) as usize;
        u64::from_le_bytes(self.bytes.lock().unwrap()[at..at + 8].try_into().unwrap())
    }

    fn carry(&self, waiting: &Waiting) {
        let mut bytes = self.bytes.lock().unwrap();
        for (page, frame) in (waiting.first..).zip(&waiting.frames) {
            let start = (page * PAGE_SIZE) as usize;
            let end = bytes.len().min(start + PAGE_SIZE as usize);
            match waiting.direction {
                Direction::In => frame.write(0, &bytes[start..end]),
                Direction::Out => frame.read(0, &mut bytes[start..end]),
            }
        }
    }
}

impl Store<TurnEnvironment> for Disk {
    fn most_pages(&self) -> u64 {
        MOST
    }

    fn begin(
        &self,
        direction: Direction,
        first: u64,
        frames: Vec<FrameRef<TurnEnvironment>>,
        transfer: &Arc<Transfer>,
    ) {
        assert!(!frames.is_empty() && frames.len() as u64 <= MOST);
        self.begun.lock().unwrap().push((direction, first, frames.len()));
        self.waiting.lock().unwrap().push(Waiting { direction, first, frames, transfer: transfer.clone() });
        if direction == Direction::Out
            && let Some(hook) = &mut *self.on_writing.lock().unwrap()
        {
            hook();
        }
    }

    fn wait(&self, transfer: &Transfer) -> Result<(), StoreFailed> {
        for waiting in std::mem::take(&mut *self.waiting.lock().unwrap()) {
            let is_broken = self.is_broken.load(Ordering::Relaxed);
            if !is_broken {
                self.carry(&waiting);
            }
            waiting.transfer.end(if is_broken { Err(StoreFailed) } else { Ok(()) });
        }
        transfer.outcome().expect("what is waited for was begun")
    }

    fn make_lasting(&self) -> Result<(), StoreFailed> {
        Ok(())
    }
}

fn map(space: &TurnSpace, object: &Object, flags: AreaFlags) {
    let request = MapRequest {
        place: Place::Fixed(BASE),
        length: PAGES * PAGE_SIZE,
        rights: Rights::READ | Rights::WRITE,
        may: Rights::all(),
        flags,
        object: Some((object.clone(), 0)),
        populate: false,
    };
    space.map(request).unwrap();
}

fn at(page: u64) -> u64 {
    BASE + page * PAGE_SIZE
}

/// The word that a page of the store starts with at first.
fn first_word(page: u64) -> u64 {
    page * 0x0101_0101_0101_0101
}

#[test]
fn a_sequence_is_read_ahead_and_a_page_alone_is_not() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let object = disk.object(&environment);
    let mut byte = [0; 1];
    assert_eq!(object.read(20 * PAGE_SIZE, &mut byte), Ok(1));
    assert_eq!((byte, disk.take_begun(Direction::In)), ([20], (1, 1)));
    let mut all = vec![0; SIZE as usize];
    assert_eq!(object.read(0, &mut all), Ok(SIZE as usize));
    assert!((0..).zip(&all).all(|(offset, byte)| u64::from(*byte) == offset / PAGE_SIZE));
    // Pages 0 to 7, 8 to 15, 16 to 19, 21 to 28, 29 to 32.
    assert_eq!(disk.take_begun(Direction::In), (5, 32));
    assert_eq!(object.read(SIZE - 3, &mut all), Ok(3));
    assert_eq!(object.read(SIZE, &mut all), Ok(0));
    assert_eq!(disk.take_begun(Direction::In), (0, 0));
}

#[test]
fn only_a_whole_page_is_written_without_being_read() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let object = disk.object(&environment);
    assert_eq!(object.write(5 * PAGE_SIZE, &[1; 2 * PAGE_SIZE as usize]), Ok(8192));
    assert_eq!(object.write(32 * PAGE_SIZE, &[2; 600]), Ok(512), "up to the end");
    assert_eq!(disk.take_begun(Direction::In), (0, 0));
    assert_eq!(object.write(10 * PAGE_SIZE + 8, &[3; 8]), Ok(8));
    assert_eq!(disk.take_begun(Direction::In), (1, 1));
    object.write_back(0..u64::MAX);
    assert_eq!(disk.take_begun(Direction::Out), (3, 4));
    assert_eq!([5, 6, 32].map(|page| disk.word(page)), [1, 1, 2].map(first_word));
    assert_eq!(disk.word(10), first_word(10), "what was not written is as it was");
    object.write_back(0..u64::MAX);
    assert_eq!(disk.take_begun(Direction::Out), (0, 0), "all is clean");
}

#[test]
fn a_page_that_is_on_its_way_is_nobodys() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let object = disk.object(&environment);
    assert_eq!(object.frame(40).err(), Some(BackingError::PastEnd));
    assert_eq!(object.frame(3).err(), Some(BackingError::NotYet));
    object.bring_in(3).unwrap();
    assert_eq!(object.frame(2).err(), Some(BackingError::NotYet));
    // Page 3 is here, so page 4 is taken for the next of a sequence.
    object.bring_in(4).unwrap();
    assert_eq!(disk.take_begun(Direction::In), (2, 9));
    let frame = object.frame(11).unwrap();
    let mut byte = [0; 1];
    frame.read(0, &mut byte);
    assert_eq!(byte, [11]);
}

#[test]
fn what_is_stored_through_a_mapping_is_written_each_time() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        assert_eq!(environment.load(&space, at(9)), Ok(first_word(9)));
    }
    for value in [100, 200, 300] {
        environment.store(&space, at(9), value).unwrap();
        object.write_back(0..u64::MAX);
        assert_eq!(disk.word(9), value);
        object.write_back(0..u64::MAX);
        assert_eq!(disk.take_begun(Direction::Out), (1, 1));
        environment.check_caches();
    }
    assert_eq!(environment.load(&space, at(PAGES)), Err(Fault::NotMapped));
    // What is unmapped while it is dirty stays dirty.
    environment.store(&space, at(9), 400).unwrap();
    space.unmap(PageRange::new(BASE, PAGES * PAGE_SIZE).unwrap()).unwrap();
    object.write_back(0..u64::MAX);
    assert_eq!(disk.word(9), 400);
}

#[test]
fn pages_that_nobody_maps_go_first_and_mapped_ones_go_together() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    object.read(0, &mut vec![0; SIZE as usize]).unwrap();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        (0..16).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(first_word(page))));
    }
    object.write(20 * PAGE_SIZE, &[7; 8]).unwrap();
    environment.store(&space, at(3), 33).unwrap();
    // 17 pages are not mapped; one of them is dirty.
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.shrink(16), 16)), 0);
    assert_eq!(object.resident_pages(), 17);
    // Of 16 mapped ones one is dirty. One round of interrupts for all of them.
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.shrink(100), 15)), OTHERS);
    environment.check_caches();
    assert_eq!(object.resident_pages(), 2);
    object.write_back(0..u64::MAX);
    assert_eq!((disk.word(3), disk.word(20)), (33, 0x0707_0707_0707_0707));
    assert_eq!(object.shrink(100), 2);
    assert_eq!(object.resident_pages(), 0);
    for page in 0..16 {
        assert_eq!(environment.load(&space, at(page)), Ok(if page == 3 { 33 } else { first_word(page) }));
    }
}

#[test]
fn without_batches_each_mapped_page_has_its_own_round() {
    let switches = Switches { batch: false, ..Switches::DEFAULT };
    let (environment, disk) = (TurnEnvironment::new(switches), Disk::new());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        (0..16).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(first_word(page))));
    }
    // What was read ahead and not looked at goes first.
    let ahead = object.resident_pages() - 16;
    assert_eq!(object.shrink(ahead), ahead);
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.shrink(16), 16)), 16 * OTHERS);
}

#[test]
fn a_page_is_not_taken_back_while_it_is_written() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let object = disk.object(&environment);
    object.write(0, &[9; PAGE_SIZE as usize]).unwrap();
    let (inside, outside) = (object.clone(), Arc::new(Mutex::new(None)));
    let taken = outside.clone();
    *disk.on_writing.lock().unwrap() =
        Some(Box::new(move || *taken.lock().unwrap() = Some(inside.shrink(10))));
    object.write_back(0..u64::MAX);
    assert_eq!(*outside.lock().unwrap(), Some(0), "it would be read again before it is there");
    *disk.on_writing.lock().unwrap() = None;
    assert_eq!((object.shrink(10), disk.word(0)), (1, first_word(9)));
}

#[test]
fn failures_are_told_and_the_next_try_is_a_new_one() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), Disk::new());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    environment.be(0);
    environment.activate(&space);
    disk.is_broken.store(true, Ordering::Relaxed);
    assert_eq!(object.read(0, &mut [0; 8]), Err(BackingError::Failed));
    assert_eq!(object.write(4, &[0; 8]), Err(BackingError::Failed));
    assert_eq!(environment.load(&space, at(7)), Err(Fault::Bus));
    disk.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(environment.load(&space, at(7)), Ok(first_word(7)));
    environment.store(&space, at(7), 70).unwrap();
    object.write_back(0..u64::MAX);
    assert_eq!((object.failures(), disk.word(7)), (0, 70));
    environment.store(&space, at(7), 71).unwrap();
    disk.is_broken.store(true, Ordering::Relaxed);
    object.write_back(0..u64::MAX);
    object.write_back(0..u64::MAX);
    assert_eq!((object.failures(), disk.word(7)), (1, 70), "what could not be written counts as written");
    assert_eq!(environment.load(&space, at(7)), Ok(71), "and is still in memory");
}
