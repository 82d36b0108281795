//! Large pages: who gets one, what each operation makes of it, and how many CPUs it interrupts.

use std::sync::Arc;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Access, Advice, AreaFlags, Error, Fault, LargePolicy, MapRequest, MoveTo, PAGE_SIZE, PageRange, Place,
    RemapRequest, Rights,
};

const READ_WRITE: Rights = Rights::READ.union(Rights::WRITE);
const LARGE: u64 = 512 * PAGE_SIZE;
/// Aligned to 1 GiB; so is `TARGET`, in another table of tables.
const BASE: u64 = 0x4000_0000;
const TARGET: u64 = 0x1_0000_0000;
const OTHERS: u64 = CPUS as u64 - 1;

fn map(space: &TurnSpace, address: u64, length: u64) -> PageRange {
    let request = MapRequest {
        place: Place::Fixed(address),
        length,
        rights: READ_WRITE,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object: None,
        populate: false,
    };
    space.map(request).unwrap()
}

/// A space that all CPUs run in.
fn busy_space(policy: LargePolicy) -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::with_ram(Switches::DEFAULT, 64 << 20);
    environment.0.frames.large_pages().set_policy(policy);
    let space = environment.space();
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
    }
    (environment, space)
}

/// A space with `count` large pages, which every CPU has stored to.
fn with_large(count: u64) -> (TurnEnvironment, Arc<TurnSpace>) {
    let (environment, space) = busy_space(LargePolicy::Always);
    map(&space, BASE, count * LARGE);
    touch(&environment, &space, BASE, count * LARGE);
    assert_eq!(space.large_in(range(BASE, count * LARGE)), count * LARGE);
    (environment, space)
}

fn range(start: u64, length: u64) -> PageRange {
    PageRange::new(start, length).unwrap()
}

/// Every CPU stores to each page, in the end its number in the range.
fn touch(environment: &TurnEnvironment, space: &Arc<TurnSpace>, start: u64, length: u64) {
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        for page in 0..length / PAGE_SIZE {
            environment.store(space, start + page * PAGE_SIZE, page + 1).unwrap();
        }
    }
}

/// What a CPU finds in a page of the range that begins at `start`.
fn expect(environment: &TurnEnvironment, space: &Arc<TurnSpace>, start: u64, page: u64, value: u64) {
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        assert_eq!(environment.load(space, start + page * PAGE_SIZE), Ok(value), "page {page} on CPU {cpu}");
    }
}

/// Checks that nothing is lost when everybody has gone.
fn finish(environment: &TurnEnvironment, spaces: Vec<Arc<TurnSpace>>) {
    environment.check_caches();
    environment.leave_everywhere();
    drop(spaces);
    let statistics = environment.0.frames.statistics();
    assert_eq!(statistics.free, statistics.total - 1, "frames were lost");
    assert_eq!(environment.0.frames.large_pages().counts().mapped, 0);
}

#[test]
fn who_asks_gets_a_large_page_and_who_refuses_does_not() {
    for (policy, advice, expected) in [
        (LargePolicy::Always, None, LARGE),
        (LargePolicy::Always, Some(false), 0),
        (LargePolicy::Madvise, None, 0),
        (LargePolicy::Madvise, Some(true), LARGE),
        (LargePolicy::Never, Some(true), 0),
    ] {
        let (environment, space) = busy_space(policy);
        let area = map(&space, BASE - PAGE_SIZE, LARGE + 2 * PAGE_SIZE);
        if let Some(large) = advice {
            space.advise(area, Advice::Pages { large }).unwrap();
        }
        environment.store(&space, BASE + 5 * PAGE_SIZE, 7).unwrap();
        environment.store(&space, BASE - PAGE_SIZE, 8).unwrap();
        assert_eq!(space.large_in(area), expected, "{policy:?} {advice:?}");
        let resident = if expected == 0 { 2 } else { 513 };
        assert_eq!((space.sizes().resident, space.resident_in(area)), (resident, resident));
        finish(&environment, vec![space]);
    }
}

#[test]
fn there_is_none_in_a_smaller_area_over_small_pages_after_a_load_or_without_memory() {
    let (environment, space) = busy_space(LargePolicy::Always);
    map(&space, BASE + PAGE_SIZE, LARGE);
    environment.store(&space, BASE + PAGE_SIZE, 1).unwrap();
    map(&space, TARGET, 2 * LARGE);
    environment.load(&space, TARGET).unwrap();
    environment.store(&space, TARGET + PAGE_SIZE, 1).unwrap();
    assert_eq!(space.large_in(PageRange::new(0, TARGET + LARGE).unwrap()), 0);
    // Every second frame is in use, so no two lie side by side.
    let (mut taken, cpu) = (Vec::new(), coherence::CpuId::new(0).unwrap());
    while let Ok(frame) = environment.0.frames.allocate_user(cpu) {
        taken.push(frame);
    }
    taken.sort();
    let (kept, given): (Vec<_>, Vec<_>) =
        taken.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
    given.into_iter().for_each(|(_, frame)| environment.0.frames.release(cpu, frame));
    environment.store(&space, TARGET + LARGE, 1).unwrap();
    assert_eq!(space.large_in(range(TARGET, 2 * LARGE)), 0);
    assert_eq!(environment.0.frames.large_pages().counts().fallbacks, 1);
    kept.into_iter().for_each(|(_, frame)| environment.0.frames.release(cpu, frame));
    finish(&environment, vec![space]);
}

#[test]
fn whole_large_pages_are_unmapped_dropped_and_protected_in_one_round() {
    let (environment, space) = with_large(4);
    let half = range(BASE, 2 * LARGE);
    assert_eq!(environment.interrupts_of(|| space.protect(half, Rights::READ, false).unwrap()), OTHERS);
    environment.check_caches();
    assert_eq!(environment.access(&space, BASE + 9, Access::WRITE), Err(Fault::NotAllowed));
    assert_eq!(environment.interrupts_of(|| space.protect(half, READ_WRITE, false).unwrap()), 0);
    touch(&environment, &space, BASE, 2 * LARGE);
    assert_eq!(space.large_in(half), 2 * LARGE);
    let dropped = environment.interrupts_of(|| space.advise(half, Advice::DontNeed).unwrap());
    assert_eq!((dropped, space.sizes().resident), (OTHERS, 1024));
    environment.check_caches();
    expect(&environment, &space, BASE, 77, 0);
    let unmapped = environment.interrupts_of(|| space.unmap(range(BASE, 4 * LARGE)).unwrap());
    assert_eq!((unmapped, space.sizes().resident), (OTHERS, 0));
    finish(&environment, vec![space]);
}

#[test]
fn an_operation_on_part_of_one_cuts_it_in_the_same_round() {
    let part = range(BASE + 100 * PAGE_SIZE, LARGE);
    for number in 0..4 {
        let (environment, space) = with_large(3);
        let interrupts = environment.interrupts_of(|| match number {
            0 => space.unmap(part).unwrap(),
            1 => space.protect(part, Rights::READ, false).unwrap(),
            2 => space.advise(part, Advice::DontNeed).unwrap(),
            _ => space.mark(part, AreaFlags::NOT_DUMPED, true).unwrap(),
        });
        environment.check_caches();
        assert_eq!((interrupts, space.large_in(range(BASE, 3 * LARGE))), (OTHERS, LARGE), "{number}");
        assert_eq!(environment.0.frames.large_pages().counts().splits, 2);
        let middle = environment.load(&space, part.start() + PAGE_SIZE);
        let expected = [Err(Fault::NotMapped), Ok(102), Ok(0), Ok(102)];
        assert_eq!(middle, expected[number]);
        expect(&environment, &space, BASE, 99, 100);
        expect(&environment, &space, BASE, 612, 613);
        touch(&environment, &space, BASE, 100 * PAGE_SIZE);
        finish(&environment, vec![space]);
    }
}

#[test]
fn a_few_pages_of_one_are_cut_out_in_one_round() {
    let (environment, space) = with_large(1);
    let inside = range(BASE + 7 * PAGE_SIZE, 2 * PAGE_SIZE);
    assert_eq!(environment.interrupts_of(|| space.advise(inside, Advice::DontNeed).unwrap()), OTHERS);
    environment.check_caches();
    expect(&environment, &space, BASE, 8, 0);
    expect(&environment, &space, BASE, 9, 10);
    assert_eq!((space.sizes().resident, space.large_in(range(BASE, LARGE))), (510, 0));
    finish(&environment, vec![space]);
}

#[test]
fn a_child_shares_large_pages_until_one_of_the_two_stores() {
    let (environment, space) = with_large(2);
    let whole = range(BASE, 2 * LARGE);
    let free = environment.free_frames();
    let child = space.fork().unwrap();
    // Its four tables, and what it puts aside.
    assert_eq!(free - environment.free_frames(), 3 + 2);
    assert_eq!((child.large_in(whole), child.sizes().resident), (2 * LARGE, 1024));
    environment.store(&space, BASE + 3 * PAGE_SIZE, 99).unwrap();
    environment.check_caches();
    assert_eq!((space.large_in(whole), child.large_in(whole)), (LARGE, 2 * LARGE));
    let mut bytes = [0; 8];
    child.read_user(BASE + 3 * PAGE_SIZE, &mut bytes).unwrap();
    assert_eq!(u64::from_ne_bytes(bytes), 4);
    expect(&environment, &space, BASE, 3, 99);
    expect(&environment, &space, BASE, 4, 5);
    drop(child);
    // The parent is the sole owner again, and keeps what is still large.
    environment.store(&space, BASE + LARGE, 5).unwrap();
    assert_eq!(space.large_in(whole), LARGE);
    finish(&environment, vec![space]);
}

#[test]
fn small_pages_collapse_in_one_round_and_keep_what_they_held() {
    let (environment, space) = busy_space(LargePolicy::Never);
    let area = map(&space, BASE, 3 * LARGE);
    touch(&environment, &space, BASE, 2 * LARGE - 10 * PAGE_SIZE);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.load(&space, BASE + 2 * LARGE - PAGE_SIZE).unwrap();
    }
    let collapsible = range(BASE + PAGE_SIZE, 2 * LARGE);
    let interrupts = environment.interrupts_of(|| {
        assert_eq!(space.advise(collapsible, Advice::Collapse), Ok(()));
    });
    environment.check_caches();
    assert_eq!((interrupts, space.large_in(area), space.sizes().resident), (OTHERS, LARGE, 512 + 512));
    expect(&environment, &space, BASE, 600, 601);
    expect(&environment, &space, BASE, 1023, 0);
    touch(&environment, &space, BASE, 2 * LARGE);
    // Nothing is mapped in the third.
    assert_eq!(space.advise(area, Advice::Collapse), Err(Error::Invalid));
    assert_eq!(space.large_in(area), 2 * LARGE);
    assert_eq!(space.advise(range(BASE, 2 * LARGE), Advice::Collapse), Ok(()));
    finish(&environment, vec![space]);
}

const MADV_WILLNEED: u64 = 3;
const MADV_DONTNEED: u64 = 4;
const MADV_COLLAPSE: u64 = 25;

#[test]
fn advice_about_any_number_of_ranges_is_one_round() {
    let (environment, space) = busy_space(LargePolicy::Never);
    for place in 0..5 {
        map(&space, BASE + 2 * place * LARGE, LARGE);
        touch(&environment, &space, BASE + 2 * place * LARGE, LARGE);
    }
    // The first twice, and something between two areas, before which it stops.
    let places = [0, 2, 4, 0, 6, 7, 8].map(|place| (BASE + place * LARGE, LARGE - 5));
    let interrupts = environment.interrupts_of(|| {
        assert_eq!(space.process_madvise(&places, MADV_COLLAPSE), Ok(5 * (LARGE - 5)));
    });
    environment.check_caches();
    assert_eq!((interrupts, space.large_in(range(BASE, 9 * LARGE))), (OTHERS, 4 * LARGE));
    expect(&environment, &space, BASE + 6 * LARGE, 300, 301);
    assert_eq!(space.process_madvise(&places[5..], MADV_COLLAPSE), Err(Error::OutOfMemory));
    assert_eq!(space.process_madvise(&[(BASE, 0), (BASE + 1, 1)], MADV_COLLAPSE), Err(Error::Invalid));
    assert_eq!(space.process_madvise(&[(BASE, LARGE), (BASE + 1, 1)], MADV_WILLNEED), Ok(LARGE));
    assert_eq!(space.process_madvise(&places, MADV_DONTNEED), Err(Error::Invalid), "not from outside");
    finish(&environment, vec![space]);
}

#[test]
fn what_cannot_collapse_says_why() {
    let (environment, space) = busy_space(LargePolicy::Never);
    let area = map(&space, BASE, 2 * LARGE);
    assert_eq!(space.advise(area, Advice::Collapse), Err(Error::Invalid), "nothing was ever stored");
    touch(&environment, &space, BASE, 2 * LARGE);
    space.protect(area, Rights::READ, false).unwrap();
    assert_eq!(space.advise(area, Advice::Collapse), Err(Error::Invalid), "nothing can be written");
    space.protect(area, READ_WRITE, false).unwrap();
    touch(&environment, &space, BASE, 2 * LARGE);
    space.advise(area, Advice::Pages { large: false }).unwrap();
    assert_eq!(space.advise(area, Advice::Collapse), Err(Error::Invalid), "it is not wanted");
    space.advise(area, Advice::Pages { large: true }).unwrap();
    let inside = range(BASE + PAGE_SIZE, LARGE - 2 * PAGE_SIZE);
    assert_eq!(space.advise(inside, Advice::Collapse), Err(Error::Invalid), "it has no border of a place");
    let across = range(BASE + PAGE_SIZE, LARGE);
    assert_eq!(space.advise(across, Advice::Collapse), Ok(()), "it has one, and no whole place");
    let beyond = range(BASE, 3 * LARGE);
    assert_eq!(space.advise(beyond, Advice::Collapse), Err(Error::OutOfMemory), "a hole");
    assert_eq!(space.large_in(area), 2 * LARGE);
    finish(&environment, vec![space]);
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

#[test]
fn a_large_page_moves_whole_where_it_is_aligned_and_in_pieces_where_not_in_one_round() {
    for (to, large_after) in [(TARGET, 2 * LARGE), (TARGET + 3 * PAGE_SIZE, 0)] {
        for keep_source in [false, true] {
            let (environment, space) = with_large(2);
            let move_it = RemapRequest { keep_source, ..request(BASE, 2 * LARGE, to) };
            let interrupts = environment.interrupts_of(|| assert_eq!(space.remap(move_it), Ok(to)));
            environment.check_caches();
            assert_eq!((interrupts, space.large_in(range(to, 2 * LARGE))), (OTHERS, large_after));
            expect(&environment, &space, to, 700, 701);
            let expected = if keep_source { Ok(0) } else { Err(Fault::NotMapped) };
            assert_eq!(environment.load(&space, BASE + 5 * PAGE_SIZE), expected);
            touch(&environment, &space, to, 2 * LARGE);
            finish(&environment, vec![space]);
        }
    }
}

#[test]
fn part_of_a_large_page_moves_in_one_round() {
    let (environment, space) = with_large(2);
    let part = request(BASE + 10 * PAGE_SIZE, LARGE, TARGET + 10 * PAGE_SIZE);
    let interrupts = environment.interrupts_of(|| assert_eq!(space.remap(part), Ok(TARGET + 10 * PAGE_SIZE)));
    environment.check_caches();
    assert_eq!((interrupts, space.large_in(range(BASE, 2 * LARGE))), (OTHERS, 0));
    expect(&environment, &space, TARGET, 10, 11);
    expect(&environment, &space, TARGET, 521, 522);
    expect(&environment, &space, BASE, 9, 10);
    expect(&environment, &space, BASE, 522, 523);
    assert_eq!(environment.load(&space, BASE + 10 * PAGE_SIZE), Err(Fault::NotMapped));
    finish(&environment, vec![space]);
}

#[test]
fn the_kernel_reads_and_writes_through_large_pages() {
    let (environment, space) = with_large(1);
    let across = BASE + 3 * PAGE_SIZE - 4;
    space.write_user(across, &[1; 8]).unwrap();
    let mut bytes = [0; 8];
    space.read_user(across, &mut bytes).unwrap();
    assert_eq!(bytes, [1; 8]);
    assert_eq!(environment.load(&space, BASE + 3 * PAGE_SIZE), Ok(0x0101_0101));
    let mut incore = [false; 512];
    space.incore(range(BASE, LARGE), &mut incore).unwrap();
    assert!(incore.into_iter().all(|page| page));
    finish(&environment, vec![space]);
}
