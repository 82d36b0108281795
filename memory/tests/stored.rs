//! Objects whose pages come from a store: what is brought in, written back and taken back, when, and with how many interrupts.

use std::sync::{Arc, Mutex};

use coherence::Switches;
use machine::in_turn::{CPUS, TurnDisk, TurnEnvironment, TurnSpace};
use memory::{
    Advice, AreaFlags, Backing, BackingError, Direction, Environment, Error, Fault, MapRequest, MemoryObject,
    PAGE_SIZE, PageRange, Place, Rights, Trail, take_back,
};

const BASE: u64 = 0x4000_0000;
const OTHERS: u64 = CPUS as u64 - 1;
/// Pages of the store; the last has 512 bytes.
const PAGES: u64 = 33;
const SIZE: u64 = 32 * PAGE_SIZE + 512;

type Object = Arc<MemoryObject<TurnEnvironment>>;

/// A disk whose page `n` is full of `n`.
fn new_disk() -> Arc<TurnDisk> {
    TurnDisk::new((0..SIZE).map(|offset| (offset / PAGE_SIZE) as u8).collect())
}

/// What was begun since the last time: how often, and how many pages.
fn take_begun(disk: &TurnDisk, direction: Direction) -> (usize, u64) {
    let begun = disk.take_begun(direction);
    (begun.len(), begun.iter().map(|pages| pages.end - pages.start).sum())
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
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let object = disk.object(&environment);
    let mut byte = [0; 1];
    assert_eq!(object.read(20 * PAGE_SIZE, &mut byte, &Trail::new()), Ok(1));
    assert_eq!((byte, take_begun(&disk, Direction::In)), ([20], (1, 1)));
    let mut all = vec![0; SIZE as usize];
    assert_eq!(object.read(0, &mut all, &Trail::new()), Ok(SIZE as usize));
    assert!((0..).zip(&all).all(|(offset, byte)| u64::from(*byte) == offset / PAGE_SIZE));
    // Pages 0 to 7, 8 to 15, 16 to 19, 21 to 28, 29 to 32.
    assert_eq!(take_begun(&disk, Direction::In), (5, 32));
    assert_eq!(object.read(SIZE - 3, &mut all, &Trail::new()), Ok(3));
    assert_eq!(object.read(SIZE, &mut all, &Trail::new()), Ok(0));
    assert_eq!(take_begun(&disk, Direction::In), (0, 0));
}

#[test]
fn only_a_whole_page_is_written_without_being_read() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let object = disk.object(&environment);
    assert_eq!(object.write(5 * PAGE_SIZE, &[1; 2 * PAGE_SIZE as usize], &Trail::new()), Ok(8192));
    assert_eq!(object.write(32 * PAGE_SIZE, &[2; 600], &Trail::new()), Ok(512), "up to the end");
    assert_eq!(take_begun(&disk, Direction::In), (0, 0));
    assert_eq!(object.write(10 * PAGE_SIZE + 8, &[3; 8], &Trail::new()), Ok(8));
    assert_eq!(take_begun(&disk, Direction::In), (1, 1));
    object.write_back(0..u64::MAX);
    assert_eq!(take_begun(&disk, Direction::Out), (3, 4));
    assert_eq!([5, 6, 32].map(|page| disk.word(page)), [1, 1, 2].map(first_word));
    assert_eq!(disk.word(10), first_word(10), "what was not written is as it was");
    object.write_back(0..u64::MAX);
    assert_eq!(take_begun(&disk, Direction::Out), (0, 0), "all is clean");
}

#[test]
fn a_page_that_is_on_its_way_is_nobodys() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let object = disk.object(&environment);
    assert_eq!(object.frame(40).err(), Some(BackingError::PastEnd));
    assert_eq!(object.frame(3).err(), Some(BackingError::NotYet));
    object.bring_in(3).unwrap();
    assert_eq!(object.frame(2).err(), Some(BackingError::NotYet));
    // Page 3 is here, so page 4 is taken for the next of a sequence.
    object.bring_in(4).unwrap();
    assert_eq!(take_begun(&disk, Direction::In), (2, 9));
    let frame = object.frame(11).unwrap();
    let mut byte = [0; 1];
    frame.read(0, &mut byte);
    assert_eq!(byte, [11]);
}

#[test]
fn what_is_stored_through_a_mapping_is_written_each_time() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
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
        assert_eq!(take_begun(&disk, Direction::Out), (1, 1));
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
fn a_store_is_written_whose_mark_is_on_its_way_from_the_entry_to_the_frame() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    // The same again, in another table, which is come to later.
    let elsewhere = BASE + (2 << 20);
    let request = MapRequest {
        place: Place::Fixed(elsewhere),
        length: PAGES * PAGE_SIZE,
        rights: Rights::READ | Rights::WRITE,
        may: Rights::all(),
        flags: AreaFlags::SHARED,
        object: Some((object.clone(), 0)),
        populate: false,
    };
    space.map(request).unwrap();
    environment.activate(&space);
    environment.load(&space, at(3)).unwrap();
    environment.store(&space, elsewhere + 3 * PAGE_SIZE, 33).unwrap();
    let (other, shown) = (space.clone(), PageRange::new(elsewhere, PAGES * PAGE_SIZE).unwrap());
    environment.meanwhile(move || other.advise(shown, Advice::DontNeed).unwrap());
    object.write_back(0..u64::MAX);
    assert_eq!((disk.word(3), take_begun(&disk, Direction::Out)), (33, (1, 1)));
    // Who took the entry out may not have flushed when the page was read: its mark has stayed.
    object.write_back(0..u64::MAX);
    assert_eq!(take_begun(&disk, Direction::Out), (1, 1));
    object.write_back(0..u64::MAX);
    assert_eq!(take_begun(&disk, Direction::Out), (0, 0));
}

/// A space on all CPUs, which have loaded the first 16 pages of a disk.
fn sixteen_mapped(switches: Switches) -> (TurnEnvironment, Arc<TurnSpace>, Arc<TurnDisk>, Object) {
    let (environment, disk) = (TurnEnvironment::new(switches), new_disk());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        (0..16).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(first_word(page))));
    }
    (environment, space, disk, object)
}

#[test]
fn mapped_pages_that_were_used_stay_at_the_first_look_and_go_together() {
    let (environment, space, disk, object) = sixteen_mapped(Switches::DEFAULT);
    object.read(0, &mut vec![0; SIZE as usize], &Trail::new()).unwrap();
    object.write(20 * PAGE_SIZE, &[7; 8], &Trail::new()).unwrap();
    environment.store(&space, at(3), 33).unwrap();
    let shrink = |wanted| take_back(&environment, std::slice::from_ref(&object), wanted).taken;
    // 17 pages are not mapped; one of them was stored to.
    assert_eq!(environment.interrupts_of(|| assert_eq!(shrink(16), 16)), 0);
    assert_eq!(object.resident_pages(), 17);
    // Of 16 mapped ones one was stored to. One round of interrupts for all of them.
    assert_eq!(environment.interrupts_of(|| assert_eq!(shrink(100), 15)), OTHERS);
    environment.check_caches();
    assert_eq!(object.resident_pages(), 2);
    object.write_back(0..u64::MAX);
    assert_eq!((disk.word(3), disk.word(20)), (33, 0x0707_0707_0707_0707));
    assert_eq!(shrink(100), 2);
    assert_eq!(object.resident_pages(), 0);
    for page in 0..16 {
        assert_eq!(environment.load(&space, at(page)), Ok(if page == 3 { 33 } else { first_word(page) }));
    }
}

#[test]
fn locked_pages_stay_in_memory_and_in_their_entries() {
    let (environment, space, _disk, object) = sixteen_mapped(Switches::DEFAULT);
    let locked = PageRange::new(at(4), 3 * PAGE_SIZE).unwrap();
    space.lock(locked, false).unwrap();
    let take_all = || take_back(&environment, std::slice::from_ref(&object), 100).taken;
    assert_eq!((take_all(), take_all(), object.forget_clean()), (13, 0, 0));
    assert_eq!(object.resident_pages(), 3);
    assert_eq!(space.sizes().resident, 3, "they are still mapped");
    space.unlock(PageRange::new(at(5), PAGE_SIZE).unwrap()).unwrap();
    assert_eq!(take_all(), 1);
    space.unlock(locked).unwrap();
    assert_eq!((take_all(), object.resident_pages()), (2, 0));
}

#[test]
fn pages_that_are_paged_out_go_at_once_and_together_unless_others_map_them() {
    let (environment, space, _disk, object) = sixteen_mapped(Switches::DEFAULT);
    environment.store(&space, at(2), 22).unwrap();
    let other = environment.space();
    map(&other, &object, AreaFlags::SHARED);
    environment.be(0);
    environment.activate(&other);
    assert_eq!(environment.load(&other, at(5)), Ok(first_word(5)));
    environment.activate(&space);
    let all = PageRange::new(BASE, 16 * PAGE_SIZE).unwrap();
    let page_out = || space.advise(all, Advice::Retire { at_once: true }).unwrap();
    // One round, though page 5 is another's too, and page 2 was stored to.
    assert_eq!(environment.interrupts_of(page_out), OTHERS);
    environment.check_caches();
    assert_eq!((object.resident_pages(), space.sizes().resident), (2, 2));
    assert_eq!(environment.load(&space, at(7)), Ok(first_word(7)));
    space.lock(PageRange::new(at(7), PAGE_SIZE).unwrap(), false).unwrap();
    assert_eq!(space.advise(all, Advice::Retire { at_once: true }), Err(Error::Invalid));
}

#[test]
fn cold_pages_go_before_others() {
    let (environment, space, _disk, object) = sixteen_mapped(Switches::DEFAULT);
    let trail = Trail::new();
    for _ in 0..2 {
        object.read(0, &mut vec![0; 16 * PAGE_SIZE as usize], &trail).unwrap();
    }
    assert_eq!(environment.frames().page_counts().used, 16);
    let cold = PageRange::new(at(4), 4 * PAGE_SIZE).unwrap();
    let advise = || space.advise(cold, Advice::Retire { at_once: false }).unwrap();
    assert_eq!(environment.interrupts_of(advise), 0, "marks of use are taken without a flush");
    assert_eq!((environment.frames().page_counts().used, environment.frames().page_counts().idle), (12, 4));
    take_back(&environment, std::slice::from_ref(&object), 4);
    assert!((0..16).all(|page| object.is_resident(page) != (4..8).contains(&page)));
}

#[test]
fn without_batches_each_mapped_page_has_its_own_round() {
    let (environment, _space, _disk, object) = sixteen_mapped(Switches { batch: false, ..Switches::DEFAULT });
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.forget_clean(), 16)), 16 * OTHERS);
}

#[test]
fn what_was_read_ahead_and_never_looked_at_is_taken_back_too() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let object = disk.object(&environment);
    object.bring_in(0).unwrap();
    assert_eq!(environment.frames().page_counts().all(), 8);
    let taken = take_back(&environment, std::slice::from_ref(&object), 100);
    assert_eq!((taken.taken, environment.frames().page_counts().all()), (8, 0));
}

#[test]
fn a_page_is_not_taken_back_while_it_is_written() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let object = disk.object(&environment);
    object.write(0, &[9; PAGE_SIZE as usize], &Trail::new()).unwrap();
    let (inside, outside) = (object.clone(), Arc::new(Mutex::new(None)));
    let (taken, machine) = (outside.clone(), environment.clone());
    let shrink = move || take_back(&machine, std::slice::from_ref(&inside), 10).taken;
    let during = shrink.clone();
    disk.on_begin(Direction::Out, move || *taken.lock().unwrap() = Some(during()));
    object.write_back(0..u64::MAX);
    assert_eq!(*outside.lock().unwrap(), Some(0), "it would be read again before it is there");
    assert_eq!((shrink(), disk.word(0)), (1, first_word(9)));
}

#[test]
fn failures_are_told_and_the_next_try_is_a_new_one() {
    let (environment, disk) = (TurnEnvironment::new(Switches::DEFAULT), new_disk());
    let (space, object) = (environment.space(), disk.object(&environment));
    map(&space, &object, AreaFlags::SHARED);
    environment.be(0);
    environment.activate(&space);
    disk.set_broken(true);
    assert_eq!(object.read(0, &mut [0; 8], &Trail::new()), Err(BackingError::Failed));
    assert_eq!(object.write(4, &[0; 8], &Trail::new()), Err(BackingError::Failed));
    assert_eq!(environment.load(&space, at(7)), Err(Fault::Bus));
    disk.set_broken(false);
    assert_eq!(environment.load(&space, at(7)), Ok(first_word(7)));
    environment.store(&space, at(7), 70).unwrap();
    object.write_back(0..u64::MAX);
    assert_eq!((object.failures(), disk.word(7)), (0, 70));
    environment.store(&space, at(7), 71).unwrap();
    disk.set_broken(true);
    object.write_back(0..u64::MAX);
    object.write_back(0..u64::MAX);
    assert_eq!((object.failures(), disk.word(7)), (1, 70), "what could not be written counts as written");
    assert_eq!(environment.load(&space, at(7)), Ok(71), "and is still in memory");
}
