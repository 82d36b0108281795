//! Pages of a store that are put by: what they cost nobody, who has them back, when they go, and with how many interrupts.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use coherence::Switches;
use machine::in_turn::{CPUS, TurnDisk, TurnEnvironment, TurnSpace};
use memory::{
    Advice, AreaFlags, Backing, Environment, MapRequest, MemoryObject, PAGE_SIZE, PageRange, Place, Rights,
    Trail, Waiting, put_by, take_back,
};

const BASE: u64 = 0x4000_0000;
const OTHERS: u64 = CPUS as u64 - 1;
const MAPPED: u64 = 64;
const ALL: usize = MAPPED as usize;
/// Page n of the disk begins with n + 1. Pages are looked at so many at a time.
const HALF: usize = 32;

type Object = Arc<MemoryObject<TurnEnvironment>>;

fn at(page: u64) -> u64 {
    BASE + page * PAGE_SIZE
}

struct Setting {
    environment: TurnEnvironment,
    space: Arc<TurnSpace>,
    disk: Arc<TurnDisk>,
    object: Object,
}

impl Setting {
    fn new() -> Self {
        Self::with(Switches::DEFAULT, Rights::READ, AreaFlags::SHARED, MAPPED)
    }

    /// A space on all CPUs, which have loaded the pages of a disk, and have been found to use them no more.
    fn with(switches: Switches, rights: Rights, flags: AreaFlags, pages: u64) -> Self {
        let (environment, disk) = (TurnEnvironment::new(switches), TurnDisk::prompt(1..pages + 1));
        let (space, object) = (environment.space(), disk.object(&environment));
        let request = MapRequest {
            place: Place::Fixed(BASE),
            length: pages * PAGE_SIZE,
            rights,
            may: Rights::all(),
            flags,
            object: Some((object.clone(), 0)),
            populate: false,
        };
        space.map(request).unwrap();
        for cpu in (0..CPUS).rev() {
            environment.be(cpu);
            environment.activate(&space);
            (0..pages).for_each(|page| assert_eq!(environment.load(&space, at(page)), Ok(page + 1)));
        }
        put_by(&environment, std::slice::from_ref(&object), usize::MAX);
        assert_eq!(environment.waiting().pages(), 0, "all have been used since they came");
        Self { environment, space, disk, object }
    }

    /// Puts so many pages by at most; with how many interrupts, and how many went at once.
    fn put_by(&self, most: usize) -> (u64, usize) {
        let objects = std::slice::from_ref(&self.object);
        let mut taken = 0;
        let interrupts =
            self.environment.interrupts_of(|| taken = put_by(&self.environment, objects, most).taken);
        (interrupts, taken)
    }

    /// Takes pages back; with how many interrupts, and how many.
    fn take_back(&self, wanted: usize) -> (u64, usize) {
        let objects = std::slice::from_ref(&self.object);
        let mut taken = 0;
        let interrupts =
            self.environment.interrupts_of(|| taken = take_back(&self.environment, objects, wanted).taken);
        (interrupts, taken)
    }

    fn waiting(&self) -> usize {
        self.environment.waiting().pages()
    }
}

#[test]
fn pages_that_wait_interrupt_nobody_until_they_are_needed_and_then_once() {
    let setting = Setting::new();
    let free = setting.environment.free_frames();
    assert_eq!(setting.put_by(HALF), (0, 0));
    assert_eq!((setting.waiting(), setting.space.sizes().resident), (HALF, MAPPED / 2));
    assert_eq!(setting.put_by(HALF), (0, 0), "there are as many as are wanted");
    assert_eq!(setting.waiting(), HALF);
    assert_eq!(setting.put_by(ALL), (0, 0));
    assert_eq!(
        (setting.waiting(), setting.object.resident_pages(), setting.space.sizes().resident),
        (ALL, ALL, 0)
    );
    assert_eq!(setting.environment.free_frames(), free - 2, "each list has one to grow by");
    // What is cached goes on being read.
    assert!(setting.environment.has_cached(at(3)));
    assert_eq!(setting.take_back(1), (OTHERS, ALL), "one round for both batches");
    setting.environment.check_caches();
    assert_eq!((setting.waiting(), setting.object.resident_pages()), (0, 0));
    assert_eq!(setting.environment.free_frames(), free + ALL);
    (0..MAPPED).for_each(|page| assert_eq!(setting.environment.load(&setting.space, at(page)), Ok(page + 1)));
}

#[test]
fn who_has_flushed_meanwhile_is_not_interrupted() {
    let setting = Setting::new();
    setting.put_by(ALL);
    let environment = &setting.environment;
    for cpu in (0..CPUS).rev() {
        environment.be(cpu);
        environment.go_lazy();
        environment.activate(&setting.space);
    }
    assert_eq!(setting.take_back(ALL), (0, ALL));
    environment.check_caches();
}

#[test]
fn what_can_be_had_for_nothing_is_taken_first_and_the_rest_waits_on() {
    let setting = Setting::new();
    setting.put_by(HALF);
    for cpu in (0..CPUS).rev() {
        setting.environment.be(cpu);
        setting.environment.go_lazy();
        setting.environment.activate(&setting.space);
    }
    setting.put_by(ALL);
    assert_eq!(setting.take_back(HALF), (0, HALF));
    assert_eq!((setting.waiting(), setting.object.resident_pages()), (HALF, HALF));
    assert_eq!(setting.take_back(HALF), (OTHERS, HALF));
    assert_eq!(setting.take_back(1), (0, 0), "there is nothing left");
}

#[test]
fn who_wants_a_page_that_waits_has_it_back_without_a_transfer_and_it_stays() {
    let setting = Setting::new();
    let brought = setting.disk.asked_for(0..MAPPED);
    setting.put_by(ALL);
    setting.environment.leave();
    setting.environment.activate(&setting.space);
    assert_eq!(setting.environment.load(&setting.space, at(5)), Ok(6));
    let mut word = [0; 8];
    setting.object.read(9 * PAGE_SIZE, &mut word, &Trail::new()).unwrap();
    setting.object.write(7 * PAGE_SIZE, &77u64.to_ne_bytes(), &Trail::new()).unwrap();
    assert_eq!((u64::from_ne_bytes(word), setting.disk.asked_for(0..MAPPED)), (10, brought));
    // One is mapped again, and one was stored to.
    assert_eq!(setting.take_back(ALL).1, ALL - 2);
    assert_eq!(setting.object.resident_pages(), 2);
    assert_eq!(setting.environment.load(&setting.space, at(7)), Ok(77));
    setting.object.write_back(0..MAPPED);
    setting.environment.leave_everywhere();
    setting.space.teardown_user();
    assert_eq!(setting.object.forget_clean(), 2);
}

#[test]
fn pages_that_could_be_stored_to_go_at_once() {
    let both = Rights::READ | Rights::WRITE;
    let setting = Setting::with(Switches::DEFAULT, both, AreaFlags::SHARED, MAPPED);
    assert_eq!(setting.put_by(ALL), (OTHERS, ALL));
    assert_eq!((setting.waiting(), setting.object.resident_pages()), (0, 0));
    // Unless the processor can be trusted to look again.
    let setting =
        Setting::with(Switches { clean: true, ..Switches::DEFAULT }, both, AreaFlags::SHARED, MAPPED);
    assert_eq!(setting.put_by(ALL), (0, 0));
    assert_eq!(setting.waiting(), ALL);
}

#[test]
fn without_the_mechanism_pages_go_at_once() {
    let switches = Switches { epochs: false, ..Switches::DEFAULT };
    let setting = Setting::with(switches, Rights::READ, AreaFlags::SHARED, MAPPED);
    assert_eq!(setting.put_by(ALL), (OTHERS, ALL));
    assert_eq!(setting.waiting(), 0);
}

#[test]
fn no_more_wait_than_may() {
    let most = Waiting::most(&TurnEnvironment::new(Switches::DEFAULT));
    let pages = most as u64 + 40;
    let setting = Setting::with(Switches::DEFAULT, Rights::READ, AreaFlags::SHARED, pages);
    assert_eq!(setting.put_by(usize::MAX), (0, 0));
    assert!(setting.waiting() <= most && setting.waiting() + 2 * HALF > most);
    assert_eq!(setting.object.put_by(0..pages), pages as usize, "some waited twice");
    assert_eq!(setting.waiting(), 0);
    setting.environment.check_caches();
}

#[test]
fn programs_that_promise_something_flush_what_waits() {
    let setting = Setting::new();
    setting.put_by(ALL);
    let one = PageRange::new(at(2), PAGE_SIZE).unwrap();
    assert_eq!(setting.environment.interrupts_of(|| setting.space.unmap(one).unwrap()), OTHERS);
    let other = PageRange::new(at(4), PAGE_SIZE).unwrap();
    let protect = || setting.space.protect(other, Rights::empty(), false).unwrap();
    assert_eq!(setting.environment.interrupts_of(protect), 0, "all has been flushed");
    assert_eq!(setting.take_back(ALL), (0, ALL));
    setting.environment.check_caches();
}

#[test]
fn what_was_taken_back_owes_nothing() {
    let setting = Setting::new();
    setting.put_by(ALL);
    setting.take_back(ALL);
    let one = PageRange::new(at(2), PAGE_SIZE).unwrap();
    assert_eq!(setting.environment.interrupts_of(|| setting.space.unmap(one).unwrap()), 0);
}

#[test]
fn a_private_mapping_that_reads_flushes_nothing_and_one_that_stores_does() {
    let both = Rights::READ | Rights::WRITE;
    let setting = Setting::with(Switches::DEFAULT, both, AreaFlags::empty(), MAPPED);
    setting.put_by(ALL);
    let environment = &setting.environment;
    environment.leave();
    environment.activate(&setting.space);
    let load = || assert_eq!(environment.load(&setting.space, at(1)), Ok(2));
    assert_eq!(environment.interrupts_of(load), 0);
    let store = || environment.store(&setting.space, at(2), 22).unwrap();
    assert_eq!(environment.interrupts_of(store), OTHERS);
    environment.be(1);
    assert_eq!(environment.load(&setting.space, at(2)), Ok(22));
}

#[test]
fn what_waits_outlives_neither_spaces_nor_objects_and_frames_outlive_both() {
    let Setting { environment, space, disk, object } = Setting::new();
    let before = environment.free_frames();
    put_by(&environment, std::slice::from_ref(&object), ALL);
    environment.leave_everywhere();
    drop((space, object, disk));
    let after = environment.free_frames();
    assert!(after > before, "tables are free");
    assert_eq!(environment.waiting().release(&environment, usize::MAX), 0, "no page of an object went");
    assert_eq!(environment.free_frames(), after + ALL + 1, "with what the list has grown by");
    assert_eq!(environment.waiting().pages(), 0);
}

#[test]
fn a_disk_is_forgotten_with_one_round() {
    let setting = Setting::new();
    let mut gone = 0;
    assert_eq!(setting.environment.interrupts_of(|| gone = setting.object.forget_clean()), OTHERS);
    assert_eq!((gone, setting.object.resident_pages()), (ALL, 0));
    setting.environment.check_caches();
}

#[test]
fn what_waits_is_met_by_who_takes_pages_from_the_object_and_by_nobody_else() {
    let setting = Setting::new();
    let Setting { environment, space, object, .. } = &setting;
    object.put_by(0..4);
    object.put_by(60..MAPPED);
    assert_eq!(setting.waiting(), 8);
    let cold = PageRange::new(at(8), 4 * PAGE_SIZE).unwrap();
    let advise = || space.advise(cold, Advice::Retire { at_once: false }).unwrap();
    assert_eq!(environment.interrupts_of(advise), 0, "MADV_COLD");
    assert_eq!(environment.interrupts_of(|| object.write_back(0..MAPPED)), 0, "fsync");
    assert_eq!(environment.interrupts_of(|| object.forget_mapped(60)), OTHERS, "truncation finds no entry");
    assert_eq!(environment.interrupts_of(|| object.forget_mapped(60)), 0, "that was all");
    environment.check_caches();
}

#[test]
fn what_is_paged_out_goes_though_it_has_waited_and_come_back() {
    let setting = Setting::new();
    setting.put_by(ALL);
    setting.environment.leave();
    setting.environment.activate(&setting.space);
    assert_eq!(setting.environment.load(&setting.space, at(5)), Ok(6));
    let part = PageRange::new(at(4), 3 * PAGE_SIZE).unwrap();
    setting.space.advise(part, Advice::Retire { at_once: true }).unwrap();
    assert!((4..7).all(|page| !setting.object.is_resident(page)));
    assert_eq!(setting.environment.load(&setting.space, at(5)), Ok(6));
    setting.environment.check_caches();
}

#[test]
fn who_forgets_a_disk_waits_for_who_is_letting_its_pages_go() {
    let setting = Setting::new();
    setting.put_by(ALL);
    let environment = &setting.environment;
    let (object, begun) = (setting.object.clone(), Arc::new(Mutex::new(None)));
    let inside = begun.clone();
    environment.meanwhile(move || {
        let forgetting = thread::spawn(move || {
            object.forget_clean();
            object.resident_pages()
        });
        // Time enough for one that does not wait.
        (0..100)
            .take_while(|_| !forgetting.is_finished())
            .for_each(|_| thread::sleep(Duration::from_millis(1)));
        *inside.lock().unwrap() = Some(forgetting);
    });
    environment.waiting().release(environment, usize::MAX);
    let forgetting = begun.lock().unwrap().take().expect("others run while pages go");
    assert_eq!(forgetting.join().unwrap(), 0, "pages stayed that nobody uses");
}
