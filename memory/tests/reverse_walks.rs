//! The way back from an object's pages to the entries that map them: every area is found, wherever it went and however it was cut, and none
//! that shows other pages.

use std::sync::Arc;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Advice, AreaFlags, Error, Fault, Identity, MapRequest, MemoryObject, MoveTo, PAGE_SIZE, PageRange, Place,
    RemapRequest, Rights,
};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const BASE: u64 = 0x4000_0000;
const OTHERS: u64 = CPUS as u64 - 1;
/// What the object starts as: it can be made again.
static ORIGINAL: [u8; 4 * PAGE_SIZE as usize] = [7; 4 * PAGE_SIZE as usize];
const SEVENS: u64 = 0x0707_0707_0707_0707;

type Object = Arc<MemoryObject<TurnEnvironment>>;

/// An object of four pages.
fn object(environment: &TurnEnvironment) -> Object {
    let identity = Identity { device: 1, inode: 1 };
    Arc::new(MemoryObject::from_bytes(environment, identity, "object".into(), &ORIGINAL))
}

/// Maps so many of its pages from `page` on.
fn map(space: &TurnSpace, address: u64, object: &Object, page: u64, count: u64, flags: AreaFlags) {
    let request = MapRequest {
        place: Place::Fixed(address),
        length: count * PAGE_SIZE,
        rights: READ_WRITE,
        may: Rights::all(),
        flags,
        object: Some((object.clone(), page)),
        populate: false,
    };
    space.map(request).unwrap();
}

fn at(page: u64) -> u64 {
    BASE + page * PAGE_SIZE
}

fn cut(object: &Object, pages: u64) {
    object.truncate(pages * PAGE_SIZE);
    object.forget_mapped(pages);
}

/// A space on all CPUs, which have read the four pages of an object that it shares.
fn busy_space() -> (TurnEnvironment, Arc<TurnSpace>, Object) {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let (space, object) = (environment.space(), object(&environment));
    map(&space, BASE, &object, 0, 4, AreaFlags::SHARED);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        (0..4).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(SEVENS)));
    }
    (environment, space, object)
}

#[test]
fn truncation_finds_shared_and_private_areas_whole_or_cut_and_those_of_children_in_one_round() {
    let (environment, space, object) = busy_space();
    // Pages 2 and 3 once more, from the middle of the object on, and a copy of page 3.
    map(&space, at(100), &object, 2, 2, AreaFlags::empty());
    environment.load(&space, at(100)).unwrap();
    environment.store(&space, at(101), 9).unwrap();
    space.unmap(PageRange::new(at(1), PAGE_SIZE).unwrap()).unwrap();
    let child = space.fork().unwrap();
    assert_eq!(environment.interrupts_of(|| cut(&object, 3)), OTHERS);
    environment.check_caches();
    for (page, seen) in [(0, Ok(SEVENS)), (2, Ok(SEVENS)), (3, Err(Fault::Bus)), (100, Ok(SEVENS))] {
        assert_eq!(environment.load(&space, at(page)), seen, "page {page}");
    }
    assert_eq!(environment.load(&space, at(101)), Err(Fault::Bus), "the copy goes too");
    environment.activate(&child);
    assert_eq!(environment.load(&child, at(101)), Err(Fault::Bus));
    assert_eq!(environment.load(&child, at(3)), Err(Fault::Bus));
    assert_eq!(environment.load(&child, at(2)), Ok(SEVENS));
    environment.leave_everywhere();
}

#[test]
fn a_hole_is_punched_through_all_mappings_in_one_round_and_leaves_private_copies() {
    let (environment, space, object) = busy_space();
    map(&space, at(100), &object, 1, 3, AreaFlags::empty());
    environment.store(&space, at(100), 9).unwrap();
    environment.load(&space, at(101)).unwrap();
    let child = space.fork().unwrap();
    let before = environment.free_frames();
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.punch(1..3), Ok(()))), OTHERS);
    environment.check_caches();
    // Two pages went and two of zeroes came, as the object had started with something else.
    assert_eq!((object.resident_pages(), environment.free_frames()), (4, before));
    let seen = [(0, SEVENS), (1, 0), (2, 0), (3, SEVENS), (100, 9), (101, 0), (102, SEVENS)];
    for (page, seen) in seen {
        assert_eq!(environment.load(&space, at(page)), Ok(seen), "page {page}");
    }
    environment.activate(&child);
    for (page, seen) in seen {
        assert_eq!(environment.load(&child, at(page)), Ok(seen), "page {page} of the child");
    }
    environment.leave_everywhere();
}

#[test]
fn advice_punches_holes_into_all_objects_of_a_range_in_one_round() {
    let (environment, space, object) = busy_space();
    let plain = |inode| {
        let identity = Identity { device: 1, inode };
        Arc::new(MemoryObject::new(&environment, identity, "plain".into(), 4 * PAGE_SIZE))
    };
    let objects = [plain(2), plain(3)];
    for (number, object) in (1..).zip(&objects) {
        map(&space, at(4 * number), object, 0, 4, AreaFlags::SHARED);
    }
    // The first object once more, and two areas that refuse.
    map(&space, at(12), &object, 2, 2, AreaFlags::SHARED);
    map(&space, at(14), &object, 0, 1, AreaFlags::empty());
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        (0..14).for_each(|page| environment.store(&space, at(page), page + 1).unwrap());
    }
    let range = PageRange::new(at(1), 14 * PAGE_SIZE).unwrap();
    let mut answer = Ok(());
    assert_eq!(environment.interrupts_of(|| answer = space.advise(range, Advice::Remove)), OTHERS);
    environment.check_caches();
    assert_eq!(answer, Err(Error::NotAllowed), "what lies before it is punched");
    assert_eq!((objects[0].resident_pages(), objects[1].resident_pages()), (0, 0));
    assert_eq!(environment.load(&space, at(0)), Ok(1));
    (1..14).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(0), "page {page}"));
    space.lock(PageRange::new(at(4), PAGE_SIZE).unwrap(), false).unwrap();
    assert_eq!(space.advise(range, Advice::Remove), Err(Error::Invalid), "locked");
    let hole = PageRange::new(at(13), 3 * PAGE_SIZE).unwrap();
    space.unmap(PageRange::new(at(14), PAGE_SIZE).unwrap()).unwrap();
    assert_eq!(space.advise(hole, Advice::Remove), Err(Error::OutOfMemory));
    environment.leave_everywhere();
}

#[test]
fn areas_are_found_where_they_have_moved_and_how_they_have_grown() {
    let (environment, space, object) = busy_space();
    let request = RemapRequest {
        address: at(2),
        old_length: PAGE_SIZE,
        new_length: PAGE_SIZE,
        may_move: true,
        to: MoveTo::Fixed(at(200)),
        keep_source: false,
    };
    assert_eq!(space.remap(request), Ok(at(200)));
    let grown = RemapRequest { address: at(200), new_length: 2 * PAGE_SIZE, to: MoveTo::Hint(0), ..request };
    assert_eq!(space.remap(grown), Ok(at(200)));
    environment.store(&space, at(201), 9).unwrap();
    assert_eq!(environment.load(&space, at(3)), Ok(9), "it is page 3");
    cut(&object, 2);
    environment.check_caches();
    for page in [3, 200, 201] {
        assert_eq!(environment.load(&space, at(page)), Err(Fault::Bus), "page {page}");
    }
    assert_eq!(environment.load(&space, at(1)), Ok(SEVENS));
    environment.leave_everywhere();
}

#[test]
fn what_was_stored_through_any_area_is_handed_out_once() {
    let (environment, space, object) = busy_space();
    map(&space, at(100), &object, 2, 2, AreaFlags::SHARED);
    let handed_out = || {
        let mut all = Vec::new();
        object.clean(0..4, |page, frame| {
            let mut bytes = [0; 8];
            frame.read(0, &mut bytes);
            all.push((page, u64::from_ne_bytes(bytes)));
        });
        all
    };
    environment.store(&space, at(0), 1).unwrap();
    environment.store(&space, at(100), 2).unwrap();
    assert_eq!(handed_out(), [(0, 1), (2, 2)]);
    environment.check_caches();
    assert_eq!(handed_out(), []);
    environment.be(2);
    environment.store(&space, at(2), 3).unwrap();
    // A mark outlives its mapping.
    space.unmap(PageRange::new(at(0), 4 * PAGE_SIZE).unwrap()).unwrap();
    assert_eq!(handed_out(), [(2, 3)]);
    environment.leave_everywhere();
}

#[test]
fn pages_go_that_nobody_stored_to_and_only_those_asked_for() {
    let (environment, space, object) = busy_space();
    environment.store(&space, at(1), 1).unwrap();
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.reclaim(0..3), 2)), OTHERS);
    environment.check_caches();
    assert_eq!(
        (object.resident_pages(), space.resident_in(PageRange::new(BASE, 4 * PAGE_SIZE).unwrap())),
        (2, 1)
    );
    assert_eq!(environment.interrupts_of(|| assert_eq!(object.reclaim(0..3), 0)), 0);
    environment.be(1);
    for (page, seen) in [(0, SEVENS), (1, 1), (2, SEVENS), (3, SEVENS)] {
        assert_eq!(environment.load(&space, at(page)), Ok(seen), "page {page}");
    }
    environment.leave_everywhere();
}

#[test]
fn a_space_that_has_ended_is_not_found() {
    let (environment, space, object) = busy_space();
    environment.leave_everywhere();
    drop(space);
    let free = environment.free_frames();
    assert_eq!(environment.interrupts_of(|| cut(&object, 0)), 0);
    assert_eq!((object.resident_pages(), environment.free_frames()), (0, free + 4));
}
