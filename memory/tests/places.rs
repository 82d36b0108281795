//! Where mappings, stacks and the heap come to lie, how far they grow, and how much is promised.

use coherence::Switches;
use machine::in_turn::{TurnEnvironment, TurnSpace};
use memory::{Access, AreaFlags, Error, Fault, MapRequest, PAGE_SIZE, PageRange, Place, Rights};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const BASE: u64 = 0x4000_0000;

fn request(place: Place, length: u64, rights: Rights) -> MapRequest<TurnEnvironment> {
    MapRequest {
        place,
        length,
        rights,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object: None,
        populate: false,
    }
}

fn map(space: &TurnSpace, address: u64, pages: u64) -> PageRange {
    space.map(request(Place::Fixed(address), pages * PAGE_SIZE, READ_WRITE)).unwrap()
}

fn pages(address: u64, count: u64) -> PageRange {
    PageRange::new(address, count * PAGE_SIZE).unwrap()
}

#[test]
fn a_stack_grows_down_to_its_limit_and_keeps_its_guard_gap() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    let mut stack = request(Place::Fixed(BASE), PAGE_SIZE, READ_WRITE);
    stack.flags = AreaFlags::GROWS_DOWN;
    space.map(stack).unwrap();
    environment.store(&space, BASE - 100 * PAGE_SIZE, 1).unwrap();
    assert_eq!(space.sizes().mapped, 101);
    assert_eq!(environment.store(&space, BASE - (8 << 20), 1), Err(Fault::NotMapped));
    map(&space, BASE - 500 * PAGE_SIZE, 1);
    assert_eq!(environment.store(&space, BASE - 300 * PAGE_SIZE, 1), Err(Fault::NotMapped));
    environment.store(&space, BASE - 200 * PAGE_SIZE, 1).unwrap();
    environment.leave_everywhere();
}

#[test]
fn a_stack_that_grows_looks_at_the_nearest_area_below_it_only() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    let stack = |address| MapRequest {
        flags: AreaFlags::GROWS_DOWN,
        ..request(Place::Fixed(address), PAGE_SIZE, READ_WRITE)
    };
    space.map(stack(BASE)).unwrap();
    map(&space, BASE - 20 * PAGE_SIZE, 1);
    assert_eq!(environment.store(&space, BASE - PAGE_SIZE, 1), Err(Fault::NotMapped));
    // Another stack hides what is behind it, and so does what nobody can reach.
    let neighbour = space.map(stack(BASE - 10 * PAGE_SIZE)).unwrap();
    environment.store(&space, BASE - PAGE_SIZE, 1).unwrap();
    space.unmap(neighbour).unwrap();
    assert_eq!(environment.store(&space, BASE - 2 * PAGE_SIZE, 1), Err(Fault::NotMapped));
    space.map(request(Place::Fixed(BASE - 10 * PAGE_SIZE), PAGE_SIZE, Rights::empty())).unwrap();
    environment.store(&space, BASE - 2 * PAGE_SIZE, 1).unwrap();
    environment.leave_everywhere();
}

#[test]
fn the_heap_moves_and_reports_where_it_stayed() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    space.set_heap_start(BASE);
    assert_eq!(space.set_heap_end(0), BASE);
    assert_eq!(space.set_heap_end(BASE + 10), BASE + 10);
    environment.store(&space, BASE, 1).unwrap();
    assert_eq!(environment.load(&space, BASE + PAGE_SIZE), Err(Fault::NotMapped));
    map(&space, BASE + 4 * PAGE_SIZE, 1);
    assert_eq!(space.set_heap_end(BASE + 4 * PAGE_SIZE), BASE + 10);
    assert_eq!(space.set_heap_end(BASE), BASE);
    assert_eq!(environment.load(&space, BASE), Err(Fault::NotMapped));
    environment.leave_everywhere();
}

#[test]
fn places_are_found_top_down_and_hints_are_heard() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    let anywhere = |hint, count| {
        space.map(request(Place::Anywhere { hint }, count * PAGE_SIZE, READ_WRITE)).map(|range| range.start())
    };
    let first = anywhere(0, 4).unwrap();
    assert_eq!(anywhere(0, 1), Ok(first - PAGE_SIZE));
    // A hole is found again, also by something smaller, and too large a mapping goes below.
    space.unmap(pages(first + PAGE_SIZE, 2)).unwrap();
    assert_eq!(anywhere(0, 3), Ok(first - 4 * PAGE_SIZE));
    assert_eq!(anywhere(0, 1), Ok(first + 2 * PAGE_SIZE));
    assert_eq!(anywhere(0, 1), Ok(first + PAGE_SIZE));
    assert_eq!(anywhere(0, 1), Ok(first - 5 * PAGE_SIZE));
    assert_eq!(anywhere(BASE + PAGE_SIZE + 1, 1), Ok(BASE + PAGE_SIZE));
    assert_eq!(anywhere(BASE + PAGE_SIZE + 1, 1), Ok(first - 6 * PAGE_SIZE));
    assert_eq!(anywhere(PAGE_SIZE + 1, 1), Ok(65536));
    assert_eq!(anywhere(1, 1), Ok(first - 7 * PAGE_SIZE));
    let if_free = |address| space.map(request(Place::FixedIfFree(address), PAGE_SIZE, READ_WRITE));
    assert_eq!(if_free(BASE + PAGE_SIZE), Err(Error::Exists));
    assert!(if_free(BASE).is_ok());
    assert_eq!(anywhere(0, 1 << 40), Err(Error::OutOfMemory));
}

#[test]
fn low_places_are_found_bottom_up_below_two_gib() {
    const TOP: u64 = 0x8000_0000;
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    let low = |hint, count| {
        space.map(request(Place::Low { hint }, count * PAGE_SIZE, Rights::READ)).map(|range| range.start())
    };
    assert_eq!(low(0, 2), Ok(BASE));
    assert_eq!(low(TOP + PAGE_SIZE, 1), Ok(BASE + 2 * PAGE_SIZE));
    assert_eq!(low(TOP - PAGE_SIZE, 1), Ok(TOP - PAGE_SIZE));
    assert_eq!(low(TOP - PAGE_SIZE, 1), Ok(BASE + 3 * PAGE_SIZE));
    space.unmap(pages(BASE + PAGE_SIZE, 1)).unwrap();
    assert_eq!(low(0, 2), Ok(BASE + 4 * PAGE_SIZE));
    assert_eq!(low(0, 1), Ok(BASE + PAGE_SIZE));
    // What is left is one gap below the page at the top.
    let left = (TOP - BASE) / PAGE_SIZE - 7;
    assert_eq!(low(0, left + 1), Err(Error::OutOfMemory));
    map(&space, TOP - (1 << 20), 1);
    assert_eq!(low(0, left), Err(Error::OutOfMemory));
    assert_eq!(low(0, (TOP - BASE) / PAGE_SIZE - 256 - 6), Ok(BASE + 6 * PAGE_SIZE));
    assert_eq!(low(0, 256), Err(Error::OutOfMemory));
}

#[test]
fn memory_is_promised_freely_but_not_more_than_could_ever_be() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    let huge = 1 << 30;
    assert_eq!(space.map(request(Place::Fixed(BASE), huge, READ_WRITE)), Err(Error::OutOfMemory));
    let mut reserved = request(Place::Fixed(BASE), huge, READ_WRITE);
    reserved.flags = AreaFlags::NO_RESERVE;
    let range = space.map(reserved).unwrap();
    environment.activate(&space);
    // Touching all of it ends in a clear answer, the reserve stays, and everything comes back.
    let outcome = space.populate(range, Access::WRITE);
    assert_eq!(outcome, Err(Fault::OutOfMemory));
    assert!(environment.free_frames() > 20);
    space.unmap(range).unwrap();
    environment.check_caches();
    assert!(environment.free_frames() > 5000);
    environment.leave_everywhere();
}

#[test]
fn a_mapping_comes_with_the_pages_behind_a_hole_that_another_thread_makes_meanwhile() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    let other = space.clone();
    environment.meanwhile(move || other.unmap(pages(BASE + 2 * PAGE_SIZE, 2)).unwrap());
    let wanted = MapRequest { populate: true, ..request(Place::Fixed(BASE), 6 * PAGE_SIZE, READ_WRITE) };
    space.map(wanted).unwrap();
    assert_eq!(space.sizes().mapped, 4);
    assert_eq!(space.sizes().resident, 4);
    environment.leave_everywhere();
}

#[test]
fn locking_goes_on_behind_what_may_not_be_accessed_and_tells_it() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    map(&space, BASE, 6);
    space.protect(pages(BASE + PAGE_SIZE, 2), Rights::empty(), false).unwrap();
    assert_eq!(space.lock(pages(BASE, 6), false), Err(Error::OutOfMemory));
    assert_eq!(space.sizes().resident, 4);
    // What is left to faults is left out.
    map(&space, BASE + 6 * PAGE_SIZE, 2);
    space.lock(pages(BASE + 6 * PAGE_SIZE, 2), true).unwrap();
    space.lock_all(true, false, true).unwrap();
    let wanted = MapRequest {
        populate: true,
        flags: AreaFlags::LOCKED | AreaFlags::LOCKED_ON_FAULT,
        ..request(Place::Fixed(BASE + 8 * PAGE_SIZE), PAGE_SIZE, READ_WRITE)
    };
    space.map(wanted).unwrap();
    assert_eq!(space.sizes().resident, 4);
    environment.leave_everywhere();
}
