//! Upper tables that CPUs have for themselves: who is told of what, and what becomes of links.

use std::sync::Arc;

use coherence::{Reason, Row, Switches};
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Advice, AreaFlags, Environment, FrameRef, LargePolicy, MapRequest, MoveTo, PAGE_SIZE, PageRange, Place,
    RemapRequest, Rights,
};

const BASE: u64 = 0x4000_0000;
const TABLE: u64 = 2 << 20;
const OTHERS: u64 = CPUS as u64 - 1;

fn map(space: &TurnSpace, start: u64, length: u64) {
    let request = MapRequest {
        place: Place::Fixed(start),
        length,
        rights: Rights::READ | Rights::WRITE,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object: None,
        populate: false,
    };
    space.map(request).unwrap();
}

/// Where the memory of one CPU is: two tables' worth.
fn of(cpu: usize) -> u64 {
    BASE + cpu as u64 * 2 * TABLE
}

fn page(address: u64) -> PageRange {
    PageRange::new(address, PAGE_SIZE).unwrap()
}

/// A space on all CPUs, each of which has stored to a page of its own, and to a page that all share. CPU 0 goes on.
fn parted() -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::new(Switches { sharers: true, ..Switches::DEFAULT });
    let space = environment.space();
    map(&space, BASE, (CPUS as u64 + 1) * 2 * TABLE);
    environment.be(0);
    environment.activate(&space);
    environment.store(&space, of(0), 1).unwrap();
    space.part(CPUS).unwrap();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        environment.store(&space, of(cpu), 1).unwrap();
        environment.store(&space, of(CPUS), cpu as u64).unwrap();
    }
    environment.check_caches();
    (environment, space)
}

fn drop_page(space: &TurnSpace, address: u64) {
    space.advise(page(address), Advice::DontNeed).unwrap();
}

#[test]
fn what_one_cpu_has_found_interrupts_nobody_else() {
    let (environment, space) = parted();
    let skipped = || environment.coherence().ledger().total(Row::Skipped(Reason::NotSharing));
    let before = skipped();
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(0))), 0);
    environment.check_caches();
    assert_eq!(skipped() - before, OTHERS);
    assert_eq!(environment.load(&space, of(0)), Ok(0));
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(CPUS))), OTHERS);
    environment.check_caches();
    // Of two that have found a table, the other one.
    environment.be(1);
    assert_eq!(environment.load(&space, of(0)), Ok(0));
    environment.be(0);
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(0))), 1);
    environment.check_caches();
    // Also of those that are not told by themselves.
    environment.be(2);
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(1))), 1);
    environment.check_caches();
}

#[test]
fn without_the_mechanism_all_are_told() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    map(&space, BASE, PAGE_SIZE);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
    }
    space.part(CPUS).unwrap();
    environment.store(&space, BASE, 1).unwrap();
    assert_eq!(environment.interrupts_of(|| drop_page(&space, BASE)), OTHERS);
}

#[test]
fn rights_are_taken_from_those_that_may_hold_them() {
    let (environment, space) = parted();
    let protect = |address| space.protect(page(address), Rights::READ, false).unwrap();
    assert_eq!(environment.interrupts_of(|| protect(of(0))), 0);
    environment.check_caches();
    assert_eq!(environment.interrupts_of(|| protect(of(CPUS))), OTHERS);
    environment.check_caches();
    let both = PageRange::new(of(0), of(1) + PAGE_SIZE - of(0)).unwrap();
    assert_eq!(environment.interrupts_of(|| space.protect(both, Rights::empty(), false).unwrap()), 1);
    environment.check_caches();
}

#[test]
fn a_table_goes_from_all_who_have_linked_it() {
    let (environment, space) = parted();
    let whole = PageRange::new(of(0), 2 * TABLE).unwrap();
    assert_eq!(environment.interrupts_of(|| space.unmap(whole).unwrap()), 0);
    environment.check_caches();
    environment.be(1);
    assert_eq!(environment.load(&space, of(CPUS)), Ok(0));
    environment.be(0);
    let shared = PageRange::new(of(CPUS), 2 * TABLE).unwrap();
    assert_eq!(environment.interrupts_of(|| space.unmap(shared).unwrap()), OTHERS);
    environment.check_caches();
    // The next table there is another one, which nobody has found.
    map(&space, of(CPUS), 2 * TABLE);
    environment.store(&space, of(CPUS), 5).unwrap();
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(CPUS))), 0);
    environment.check_caches();
    (0..CPUS).for_each(|cpu| {
        environment.be(cpu);
        assert_eq!(environment.load(&space, of(CPUS)), Ok(0));
    });
    environment.check_caches();
}

#[test]
fn a_cpu_that_only_borrows_the_space_is_told_of_freed_tables_it_has_found() {
    let (environment, space) = parted();
    environment.be(1);
    environment.go_lazy();
    environment.be(0);
    let of_another = PageRange::new(of(2), 2 * TABLE).unwrap();
    assert_eq!(environment.interrupts_of(|| space.unmap(of_another).unwrap()), 1);
    environment.check_caches();
    let its_own = PageRange::new(of(1), 2 * TABLE).unwrap();
    assert_eq!(environment.interrupts_of(|| space.unmap(its_own).unwrap()), 1);
    environment.check_caches();
}

#[test]
fn a_table_that_moves_is_linked_anew() {
    let (environment, space) = parted();
    let target = BASE + 64 * TABLE;
    let request = RemapRequest {
        address: of(CPUS),
        old_length: 2 * TABLE,
        new_length: 2 * TABLE,
        may_move: true,
        to: MoveTo::Fixed(target),
        keep_source: false,
    };
    assert_eq!(environment.interrupts_of(|| assert_eq!(space.remap(request), Ok(target))), OTHERS);
    environment.check_caches();
    for cpu in 0..CPUS {
        environment.be(cpu);
        assert!(environment.load(&space, of(CPUS)).is_err());
        assert_eq!(environment.load(&space, target), Ok(0));
    }
    environment.check_caches();
}

#[test]
fn who_comes_to_a_large_page_finds_all_tables_from_then_on() {
    let (environment, space) = parted();
    environment.frames().large_pages().set_policy(LargePolicy::Always);
    let place = BASE + 64 * TABLE;
    map(&space, place, TABLE);
    environment.store(&space, place, 1).unwrap();
    environment.check_caches();
    environment.be(1);
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(1))), 1, "CPU 0 finds everything");
    environment.check_caches();
    environment.be(0);
    assert_eq!(environment.load(&space, of(1)), Ok(0));
    assert_eq!(environment.interrupts_of(|| drop_page(&space, of(1))), 1);
    let large = PageRange::new(place, TABLE).unwrap();
    assert_eq!(environment.interrupts_of(|| space.unmap(large).unwrap()), 0, "nobody else has come to it");
    environment.check_caches();
}

#[test]
fn who_borrowed_the_space_before_goes_over_when_it_comes_back() {
    let environment = TurnEnvironment::new(Switches { sharers: true, ..Switches::DEFAULT });
    let space = environment.space();
    map(&space, BASE, TABLE);
    for cpu in [1, 0] {
        environment.be(cpu);
        environment.activate(&space);
        environment.store(&space, BASE, 1).unwrap();
        if cpu == 1 {
            environment.go_lazy();
        }
    }
    space.part(CPUS).unwrap();
    environment.be(1);
    environment.activate(&space);
    environment.be(0);
    environment.store(&space, BASE, 1).unwrap();
    assert_eq!(environment.interrupts_of(|| drop_page(&space, BASE)), 0, "CPU 1 has nothing any more");
    environment.check_caches();
}

#[test]
fn a_fork_tells_those_that_may_hold_what_becomes_shared() {
    let (environment, space) = parted();
    for cpu in 1..CPUS {
        environment.be(cpu);
        environment.leave();
    }
    environment.be(1);
    environment.activate(&space);
    environment.be(0);
    let child = space.fork();
    environment.check_caches();
    let _child = child.unwrap();
    environment.store(&space, of(0), 9).unwrap();
    environment.check_caches();
    environment.be(1);
    assert_eq!(environment.load(&space, of(0)), Ok(9));
}

#[test]
fn without_room_for_roots_all_go_on_with_the_same() {
    let environment = TurnEnvironment::new(Switches { sharers: true, ..Switches::DEFAULT });
    let space = environment.space();
    map(&space, BASE, TABLE);
    environment.be(0);
    environment.activate(&space);
    environment.store(&space, BASE, 1).unwrap();
    let mut frames: Vec<_> = std::iter::from_fn(|| FrameRef::allocate(&environment).ok()).collect();
    // Room for one, and not for all.
    frames.pop();
    assert!(space.part(CPUS).is_err());
    frames.clear();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        assert_eq!(environment.load(&space, BASE), Ok(1));
    }
    assert_eq!(environment.interrupts_of(|| drop_page(&space, BASE)), OTHERS);
    environment.check_caches();
}

#[test]
fn what_links_hold_is_given_back() {
    let environment = TurnEnvironment::new(Switches { sharers: true, ..Switches::DEFAULT });
    let free = environment.free_frames();
    {
        let (space, all) = (environment.space(), 0..CPUS);
        map(&space, BASE, 8 * TABLE);
        environment.be(0);
        environment.activate(&space);
        space.part(CPUS).unwrap();
        for cpu in all {
            environment.be(cpu);
            environment.activate(&space);
            (0..8).for_each(|table| environment.store(&space, BASE + table * TABLE, 1).unwrap());
        }
        environment.leave_everywhere();
    }
    assert_eq!(environment.free_frames(), free);
}
