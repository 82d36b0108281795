//! One call is one round: at most one interrupt for each CPU that uses the space, over however many areas, tables and gigabytes it goes.

use std::sync::Arc;

use coherence::{Event, Row, Switches};
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{Access, Advice, AreaFlags, Fault, MapRequest, PAGE_SIZE, PageRange, Place, Rights};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const BASE: u64 = 0x4000_0000;
const TABLE: u64 = 512 * PAGE_SIZE;
const GIGABYTE: u64 = 512 * TABLE;
const OTHERS: u64 = CPUS as u64 - 1;
/// So many areas, no two neighbours of which are alike.
const AREAS: u64 = 200;

/// Many areas side by side, over several leaf tables, of which every CPU has stored to each third page.
fn many_areas() -> (TurnEnvironment, Arc<TurnSpace>, PageRange) {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
    }
    let length = 9 * PAGE_SIZE;
    for area in 0..AREAS {
        let flags = if area % 2 == 0 { AreaFlags::NOT_DUMPED } else { AreaFlags::empty() };
        map(&space, BASE + area * length, length, flags);
    }
    let whole = PageRange::new(BASE, AREAS * length).unwrap();
    touch(&environment, &space, (0..whole.pages()).step_by(3).map(|page| BASE + page * PAGE_SIZE));
    assert_eq!(space.snapshot().len() as u64, AREAS);
    (environment, space, whole)
}

fn map(space: &TurnSpace, address: u64, length: u64, flags: AreaFlags) {
    let request = MapRequest {
        place: Place::Fixed(address),
        length,
        rights: READ_WRITE,
        may: Rights::all(),
        flags: flags | AreaFlags::NO_RESERVE,
        object: None,
        populate: false,
    };
    space.map(request).unwrap();
}

fn touch(environment: &TurnEnvironment, space: &Arc<TurnSpace>, pages: impl Iterator<Item = u64> + Clone) {
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        pages.clone().for_each(|page| environment.store(space, page, page).unwrap());
    }
}

#[test]
fn mprotect_over_many_areas_is_one_round() {
    let (environment, space, whole) = many_areas();
    let down = environment.interrupts_of(|| space.protect(whole, Rights::READ, false).unwrap());
    environment.check_caches();
    let up = environment.interrupts_of(|| space.protect(whole, READ_WRITE, false).unwrap());
    assert_eq!((down, up), (OTHERS, 0));
}

#[test]
fn an_mprotect_that_ends_in_a_hole_has_flushed_once_what_it_changed() {
    let (environment, space, whole) = many_areas();
    space.unmap(PageRange::new(whole.end() - PAGE_SIZE, PAGE_SIZE).unwrap()).unwrap();
    let down = environment.interrupts_of(|| assert!(space.protect(whole, Rights::READ, false).is_err()));
    environment.check_caches();
    assert_eq!(down, OTHERS);
    assert_eq!(environment.access(&space, BASE, Access::WRITE), Err(Fault::NotAllowed));
}

#[test]
fn munmap_of_many_areas_is_one_round() {
    let (environment, space, whole) = many_areas();
    assert_eq!(environment.interrupts_of(|| space.unmap(whole).unwrap()), OTHERS);
    environment.check_caches();
    assert_eq!(space.sizes().resident, 0);
}

#[test]
fn advice_about_many_areas_is_one_round() {
    for advice in [Advice::DontNeed, Advice::Free] {
        let (environment, space, whole) = many_areas();
        assert_eq!(environment.interrupts_of(|| space.advise(whole, advice).unwrap()), OTHERS);
        environment.check_caches();
        assert_eq!(space.sizes().resident, 0);
    }
}

/// A CPU that keeps what it faulted at, which x86 does not.
#[test]
fn an_access_that_faults_again_and_again_for_nothing_is_helped() {
    let (environment, space, whole) = many_areas();
    space.protect(whole, Rights::READ, false).unwrap();
    environment.load(&space, BASE).unwrap();
    // Nobody is told of rights that are added.
    space.protect(whole, READ_WRITE, false).unwrap();
    let fault = || space.handle_fault(BASE, Access::WRITE, true);
    // The first in a row.
    fault().unwrap();
    let before = environment.0.coherence.ledger().total(Row::Event(Event::SpuriousFault));
    let mut faults = 0;
    while environment.has_cached(BASE) && faults < 10 {
        fault().unwrap();
        faults += 1;
    }
    let counted = environment.0.coherence.ledger().total(Row::Event(Event::SpuriousFault)) - before;
    assert_eq!((faults, counted), (3, 3));
}

#[test]
fn a_very_large_range_is_one_round() {
    type Call = fn(&TurnSpace, PageRange);
    let calls: [Call; 3] = [
        |space, range| space.unmap(range).unwrap(),
        |space, range| space.protect(range, Rights::empty(), false).unwrap(),
        |space, range| space.advise(range, Advice::DontNeed).unwrap(),
    ];
    for call in calls {
        let environment = TurnEnvironment::new(Switches::DEFAULT);
        let space = environment.space();
        for cpu in (0..CPUS).rev() {
            environment.be(cpu);
            environment.activate(&space);
        }
        // Pages and tables far apart, and so many frames that the list of them must grow.
        let range = PageRange::new(BASE, 64 * GIGABYTE).unwrap();
        map(&space, BASE, 64 * GIGABYTE, AreaFlags::empty());
        let far = (0..64).map(|number| BASE + number * GIGABYTE + number * PAGE_SIZE);
        let near = (0..1200).map(|number| BASE + number * 3 * PAGE_SIZE);
        touch(&environment, &space, far.chain(near));
        assert_eq!(environment.interrupts_of(|| call(&space, range)), OTHERS);
        environment.check_caches();
    }
}
