//! Whole tables move: contents, interrupts, tables, and who is told. The machine keeps every upper level that it ever walked.

use std::sync::Arc;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Access, AreaFlags, Error, Fault, MapRequest, MoveTo, PAGE_SIZE, PageRange, Place, RemapRequest, Rights,
};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const TABLE: u64 = 512 * PAGE_SIZE;
const GIGABYTE: u64 = 512 * TABLE;
/// Aligned to 1 GiB, as is `TARGET`.
const BASE: u64 = 4 * GIGABYTE;
const TARGET: u64 = 8 * GIGABYTE;
const OTHERS: u64 = CPUS as u64 - 1;

fn map(space: &TurnSpace, address: u64, length: u64) {
    let request = MapRequest {
        place: Place::Fixed(address),
        length,
        rights: READ_WRITE,
        may: Rights::all(),
        flags: AreaFlags::NO_RESERVE,
        object: None,
        populate: false,
    };
    assert_eq!(space.map(request).map(|_| ()), Ok(()));
}

/// A space that all CPUs run in, with neighbours in the upper tables of source and target, so that these stay.
fn busy_space() -> (TurnEnvironment, Arc<TurnSpace>) {
    busy_space_with(Switches::DEFAULT)
}

fn busy_space_with(switches: Switches) -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::new(switches);
    let space = environment.space();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
    }
    for neighbour in [BASE - PAGE_SIZE, BASE + 2 * GIGABYTE - PAGE_SIZE, TARGET + 2 * GIGABYTE - PAGE_SIZE] {
        map(&space, neighbour, PAGE_SIZE);
        environment.store(&space, neighbour, 1).unwrap();
    }
    (environment, space)
}

fn request(from: u64, length: u64, to: u64) -> RemapRequest {
    RemapRequest {
        address: from,
        old_length: length,
        new_length: length,
        may_move: true,
        to: MoveTo::Fixed(to),
        keep_source: false,
    }
}

/// Stores something else to each of these pages, on all CPUs.
fn touch(environment: &TurnEnvironment, space: &Arc<TurnSpace>, start: u64, offsets: &[u64]) {
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        for offset in offsets {
            environment.store(space, start + offset, offset / PAGE_SIZE + 1).unwrap();
        }
    }
}

/// All CPUs find the pages at the one place, and nothing at the other.
fn check_moved(environment: &TurnEnvironment, space: &Arc<TurnSpace>, from: u64, to: u64, offsets: &[u64]) {
    environment.check_caches();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        for offset in offsets {
            assert_eq!(environment.load(space, from + offset), Err(Fault::NotMapped));
            assert_eq!(environment.load(space, to + offset), Ok(offset / PAGE_SIZE + 1));
        }
    }
    environment.check_caches();
}

#[test]
fn tables_move_in_one_round_and_no_leaf_table_is_made() {
    let (environment, space) = busy_space();
    let offsets = [0, 5 * PAGE_SIZE, TABLE, 3 * TABLE - PAGE_SIZE];
    map(&space, BASE, 3 * TABLE);
    touch(&environment, &space, BASE, &offsets);
    let free = environment.free_frames();
    let interrupts =
        environment.interrupts_of(|| assert_eq!(space.remap(request(BASE, 3 * TABLE, TARGET)), Ok(TARGET)));
    assert_eq!(interrupts, OTHERS);
    // The table above the target is new; the one above the source has nobody left.
    assert_eq!(environment.free_frames(), free);
    check_moved(&environment, &space, BASE, TARGET, &offsets);
    environment.leave_everywhere();
}

#[test]
fn what_is_no_whole_table_moves_by_entries_in_the_same_round() {
    let (environment, space) = busy_space();
    let (from, to) = (BASE + 3 * PAGE_SIZE, TARGET + 3 * PAGE_SIZE);
    let offsets = [0, 508 * PAGE_SIZE, 509 * PAGE_SIZE, TABLE, 2 * TABLE, 2 * TABLE + 4 * PAGE_SIZE];
    let length = 2 * TABLE + 5 * PAGE_SIZE;
    map(&space, from, length);
    touch(&environment, &space, from, &offsets);
    let interrupts = environment.interrupts_of(|| assert_eq!(space.remap(request(from, length, to)), Ok(to)));
    assert_eq!(interrupts, OTHERS);
    check_moved(&environment, &space, from, to, &offsets);
    // Not aligned alike: entries only, and still one round.
    let shifted = BASE + 7 * PAGE_SIZE;
    let interrupts =
        environment.interrupts_of(|| assert_eq!(space.remap(request(to, length, shifted)), Ok(shifted)));
    assert_eq!(interrupts, OTHERS);
    check_moved(&environment, &space, to, shifted, &offsets);
    environment.leave_everywhere();
}

/// What S4 is compared with: a round for each table, and for the entries of each pair of tables.
#[test]
fn without_the_mechanism_each_step_is_a_round_of_its_own() {
    let (environment, space) = busy_space_with(Switches { moves: false, ..Switches::DEFAULT });
    let (from, to) = (BASE + 3 * PAGE_SIZE, TARGET + 3 * PAGE_SIZE);
    let length = 32 * TABLE;
    let offsets: Vec<u64> = (0..32).map(|table| table * TABLE).chain([length - PAGE_SIZE]).collect();
    map(&space, from, length);
    touch(&environment, &space, from, &offsets);
    let interrupts = environment.interrupts_of(|| assert_eq!(space.remap(request(from, length, to)), Ok(to)));
    // Entries before the first border, 31 tables, entries behind the last; and the two tables that are left over, which are freed.
    assert_eq!(interrupts, 34 * OTHERS);
    check_moved(&environment, &space, from, to, &offsets);
    // Not aligned alike: two steps a table, but for the holes.
    let shifted = BASE + 7 * PAGE_SIZE;
    let interrupts =
        environment.interrupts_of(|| assert_eq!(space.remap(request(to, length, shifted)), Ok(shifted)));
    assert_eq!(interrupts, 34 * OTHERS);
    check_moved(&environment, &space, to, shifted, &offsets);
    environment.leave_everywhere();
}

#[test]
fn a_gigabyte_moves_with_its_table_of_tables() {
    let (environment, space) = busy_space();
    let offsets = [0, 100 * TABLE + PAGE_SIZE, GIGABYTE - PAGE_SIZE, GIGABYTE, GIGABYTE + 2 * TABLE];
    let length = GIGABYTE + 3 * TABLE;
    map(&space, BASE, length);
    touch(&environment, &space, BASE, &offsets);
    let free = environment.free_frames();
    let interrupts =
        environment.interrupts_of(|| assert_eq!(space.remap(request(BASE, length, TARGET)), Ok(TARGET)));
    assert_eq!(interrupts, OTHERS);
    // In the second gigabyte source and target have tables of their own above their leaf tables, for the neighbours' sake.
    assert_eq!(environment.free_frames(), free);
    check_moved(&environment, &space, BASE, TARGET, &offsets);
    environment.leave_everywhere();
}

#[test]
fn a_page_without_rights_moves_with_its_table_and_the_way_to_it_is_flushed() {
    let (environment, space) = busy_space();
    map(&space, BASE, TABLE);
    touch(&environment, &space, BASE, &[PAGE_SIZE]);
    let range = |start| PageRange::new(start, TABLE).unwrap();
    space.protect(range(BASE), Rights::empty(), false).unwrap();
    for cpu in 0..CPUS {
        environment.be(cpu);
        // The walk ends at the entry, and the way there is cached.
        assert!(environment.load(&space, BASE + PAGE_SIZE).is_err());
        environment.fill(BASE + PAGE_SIZE, false);
    }
    assert_eq!(space.remap(request(BASE, TABLE, TARGET)), Ok(TARGET));
    space.protect(range(TARGET), READ_WRITE, false).unwrap();
    check_moved(&environment, &space, BASE, TARGET, &[PAGE_SIZE]);
    environment.leave_everywhere();
}

#[test]
fn borrowers_are_not_told_of_moved_tables() {
    let (environment, space) = busy_space();
    map(&space, BASE, 2 * TABLE);
    // What keeps the table above the source's.
    map(&space, BASE + 2 * TABLE, PAGE_SIZE);
    touch(&environment, &space, BASE, &[0, TABLE]);
    for cpu in 1..CPUS {
        environment.be(cpu);
        environment.go_lazy();
    }
    environment.be(0);
    let moved = || assert_eq!(space.remap(request(BASE, 2 * TABLE, TARGET)), Ok(TARGET));
    assert_eq!(environment.interrupts_of(moved), 0);
    for cpu in 1..CPUS {
        environment.be(cpu);
        environment.activate(&space);
    }
    check_moved(&environment, &space, BASE, TARGET, &[0, TABLE]);
    environment.leave_everywhere();
}

#[test]
fn a_kept_source_reads_as_zeroes_in_tables_of_its_own() {
    let (environment, space) = busy_space();
    map(&space, BASE, TABLE);
    touch(&environment, &space, BASE, &[0]);
    let request = RemapRequest { keep_source: true, ..request(BASE, TABLE, TARGET) };
    assert_eq!(space.remap(request), Ok(TARGET));
    environment.check_caches();
    assert_eq!(environment.load(&space, BASE), Ok(0));
    environment.store(&space, BASE, 9).unwrap();
    assert_eq!(environment.load(&space, TARGET), Ok(1));
    environment.leave_everywhere();
}

#[test]
fn a_child_keeps_its_own_when_the_parent_moves() {
    let (environment, space) = busy_space();
    map(&space, BASE, TABLE);
    touch(&environment, &space, BASE, &[0]);
    environment.be(0);
    let child = space.fork().unwrap();
    assert_eq!(space.remap(request(BASE, TABLE, TARGET)), Ok(TARGET));
    check_moved(&environment, &space, BASE, TARGET, &[0]);
    environment.be(0);
    environment.activate(&child);
    assert_eq!(environment.load(&child, BASE), Ok(1));
    assert_eq!(environment.load(&child, TARGET), Err(Fault::NotMapped));
    environment.store(&child, BASE, 2).unwrap();
    environment.leave_everywhere();
    environment.be(0);
    environment.activate(&space);
    assert_eq!(environment.load(&space, TARGET), Ok(1));
    environment.leave_everywhere();
}

#[test]
fn without_memory_for_the_tables_nothing_moves() {
    let (environment, space) = busy_space();
    map(&space, BASE, 2 * TABLE);
    touch(&environment, &space, BASE, &[0, TABLE]);
    let cpu = coherence::CpuId::new(0).unwrap();
    let frames = memory::Environment::frames(&environment);
    let kept: Vec<_> = std::iter::from_fn(|| frames.allocate(cpu).ok()).collect();
    environment.be(0);
    let moved = space.remap(request(BASE, 2 * TABLE, TARGET + PAGE_SIZE));
    assert_eq!(moved, Err(Error::OutOfMemory));
    kept.into_iter().for_each(|frame| frames.release(cpu, frame));
    environment.check_caches();
    for offset in [0, TABLE] {
        assert_eq!(environment.load(&space, BASE + offset), Ok(offset / PAGE_SIZE + 1));
        assert_eq!(environment.load(&space, TARGET + PAGE_SIZE + offset), Err(Fault::NotMapped));
    }
    assert_eq!(space.populate(PageRange::new(BASE, PAGE_SIZE).unwrap(), Access::READ), Ok(()));
    environment.leave_everywhere();
}
