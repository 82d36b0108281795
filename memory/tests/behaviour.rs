//! What each operation does to memory, and how many CPUs it interrupts: counts are asserted as equalities.

use std::sync::Arc;

use coherence::{Cause, Row, Switches};
use machine::in_turn::{CPUS, TurnEnvironment, TurnSpace};
use memory::{
    Access, Advice, AreaFlags, BackingRef, Error, Fault, Identity, MapRequest, MemoryObject, MoveTo,
    PAGE_SIZE, PageRange, Place, RemapRequest, Rights,
};

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

fn object(environment: &TurnEnvironment, pages: u64) -> Arc<MemoryObject<TurnEnvironment>> {
    let identity = Identity { device: 1, inode: 1 };
    Arc::new(MemoryObject::new(environment, identity, "object".into(), pages * PAGE_SIZE))
}

fn map_object(
    space: &TurnSpace,
    object: BackingRef<TurnEnvironment>,
    address: u64,
    shared: bool,
) -> PageRange {
    let flags = if shared { AreaFlags::SHARED } else { AreaFlags::empty() };
    let length = object.size();
    let mut request = request(Place::Fixed(address), length, READ_WRITE);
    request.flags = flags;
    request.object = Some((object, 0));
    space.map(request).unwrap()
}

fn pages(address: u64, count: u64) -> PageRange {
    PageRange::new(address, count * PAGE_SIZE).unwrap()
}

/// A space that all CPUs run in, with one page outside the way mapped so that tables stay.
fn busy_space(switches: Switches) -> (TurnEnvironment, Arc<TurnSpace>) {
    let environment = TurnEnvironment::new(switches);
    let space = environment.space();
    map(&space, BASE + 0x10_0000, 1);
    for cpu in 0..CPUS {
        environment.be(cpu);
        environment.activate(&space);
        environment.load(&space, BASE + 0x10_0000).unwrap();
    }
    environment.be(0);
    (environment, space)
}

fn touch_everywhere(environment: &TurnEnvironment, space: &Arc<TurnSpace>, range: PageRange) {
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        for page in 0..range.pages() {
            environment.store(space, range.start() + page * PAGE_SIZE, page + 1).unwrap();
        }
    }
}

const OTHERS: u64 = CPUS as u64 - 1;

#[test]
fn munmap_interrupts_each_user_once_and_nobody_for_untouched_memory() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 16);
    assert_eq!(environment.interrupts_of(|| space.unmap(range).unwrap()), 0);
    map(&space, BASE, 16);
    touch_everywhere(&environment, &space, range);
    assert_eq!(environment.interrupts_of(|| space.unmap(range).unwrap()), OTHERS);
    environment.check_caches();
    for cpu in 0..CPUS {
        environment.be(cpu);
        assert_eq!(environment.load(&space, BASE), Err(Fault::NotMapped));
    }
    environment.leave_everywhere();
}

#[test]
fn without_gather_every_page_is_a_round() {
    let mut switches = Switches::DEFAULT;
    switches.gather = false;
    let (environment, space) = busy_space(switches);
    let range = map(&space, BASE, 16);
    touch_everywhere(&environment, &space, range);
    assert_eq!(environment.interrupts_of(|| space.unmap(range).unwrap()), 16 * OTHERS);
    environment.leave_everywhere();
}

#[test]
fn dontneed_and_free_drop_pages_in_one_round() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 8);
    for advice in [Advice::DontNeed, Advice::Free] {
        touch_everywhere(&environment, &space, range);
        assert_eq!(environment.interrupts_of(|| space.advise(range, advice).unwrap()), OTHERS);
        environment.check_caches();
        environment.be(2);
        assert_eq!(environment.load(&space, BASE + 3 * PAGE_SIZE), Ok(0));
        environment.be(0);
        space.advise(range, advice).unwrap();
        assert_eq!(environment.interrupts_of(|| space.advise(range, advice).unwrap()), 0);
    }
    environment.leave_everywhere();
}

/// More pages than fit into a list in place, dropped under one table's lock: giving them back must not let others run (the
/// machine's `yield_if_needed` checks that), for they may spin on that lock.
#[test]
fn dontneed_of_many_pages_gives_them_back_without_letting_others_run() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 200);
    touch_everywhere(&environment, &space, range);
    let before = environment.0.frames.statistics().free;
    assert_eq!(environment.interrupts_of(|| space.advise(range, Advice::DontNeed).unwrap()), OTHERS);
    assert_eq!(environment.0.frames.statistics().free, before + 200);
    environment.leave_everywhere();
}

#[test]
fn promotion_interrupts_nobody_and_demotion_everybody() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 1);
    touch_everywhere(&environment, &space, range);
    let protect = |rights| space.protect(range, rights, false).unwrap();
    assert_eq!(environment.interrupts_of(|| protect(Rights::READ)), OTHERS);
    environment.check_caches();
    environment.be(1);
    assert_eq!(environment.store(&space, BASE, 1), Err(Fault::NotAllowed));
    assert_eq!(environment.load(&space, BASE), Ok(1));
    environment.be(0);
    assert_eq!(environment.interrupts_of(|| protect(READ_WRITE)), 0);
    // CPU 1 holds the old entry: it faults once, spuriously, and nothing is copied or flushed for it.
    environment.be(1);
    assert_eq!(environment.interrupts_of(|| environment.store(&space, BASE, 9).unwrap()), 0);
    assert_eq!(environment.0.coherence.ledger().total(Row::Event(coherence::Event::SpuriousFault)), 1);
    environment.be(0);
    assert_eq!(environment.load(&space, BASE), Ok(9));
    assert_eq!(environment.interrupts_of(|| protect(Rights::empty())), OTHERS);
    assert_eq!(environment.load(&space, BASE), Err(Fault::NotAllowed));
    assert_eq!(environment.interrupts_of(|| protect(READ_WRITE)), 0);
    assert_eq!(environment.load(&space, BASE), Ok(9));
    environment.leave_everywhere();
}

#[test]
fn a_stale_reader_never_sees_the_old_copy_after_fork_and_write() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 4);
    touch_everywhere(&environment, &space, range);
    let mut child = None;
    assert_eq!(environment.interrupts_of(|| child = Some(space.fork().unwrap())), OTHERS);
    let child = child.unwrap();
    environment.check_caches();
    for cpu in 0..CPUS {
        environment.be(cpu);
        assert_eq!(environment.load(&space, BASE), Ok(1));
    }
    environment.be(0);
    // All others hold the shared frame: the break tells them. The second break, of a page that they hold too, also.
    assert_eq!(environment.interrupts_of(|| environment.store(&space, BASE, 77).unwrap()), OTHERS);
    environment.check_caches();
    environment.be(3);
    assert_eq!(environment.load(&space, BASE), Ok(77));
    environment.activate(&child);
    assert_eq!(environment.load(&child, BASE), Ok(1));
    // The child is the last owner of the old frame: it writes without a copy.
    let free = environment.free_frames();
    environment.store(&child, BASE, 5).unwrap();
    assert_eq!(environment.free_frames(), free);
    environment.leave_everywhere();
}

#[test]
fn mremap_moves_pages_in_one_round_per_table_and_the_old_place_is_gone() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 16);
    touch_everywhere(&environment, &space, range);
    let to = BASE + 0x8_0000;
    let request = RemapRequest {
        address: BASE,
        old_length: range.length(),
        new_length: range.length(),
        may_move: true,
        to: MoveTo::Fixed(to),
        keep_source: false,
    };
    assert_eq!(environment.interrupts_of(|| assert_eq!(space.remap(request), Ok(to))), OTHERS);
    environment.check_caches();
    environment.be(2);
    assert_eq!(environment.load(&space, BASE), Err(Fault::NotMapped));
    assert_eq!(environment.load(&space, to + 15 * PAGE_SIZE), Ok(16));
    environment.leave_everywhere();
}

#[test]
fn mremap_can_keep_the_source_and_grow_and_shrink() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    let range = map(&space, BASE, 2);
    environment.store(&space, BASE + PAGE_SIZE, 42).unwrap();
    let mut request = RemapRequest {
        address: BASE,
        old_length: range.length(),
        new_length: range.length(),
        may_move: true,
        to: MoveTo::Hint(0),
        keep_source: true,
    };
    let moved = space.remap(request).unwrap();
    assert_eq!(environment.load(&space, moved + PAGE_SIZE), Ok(42));
    assert_eq!(environment.load(&space, BASE + PAGE_SIZE), Ok(0));
    request = RemapRequest { address: moved, new_length: 8 * PAGE_SIZE, keep_source: false, ..request };
    map(&space, moved + 2 * PAGE_SIZE, 1);
    let grown = space.remap(request).unwrap();
    assert_ne!(grown, moved);
    assert_eq!(environment.load(&space, grown + PAGE_SIZE), Ok(42));
    assert_eq!(environment.load(&space, grown + 7 * PAGE_SIZE), Ok(0));
    request = RemapRequest { address: grown, old_length: 8 * PAGE_SIZE, new_length: PAGE_SIZE, ..request };
    assert_eq!(space.remap(request), Ok(grown));
    assert_eq!(environment.load(&space, grown + PAGE_SIZE), Err(Fault::NotMapped));
    let beyond_everything = 0x7fff_ffff_ffff_f000;
    request = RemapRequest { old_length: beyond_everything, new_length: beyond_everything, ..request };
    assert_eq!(space.remap(request), Ok(grown), "as on Linux, where no length is looked at that stays");
    environment.leave_everywhere();
}

#[test]
fn what_cannot_be_wiped_is_said_before_holes() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    map(&space, BASE, 1);
    map_object(&space, object(&environment, 1), BASE + 2 * PAGE_SIZE, true);
    let all = PageRange::new(BASE, 3 * PAGE_SIZE).unwrap();
    assert_eq!(space.mark(all, AreaFlags::WIPED_ON_FORK, true), Err(Error::Invalid));
    assert_eq!(space.mark(all, AreaFlags::NOT_DUMPED, true), Err(Error::OutOfMemory));
}

#[test]
fn lazy_cpus_are_told_only_of_freed_tables() {
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 4);
    touch_everywhere(&environment, &space, range);
    for cpu in 1..CPUS {
        environment.be(cpu);
        environment.go_lazy();
    }
    environment.be(0);
    assert_eq!(environment.interrupts_of(|| space.unmap(range).unwrap()), 0);
    // The last page of its 2 MiB goes, and the table with it: now they must stop walking it.
    assert_eq!(environment.interrupts_of(|| space.unmap(pages(BASE + 0x10_0000, 1)).unwrap()), OTHERS);
    environment.check_caches();
    environment.leave_everywhere();
}

#[test]
fn the_end_of_a_space_interrupts_nobody_and_gives_every_frame_back() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let free = environment.free_frames();
    let space = environment.space();
    let range = map(&space, BASE, 600);
    for cpu in 0..CPUS {
        environment.be(cpu);
        environment.activate(&space);
    }
    touch_everywhere(&environment, &space, range);
    for cpu in 0..CPUS {
        environment.be(cpu);
        environment.go_lazy();
    }
    assert_eq!(environment.interrupts_of(|| space.teardown_user()), 0);
    environment.check_caches();
    environment.leave_everywhere();
    drop(space);
    assert_eq!(environment.free_frames(), free);
}

#[test]
fn the_first_store_after_a_fork_tells_nobody_of_a_page_that_nobody_has_read_since() {
    for (switches, told) in
        [(Switches::DEFAULT, 0), (Switches { unused: false, ..Switches::DEFAULT }, OTHERS)]
    {
        let (environment, space) = busy_space(switches);
        let range = map(&space, BASE, 4);
        touch_everywhere(&environment, &space, range);
        let child = space.fork().unwrap();
        environment.be(1);
        assert_eq!(environment.load(&space, BASE + PAGE_SIZE), Ok(2));
        environment.be(0);
        assert_eq!(environment.interrupts_of(|| environment.store(&space, BASE, 77).unwrap()), told);
        let store = || environment.store(&space, BASE + PAGE_SIZE, 78).unwrap();
        assert_eq!(environment.interrupts_of(store), OTHERS, "somebody has read this one");
        environment.check_caches();
        // What an earlier fork made unwritable, and somebody has read since, the next one does not flush.
        environment.be(2);
        assert_eq!(environment.load(&space, BASE + 2 * PAGE_SIZE), Ok(3));
        environment.be(0);
        let second = space.fork().unwrap();
        let store = || environment.store(&space, BASE + 2 * PAGE_SIZE, 79).unwrap();
        assert_eq!(environment.interrupts_of(store), OTHERS);
        environment.check_caches();
        environment.be(3);
        for (page, value) in [(0, 77), (1, 78), (2, 79), (3, 4)] {
            assert_eq!(environment.load(&space, BASE + page * PAGE_SIZE), Ok(value));
        }
        for (child, values) in [(child, [1, 2, 3, 4]), (second, [77, 78, 3, 4])] {
            environment.activate(&child);
            for (page, value) in (0..).zip(values) {
                assert_eq!(environment.load(&child, BASE + page * PAGE_SIZE), Ok(value));
            }
        }
        environment.leave_everywhere();
    }
}

#[test]
fn shared_memory_is_shared_with_children_and_private_file_pages_are_not() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    let file = object(&environment, 2);
    file.write_at(0, &7u64.to_ne_bytes()).unwrap();
    map_object(&space, file.clone(), BASE, true);
    map_object(&space, file.clone(), BASE + 0x10_0000, false);
    assert_eq!(environment.load(&space, BASE + 0x10_0000), Ok(7));
    environment.store(&space, BASE + 0x10_0000, 8).unwrap();
    assert_eq!(environment.load(&space, BASE), Ok(7));
    let child = space.fork().unwrap();
    environment.be(1);
    environment.activate(&child);
    environment.store(&child, BASE, 9).unwrap();
    assert_eq!(environment.load(&child, BASE + 0x10_0000), Ok(8));
    environment.be(0);
    assert_eq!(environment.load(&space, BASE), Ok(9));
    let mut bytes = [0; 8];
    assert_eq!(file.read_at(0, &mut bytes), 8);
    assert_eq!(u64::from_ne_bytes(bytes), 9);
    environment.store(&space, BASE + PAGE_SIZE, 3).unwrap();
    file.truncate(PAGE_SIZE);
    file.forget_mapped(1);
    environment.check_caches();
    assert_eq!(environment.load(&space, BASE + PAGE_SIZE), Err(Fault::Bus));
    assert_eq!(environment.load(&space, BASE), Ok(9));
    file.truncate(2 * PAGE_SIZE);
    assert_eq!(environment.load(&space, BASE + PAGE_SIZE), Ok(0));
    environment.leave_everywhere();
}

#[test]
fn the_kernel_reads_and_writes_user_memory_with_the_programs_rights() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    map(&space, BASE, 2);
    space.write_user(BASE + PAGE_SIZE - 3, b"hello\0").unwrap();
    let mut bytes = [0; 64];
    assert_eq!(space.read_user_string(BASE + PAGE_SIZE - 3, &mut bytes), Ok(Some(5)));
    assert_eq!(&bytes[..5], b"hello");
    assert_eq!(space.read_user_string(BASE + PAGE_SIZE - 3, &mut bytes[..3]), Ok(None));
    assert_eq!(space.read_user(BASE + 2 * PAGE_SIZE - 4, &mut bytes[..8]), Err(Fault::NotMapped));
    assert_eq!(space.read_user(u64::MAX - 3, &mut bytes[..8]), Err(Fault::NotMapped));
    space.protect(pages(BASE, 1), Rights::READ, false).unwrap();
    assert_eq!(space.write_user(BASE, b"x"), Err(Fault::NotAllowed));
    let word = BASE + PAGE_SIZE;
    let add = |word: &core::sync::atomic::AtomicU32| word.fetch_add(1, core::sync::atomic::Ordering::SeqCst);
    assert_eq!(space.atomic_user(word, Access::WRITE, add), Ok(u32::from_ne_bytes(*b"lo\0\0")));
    assert_eq!(space.atomic_user(word + 2, Access::WRITE, add), Err(Fault::NotMapped));
    assert_eq!(space.atomic_user(BASE, Access::WRITE, add), Err(Fault::NotAllowed));
    environment.leave_everywhere();
}

#[test]
fn a_suppressed_flush_is_noticed_by_this_machine() {
    // Shows that `check_caches` can fail: without the flush, CPUs keep what was unmapped.
    let (environment, space) = busy_space(Switches::DEFAULT);
    let range = map(&space, BASE, 1);
    touch_everywhere(&environment, &space, range);
    environment.be(0);
    environment.0.coherence.suppress(Some(Cause::Munmap));
    space.unmap(range).unwrap();
    let check = std::panic::AssertUnwindSafe(|| environment.check_caches());
    assert!(std::panic::catch_unwind(check).is_err());
    std::mem::forget(environment);
    std::mem::forget(space);
}

#[test]
fn advice_and_protection_answer_holes_as_linux_does() {
    let environment = TurnEnvironment::new(Switches::DEFAULT);
    let space = environment.space();
    environment.activate(&space);
    map(&space, BASE, 1);
    map(&space, BASE + 2 * PAGE_SIZE, 1);
    environment.store(&space, BASE + 2 * PAGE_SIZE, 5).unwrap();
    let range = pages(BASE, 3);
    assert_eq!(space.advise(range, Advice::DontNeed), Err(Error::OutOfMemory));
    assert_eq!(environment.load(&space, BASE + 2 * PAGE_SIZE), Ok(0));
    assert_eq!(space.protect(range, Rights::READ, false), Err(Error::OutOfMemory));
    assert_eq!(environment.store(&space, BASE, 1), Err(Fault::NotAllowed));
    environment.store(&space, BASE + 2 * PAGE_SIZE, 1).unwrap();
    assert_eq!(space.incore(range, &mut [false; 3]), Err(Error::OutOfMemory));
    let mut answer = [true; 1];
    space.incore(pages(BASE, 1), &mut answer).unwrap();
    assert!(!answer[0]);
    environment.leave_everywhere();
}
