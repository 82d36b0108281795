//! Swap: private pages go to slots and come back as they were, whoever shares them and whatever comes between.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use coherence::Switches;
use machine::in_turn::{CPUS, TurnDisk, TurnEnvironment, TurnSpace};
use memory::{
    Advice, AreaFlags, Direction, Environment, Fault, LargePolicy, MOST_SWAP_DISKS, MapRequest, MoveTo,
    PAGE_SIZE, PageRange, Place, RemapRequest, Rights, SwapRefused, swap_out,
};

const BASE: u64 = 0x4000_0000;
const OTHERS: u64 = CPUS as u64 - 1;
/// Pages of a test.
const PAGES: u64 = 16;

/// A disk of so many slots, in use. Its first page is no slot.
fn add_disk(environment: &TurnEnvironment, slots: u32) -> Arc<TurnDisk> {
    let disk = TurnDisk::new(vec![0; (slots as usize + 1) * PAGE_SIZE as usize]);
    environment.swap().add(environment, disk.clone(), slots + 1, &[], None).unwrap();
    disk
}

/// How many pages each transfer had that was begun since the last time.
fn take_begun(disk: &TurnDisk, direction: Direction) -> Vec<u64> {
    let begun = disk.take_begun(direction);
    assert!(begun.iter().all(|pages| pages.start > 0), "the header is no slot");
    begun.into_iter().map(|pages| pages.end - pages.start).collect()
}

fn at(page: u64) -> u64 {
    BASE + page * PAGE_SIZE
}

fn pages(first: u64, count: u64) -> PageRange {
    PageRange::new(at(first), count * PAGE_SIZE).unwrap()
}

fn map(space: &TurnSpace, length: u64) {
    let request = MapRequest {
        place: Place::Fixed(BASE),
        length,
        rights: Rights::READ | Rights::WRITE,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object: None,
        populate: false,
    };
    space.map(request).unwrap();
}

/// A space on all CPUs with pages that hold 100, 101, …, which all CPUs have stored to.
fn stored(switches: Switches) -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::new(switches);
    let space = environment.space();
    map(&space, PAGES * PAGE_SIZE);
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.activate(&space);
        (0..PAGES).for_each(|page| environment.store(&space, at(page), 100 + page).unwrap());
    }
    (environment, space)
}

fn page_out(space: &TurnSpace, range: PageRange) {
    space.advise(range, Advice::Retire { at_once: true }).unwrap();
}

/// Slots in use.
fn used(environment: &TurnEnvironment) -> u64 {
    environment.swap().disks().iter().map(|disk| disk.used).sum()
}

#[test]
fn pages_go_with_one_flush_and_come_back_as_they_were() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = add_disk(&environment, 64);
    let free = environment.free_frames();
    assert_eq!(environment.interrupts_of(|| page_out(&space, pages(0, PAGES))), OTHERS);
    environment.check_caches();
    assert_eq!(take_begun(&disk, Direction::Out), [8, 8], "neighbours are written together");
    assert_eq!((space.sizes().resident, space.sizes().swapped, used(&environment)), (0, PAGES, PAGES));
    assert_eq!(environment.free_frames(), free + PAGES as usize);
    for page in 0..PAGES {
        let load = || assert_eq!(environment.load(&space, at(page)), Ok(100 + page));
        assert_eq!(environment.interrupts_of(load), 0);
    }
    assert_eq!(take_begun(&disk, Direction::In), [8, 8], "and read together");
    assert_eq!((space.sizes().resident, space.sizes().swapped, used(&environment)), (PAGES, 0, 0));
    let counts = environment.swap().counts();
    assert_eq!((counts.went, counts.came, counts.cached, counts.free), (PAGES, PAGES, 0, 64));
    // It is the mapping's own again: a store copies nothing.
    let free = environment.free_frames();
    environment.store(&space, at(3), 7).unwrap();
    assert_eq!((environment.load(&space, at(3)), environment.free_frames()), (Ok(7), free));
}

#[test]
fn without_batches_each_page_has_its_own_round() {
    let (environment, space) = stored(Switches { batch: false, ..Switches::DEFAULT });
    add_disk(&environment, 64);
    assert_eq!(environment.interrupts_of(|| page_out(&space, pages(0, PAGES))), PAGES * OTHERS);
    assert_eq!(environment.load(&space, at(5)), Ok(105));
}

#[test]
fn slots_are_given_up_by_whoever_takes_out_their_entries() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    page_out(&space, pages(0, PAGES));
    space.advise(pages(0, 2), Advice::DontNeed).unwrap();
    space.advise(pages(2, 2), Advice::Free).unwrap();
    space.unmap(pages(4, 4)).unwrap();
    assert_eq!((used(&environment), space.sizes().swapped), (8, 8));
    assert_eq!(environment.load(&space, at(0)), Ok(0));
    assert_eq!(environment.load(&space, at(4)), Err(Fault::NotMapped));
    space.protect(pages(8, 8), Rights::empty(), false).unwrap();
    space.protect(pages(8, 8), Rights::READ, false).unwrap();
    assert_eq!(environment.load(&space, at(8)), Ok(108));
    assert_eq!(environment.store(&space, at(8), 1), Err(Fault::NotAllowed));
    environment.leave_everywhere();
    space.teardown_user();
    assert_eq!((used(&environment), environment.swap().counts().cached, space.sizes().swapped), (0, 0, 0));
}

#[test]
fn the_hand_takes_marks_of_use_first_and_pages_at_its_second_round() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    space.lock(pages(0, 2), false).unwrap();
    let spaces = [space.clone()];
    let scanned = swap_out(&environment, &spaces, 4);
    assert!(scanned.looked_at >= 14, "{scanned:?}");
    assert_eq!(scanned.taken, 4);
    environment.check_caches();
    // Whatever is wanted, locked pages stay; and what went can be had again.
    let scanned = swap_out(&environment, &spaces, 100);
    assert_eq!((scanned.taken, space.sizes().resident), (10, 2));
    assert_eq!(swap_out(&environment, &spaces, 100).taken, 0);
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
}

#[test]
fn a_full_disk_takes_what_it_can_and_the_rest_stays() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 5);
    let later = add_disk(&environment, 3);
    page_out(&space, pages(0, PAGES));
    assert_eq!(
        (used(&environment), space.sizes().resident, take_begun(&later, Direction::Out)),
        (8, 8, vec![3])
    );
    assert!(!environment.swap().has_room());
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
    page_out(&space, pages(12, 4));
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
}

#[test]
fn parent_and_child_own_a_slot_together() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    page_out(&space, pages(0, PAGES));
    let child = space.fork().unwrap();
    assert_eq!((used(&environment), child.sizes().swapped), (PAGES, PAGES));
    // The child ends first.
    let short = space.fork().unwrap();
    short.teardown_user();
    environment.be(1);
    environment.activate(&child);
    assert_eq!(environment.load(&child, at(3)), Ok(103));
    environment.store(&child, at(3), 7).unwrap();
    environment.store(&child, at(4), 8).unwrap();
    environment.be(0);
    assert_eq!(environment.load(&space, at(3)), Ok(103));
    environment.store(&space, at(3), 9).unwrap();
    assert_eq!((environment.load(&space, at(3)), environment.load(&space, at(4))), (Ok(9), Ok(104)));
    environment.be(1);
    assert_eq!((environment.load(&child, at(3)), environment.load(&child, at(4))), (Ok(7), Ok(8)));
    child.unmap(pages(0, PAGES)).unwrap();
    (0..PAGES).for_each(|page| {
        environment.be(0);
        assert_eq!(environment.load(&space, at(page)), Ok(if page == 3 { 9 } else { 100 + page }));
    });
    assert_eq!((used(&environment), environment.swap().counts().cached), (0, 0));
    environment.check_caches();
}

#[test]
fn a_page_of_two_goes_when_the_hand_has_passed_both_and_is_written_once() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = add_disk(&environment, 64);
    let child = space.fork().unwrap();
    let free = environment.free_frames();
    let spaces = [space.clone(), child.clone()];
    // What both map is nobody's own.
    page_out(&space, pages(0, PAGES));
    assert_eq!(used(&environment), 0);
    for _ in 0..3 {
        swap_out(&environment, &spaces, 100);
    }
    assert_eq!((space.sizes().resident, child.sizes().resident), (0, 0));
    assert_eq!((used(&environment), environment.free_frames()), (PAGES, free + PAGES as usize));
    assert_eq!(take_begun(&disk, Direction::Out).iter().sum::<u64>(), PAGES);
    environment.be(1);
    environment.activate(&child);
    environment.store(&child, at(0), 1).unwrap();
    environment.be(0);
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
}

#[test]
fn a_page_that_is_wanted_while_it_is_written_is_not_lost() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = add_disk(&environment, 1);
    let (machine, inside) = (environment.clone(), space.clone());
    let hook = move || {
        machine.store(&inside, at(0), 200).unwrap();
        // The only slot is nobody's, but what was in the page is still being written there.
        page_out(&inside, pages(0, 1));
        assert_eq!(inside.sizes().swapped, 0);
        assert_eq!(machine.load(&inside, at(0)), Ok(200));
    };
    disk.on_begin(Direction::Out, hook);
    page_out(&space, pages(0, 1));
    assert_eq!((used(&environment), environment.swap().counts().cached), (0, 0));
    assert_eq!(environment.load(&space, at(0)), Ok(200));
    page_out(&space, pages(0, 1));
    assert_eq!((used(&environment), environment.load(&space, at(0))), (1, Ok(200)));
}

#[test]
fn a_slot_is_not_given_out_while_it_is_read() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = add_disk(&environment, 1);
    page_out(&space, pages(0, 1));
    let (machine, inside) = (environment.clone(), space.clone());
    let hook = move || {
        inside.advise(pages(0, 1), Advice::DontNeed).unwrap();
        page_out(&inside, pages(1, 1));
        assert_eq!((inside.sizes().swapped, used(&machine)), (0, 0));
    };
    disk.on_begin(Direction::In, hook);
    assert_eq!(environment.load(&space, at(0)), Ok(0), "it was dropped meanwhile");
    page_out(&space, pages(1, 1));
    assert_eq!((used(&environment), environment.load(&space, at(1))), (1, Ok(101)));
    assert_eq!(environment.swap().counts().cached, 0);
}

#[test]
fn what_cannot_be_written_stays_and_what_cannot_be_read_says_so() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = add_disk(&environment, 64);
    page_out(&space, pages(0, 4));
    disk.set_broken(true);
    page_out(&space, pages(4, 4));
    assert_eq!((environment.swap().counts().failed, environment.swap().counts().went), (4, 4));
    (4..8).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
    // Their slots are not used again.
    assert_eq!((environment.swap().counts().total, used(&environment)), (60, 4));
    assert_eq!(environment.load(&space, at(0)), Err(Fault::Bus));
    disk.set_broken(false);
    (0..4).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
    environment.check_caches();
}

#[test]
fn a_disk_is_emptied_and_taken_out_of_use() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    page_out(&space, pages(0, PAGES));
    space.protect(pages(2, 1), Rights::empty(), false).unwrap();
    let child = space.fork().unwrap();
    let number = environment.swap().disks()[0].number;
    environment.swap().set_open(number, false);
    let is_removed = || environment.swap().remove(&environment, number);
    assert!(!is_removed() && !environment.swap().has_room());
    // Whoever asks for it may give up between any two pages.
    let left = Cell::new(5);
    space.bring_back(number, &|| left.replace(left.get() - 1) > 0).unwrap();
    assert!((1..PAGES).contains(&space.sizes().swapped), "{:?}", space.sizes());
    space.bring_back(number, &|| true).unwrap();
    assert!(!is_removed(), "the child's are there still");
    child.bring_back(number, &|| true).unwrap();
    assert!(is_removed());
    assert_eq!((space.sizes().swapped, child.sizes().swapped), (0, 0));
    space.protect(pages(2, 1), Rights::READ | Rights::WRITE, false).unwrap();
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
    environment.store(&space, at(2), 1).unwrap();
    environment.be(1);
    environment.activate(&child);
    assert_eq!(environment.load(&child, at(2)), Err(Fault::NotAllowed));
}

#[test]
fn a_page_keeps_its_slot_where_it_is_moved() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    page_out(&space, pages(0, PAGES));
    let to = at(10_000);
    let request = RemapRequest {
        // The first page stays, and with it the table.
        address: at(1),
        old_length: (PAGES - 1) * PAGE_SIZE,
        new_length: (PAGES - 1) * PAGE_SIZE,
        may_move: true,
        to: MoveTo::Fixed(to),
        keep_source: false,
    };
    let moved = || assert_eq!(space.remap(request).unwrap(), to);
    assert_eq!(environment.interrupts_of(moved), 0, "nothing is in memory of it");
    (1..PAGES).for_each(|page| {
        assert_eq!(environment.load(&space, to + (page - 1) * PAGE_SIZE), Ok(100 + page));
    });
    assert_eq!((used(&environment), environment.load(&space, at(0))), (1, Ok(100)));
}

#[test]
fn a_large_page_goes_in_pieces() {
    let environment = TurnEnvironment::with_ram(Switches::DEFAULT, 16 << 20);
    environment.frames().large_pages().set_policy(LargePolicy::Always);
    let space = environment.space();
    map(&space, 2 << 20);
    environment.activate(&space);
    (0..512).for_each(|page| environment.store(&space, at(page), 1000 + page).unwrap());
    assert_eq!(space.large_in(pages(0, 512)), 2 << 20);
    add_disk(&environment, 1024);
    let spaces = [space.clone()];
    while space.sizes().resident > 256 {
        assert!(swap_out(&environment, &spaces, 64).taken > 0);
    }
    assert_eq!(space.large_in(pages(0, 512)), 0);
    (0..512).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(1000 + page)));
    assert_eq!((space.sizes().resident, used(&environment)), (512, 0));
}

/// A disk that is said to have so many pages. Only the first ones are there.
fn add_large(
    environment: &TurnEnvironment,
    there: u32,
    said: u32,
    bad: &[u32],
) -> Result<usize, SwapRefused> {
    let disk = TurnDisk::new(vec![0; (there * PAGE_SIZE as u32) as usize]);
    environment.swap().add(environment, disk, said, bad, None)
}

#[test]
fn a_large_disk_costs_memory_for_what_is_on_it() {
    let (environment, space) = stored(Switches::DEFAULT);
    let free = environment.free_frames();
    let number = add_large(&environment, 64, u32::MAX, &[7, 1 << 30, 7]).unwrap();
    let total = u64::from(u32::MAX) - 3;
    assert_eq!((environment.swap().counts().total, environment.swap().counts().free), (total, total));
    assert_eq!(free - environment.free_frames(), 4 + 3, "one way to the first slots, and one to a bad one");
    page_out(&space, pages(0, PAGES));
    assert_eq!((used(&environment), environment.free_frames() + 7), (PAGES, free + PAGES as usize));
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
    assert!(environment.swap().remove(&environment, number));
    assert_eq!(environment.free_frames(), free);
}

#[test]
fn slots_are_found_and_given_up_all_over_a_disk() {
    const MANY: u64 = 1500;
    let environment = TurnEnvironment::with_ram(Switches::DEFAULT, 16 << 20);
    let space = environment.space();
    map(&space, MANY * PAGE_SIZE);
    environment.activate(&space);
    add_disk(&environment, MANY as u32 + 10);
    let fill = |page: u64, round: u64| environment.store(&space, at(page), page << 8 | round).unwrap();
    let expect =
        |page: u64, round: u64| assert_eq!(environment.load(&space, at(page)), Ok(page << 8 | round));
    (0..MANY).for_each(|page| fill(page, 1));
    page_out(&space, pages(0, MANY));
    assert_eq!((used(&environment), space.sizes().swapped), (MANY, MANY));
    // Slots become free here and there, and whole frames of counts between them.
    let is_filled_again = |page: &u64| page.is_multiple_of(3) || (500..1100).contains(page);
    (0..MANY).filter(is_filled_again).for_each(|page| fill(page, 2));
    page_out(&space, pages(0, MANY));
    assert_eq!(used(&environment), MANY);
    (0..MANY).for_each(|page| expect(page, if is_filled_again(&page) { 2 } else { 1 }));
    assert_eq!(used(&environment), 0);
    let free = environment.free_frames();
    assert!(environment.swap().remove(&environment, 0));
    assert_eq!(environment.free_frames() - free, 2, "the header is no slot, and nothing else is to be said");
}

#[test]
fn a_page_stays_where_no_memory_is_left_to_count_its_slot() {
    let (environment, space) = stored(Switches::DEFAULT);
    // The first slot that can be used is the first that another frame counts.
    let bad: Vec<u32> = (1..512).collect();
    add_large(&environment, 600, 600, &bad).unwrap();
    let (frames, cpu) = (environment.frames(), environment.current_cpu());
    let mut held: Vec<_> = std::iter::from_fn(|| frames.allocate(cpu).ok()).collect();
    page_out(&space, pages(0, PAGES));
    let spaces = [space.clone()];
    assert_eq!(swap_out(&environment, &spaces, 100).taken, 0);
    assert_eq!((used(&environment), space.sizes().resident, space.sizes().swapped), (0, PAGES, 0));
    assert!(environment.swap().has_room());
    frames.release(cpu, held.pop().unwrap());
    page_out(&space, pages(0, PAGES));
    assert_eq!((used(&environment), space.sizes().swapped), (PAGES, PAGES));
    held.into_iter().for_each(|frame| frames.release(cpu, frame));
    (0..PAGES).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(100 + page)));
}

#[test]
fn no_more_disks_than_there_may_be_and_none_without_a_slot() {
    let (environment, _space) = stored(Switches::DEFAULT);
    let free = environment.free_frames();
    let bad: Vec<u32> = (1..8).collect();
    assert_eq!(add_large(&environment, 8, 8, &bad), Err(SwapRefused::Empty));
    assert_eq!(add_large(&environment, 1, 1, &[]), Err(SwapRefused::Empty));
    for number in 0..MOST_SWAP_DISKS {
        assert_eq!(add_large(&environment, 8, 8, &[]), Ok(number));
    }
    assert_eq!(add_large(&environment, 8, 8, &[]), Err(SwapRefused::TooMany));
    let (frames, cpu) = (environment.frames(), environment.current_cpu());
    let held: Vec<_> = std::iter::from_fn(|| frames.allocate(cpu).ok()).collect();
    assert_eq!(add_large(&environment, 8, 8, &[]), Err(SwapRefused::OutOfMemory));
    held.into_iter().for_each(|frame| frames.release(cpu, frame));
    (0..MOST_SWAP_DISKS).for_each(|number| assert!(environment.swap().remove(&environment, number)));
    assert_eq!(environment.free_frames(), free);
}

#[test]
fn the_disk_with_the_highest_priority_is_used_first() {
    let (environment, space) = stored(Switches::DEFAULT);
    let disk = || TurnDisk::new(vec![0; 5 * PAGE_SIZE as usize]);
    for priority in [Some(3), None, Some(9), Some(3)] {
        environment.swap().add(&environment, disk(), 5, &[], priority).unwrap();
    }
    let used = || environment.swap().disks().iter().map(|disk| disk.used).collect::<Vec<_>>();
    page_out(&space, pages(0, 3));
    assert_eq!(used(), [0, 0, 3, 0]);
    page_out(&space, pages(3, 7));
    assert_eq!(used(), [4, 0, 4, 2]);
    environment.swap().set_open(3, false);
    page_out(&space, pages(10, 2));
    assert_eq!(used(), [4, 2, 4, 2]);
}

#[test]
fn who_takes_out_a_page_as_soon_as_it_can_be_finds_it_counted() {
    let (environment, space) = stored(Switches::DEFAULT);
    add_disk(&environment, 64);
    let take_out_at_once = |expected: u64| {
        let (inside, is_done) = (space.clone(), Arc::new(AtomicBool::new(false)));
        let done = is_done.clone();
        environment.at_unlock(move || {
            if inside.resident_in(pages(0, 1)) == 0 {
                return false;
            }
            inside.advise(pages(0, 1), Advice::DontNeed).unwrap();
            assert_eq!((inside.sizes().resident, inside.sizes().swapped), (expected, 0));
            done.store(true, Relaxed);
            true
        });
        is_done
    };
    space.advise(pages(0, PAGES), Advice::DontNeed).unwrap();
    assert_eq!(space.sizes().resident, 0);
    // What the program finds where somebody drops it that fast is its own business.
    let is_done = take_out_at_once(0);
    environment.store(&space, at(0), 1).unwrap();
    assert!(is_done.load(Relaxed));
    environment.store(&space, at(0), 1).unwrap();
    page_out(&space, pages(0, 1));
    assert_eq!(space.sizes().swapped, 1);
    let is_done = take_out_at_once(0);
    environment.load(&space, at(0)).unwrap();
    assert!(is_done.load(Relaxed));
}
