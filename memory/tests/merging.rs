//! Pages with equal contents become one: which ones, what stores do to them, who is interrupted, and that no frame is lost.

use std::sync::Arc;

use coherence::{Cause, Row, Switches};
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{AreaFlags, Identity, MapRequest, MemoryObject, PAGE_SIZE, Place, Rights};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const FIRST: u64 = 0x4000_0000;
const SECOND: u64 = FIRST + PAGE_SIZE;
const OTHERS: u64 = CPUS as u64 - 1;

fn request(address: u64, pages: u64) -> MapRequest<TurnEnvironment> {
    MapRequest {
        place: Place::Fixed(address),
        length: pages * PAGE_SIZE,
        rights: READ_WRITE,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object: None,
        populate: false,
    }
}

/// A space that all CPUs run in, and two pages with these contents, to which all have stored.
fn two_pages(contents: [u64; 2]) -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    space.map(request(FIRST, 2)).unwrap();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        environment.store(&space, FIRST, contents[0]).unwrap();
        environment.store(&space, SECOND, contents[1]).unwrap();
    }
    (environment, space)
}

/// What all CPUs read in the two pages.
fn seen(environment: &TurnEnvironment, space: &Arc<TurnSpace>) -> [u64; 2] {
    let mut all = (0..CPUS).map(|cpu| {
        environment.be(cpu);
        [FIRST, SECOND].map(|page| environment.load(space, page).unwrap())
    });
    let first = all.next().unwrap();
    assert!(all.all(|other| other == first), "CPUs see different contents");
    environment.be(0);
    first
}

#[test]
fn equal_pages_become_one_in_two_rounds_and_part_again_when_they_are_stored_to() {
    let (environment, space) = two_pages([7, 7]);
    let free = environment.free_frames();
    assert_eq!(environment.interrupts_of(|| assert!(space.merge(FIRST, &space, SECOND))), 2 * OTHERS);
    assert_eq!(environment.0.coherence.ledger().total(Row::Requested(Cause::Merge)), 2);
    environment.check_caches();
    assert_eq!((environment.free_frames(), seen(&environment, &space)), (free + 1, [7, 7]));
    // Once more: there is nothing to be done but to see that nobody can write.
    assert_eq!(environment.interrupts_of(|| assert!(space.merge(SECOND, &space, FIRST))), 0);
    environment.store(&space, SECOND, 9).unwrap();
    assert_eq!(seen(&environment, &space), [7, 9]);
    environment.store(&space, FIRST, 8).unwrap();
    environment.check_caches();
    assert_eq!((environment.free_frames(), seen(&environment, &space)), (free, [8, 9]));
}

#[test]
fn pages_of_two_spaces_become_one_and_outlive_each_other() {
    let (environment, space) = two_pages([7, 8]);
    let other = environment.space();
    other.map(request(FIRST, 1)).unwrap();
    environment.activate(&other);
    environment.store(&other, FIRST, 8).unwrap();
    assert!(other.merge(FIRST, &space, SECOND));
    other.unmap(memory::PageRange::new(FIRST, PAGE_SIZE).unwrap()).unwrap();
    environment.activate(&space);
    assert_eq!(seen(&environment, &space), [7, 8]);
    let free = environment.free_frames();
    environment.store(&space, SECOND, 9).unwrap();
    assert_eq!(environment.free_frames(), free, "the last owner needs no copy");
    assert_eq!(seen(&environment, &space), [7, 9]);
    environment.check_caches();
}

#[test]
fn what_differs_is_not_there_or_is_an_objects_stays_as_it_is() {
    let (environment, space) = two_pages([7, 8]);
    let free = environment.free_frames();
    assert!(!space.merge(FIRST, &space, SECOND), "they differ");
    assert!(!space.merge(FIRST, &space, FIRST - PAGE_SIZE), "nothing is mapped there");
    space.map(request(SECOND + PAGE_SIZE, 1)).unwrap();
    assert!(!space.merge(SECOND + PAGE_SIZE, &space, FIRST), "it is not in memory");
    environment.load(&space, SECOND + PAGE_SIZE).unwrap();
    assert!(!space.merge(SECOND + PAGE_SIZE, &space, FIRST), "the page of zeroes is one already");
    let identity = Identity { device: 1, inode: 1 };
    let object = MemoryObject::new(&environment, identity, "object".into(), PAGE_SIZE);
    object.write_at(0, &7_u64.to_ne_bytes()).unwrap();
    let mut mapping = request(SECOND + 2 * PAGE_SIZE, 1);
    mapping.object = Some((Arc::new(object), 0));
    space.map(mapping).unwrap();
    environment.load(&space, SECOND + 2 * PAGE_SIZE).unwrap();
    assert!(!space.merge(SECOND + 2 * PAGE_SIZE, &space, FIRST), "calls may store to an object's page");
    assert_eq!(seen(&environment, &space), [7, 8]);
    environment.store(&space, FIRST, 9).unwrap();
    assert_eq!(seen(&environment, &space), [9, 8]);
    assert_eq!(environment.free_frames(), free - 1, "only the object has got a frame");
    environment.check_caches();
}
