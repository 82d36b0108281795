//! Proves, when asked to on the command line, that the machine keeps stale translations.
//!
//! Every test in the guest that looks for a missing flush rests on this: an emulator whose translations happened to be fresh
//! would let a broken kernel pass. So two CPUs do here, on a page of the kernel's own, what a kernel without flushes would do to
//! its programs, and the stale entry must show each time; and after an invalidation it must be gone.
//!
//! One CPU, the conductor, changes the page's entry. The other, the subject, only does what it is told (`subject`): load,
//! store, invalidate. Between two orders it waits in a loop that touches nothing else, so nothing but the conductor's order
//! can make it forget a translation. Its accesses may fault; `recover` then continues behind them.
//!
//! | name | what is done without a flush | what must be seen |
//! |---|---|---|
//! | T1 | the entry is turned from one frame to another, then loaded | the first frame |
//! | T3 | a dirty entry is removed, then stored through | the store arrives in the frame, no fault |
//! | T4 | a dirty entry is made read-only, then stored through | the store goes through |
//! | T7b | a clean writable entry is removed, then stored through | a fault, the frame is untouched |
//! | T10 | two entries are turned and one page is invalidated | that one is fresh, the other stale |
//!
//! The names are those of the experiments that showed the behaviour at first (`docs/design/0005-workloads.md`).
#![allow(unsafe_code)]

mod subject;

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::layout::{PAGE_BYTES, STACKS, direct};
use crate::boot::{command_line, map};
use crate::{cpu, frames};

pub(crate) use subject::recover;
use subject::{Order, Outcome, Subject};

/// Two pages far behind all kernel stacks, whose entries only this check uses.
const PAGES: [u64; 2] = [STACKS + (256 << 30), STACKS + (256 << 30) + PAGE_BYTES];

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
const NO_EXECUTE: u64 = 1 << 63;

/// Runs the check if the command line asks for it.
///
/// # Panics
/// If the machine does not keep stale translations, or has one CPU only.
pub(crate) fn run_if_asked() {
    if !command_line().self_check {
        return;
    }
    assert!(cpu::count() >= 2, "selfcheck needs two CPUs");
    // Another CPU than this one, which waits for it without letting others run.
    let subject = Subject::start_on(usize::from(cpu::index() == 0));
    let pages = PAGES.map(Page::new);
    turned_entry(&subject, &pages[0]);
    removed_dirty_entry(&subject, &pages[0]);
    entry_made_read_only(&subject, &pages[0]);
    removed_clean_entry(&subject, &pages[0]);
    one_of_two(&subject, &pages);
    subject.end();
    log::info!("self-check: the machine keeps stale translations, each until it is invalidated");
}

/// A page with two frames to choose from.
struct Page {
    address: u64,
    entry: &'static AtomicU64,
    frames: [u64; 2],
}

impl Page {
    fn new(address: u64) -> Self {
        let entry = map::entry_of_kernel_page(address).expect("there is memory for a page table");
        let frames = [(); 2].map(|()| frames::allocate_zeroed().expect("there is memory for four frames"));
        Self { address, entry, frames }
    }

    /// The word in a frame, seen past all translations of the page.
    fn word(&self, frame: usize) -> &AtomicU64 {
        // SAFETY: the frame is ours for ever, and the direct map shows it.
        unsafe { &*(direct(self.frames[frame]) as *const AtomicU64) }
    }

    fn set(&self, entry: u64) {
        self.entry.store(entry, Ordering::SeqCst);
    }

    /// What the entry says for a frame with the given rights.
    fn to(&self, frame: usize, rights: u64) -> u64 {
        self.frames[frame] | PRESENT | NO_EXECUTE | rights
    }

    /// Maps frame 0, writable, with 10 in it and 20 in frame 1, for a subject that holds nothing of this page.
    fn begin(&self, subject: &Subject) {
        self.set(self.to(0, WRITABLE));
        self.word(0).store(10, Ordering::SeqCst);
        self.word(1).store(20, Ordering::SeqCst);
        subject.obey(Order::Invalidate, self.address);
    }
}

fn expect(experiment: &str, what: &str, seen: Outcome, expected: Outcome) {
    assert!(
        seen == expected,
        "self-check {experiment}: {what}: {seen:?} instead of {expected:?}. This machine does not keep (or drop) translations as \
         the tests in it suppose, so they prove nothing here"
    );
}

fn turned_entry(subject: &Subject, page: &Page) {
    page.begin(subject);
    expect("T1", "first load", subject.obey(Order::Load, page.address), Outcome::Value(10));
    page.set(page.to(1, WRITABLE));
    for _ in 0..100 {
        expect("T1", "load through a stale entry", subject.obey(Order::Load, page.address), Outcome::Value(10));
    }
    subject.obey(Order::Invalidate, page.address);
    expect("T1", "load after invalidation", subject.obey(Order::Load, page.address), Outcome::Value(20));
}

fn removed_dirty_entry(subject: &Subject, page: &Page) {
    page.begin(subject);
    subject.obey(Order::Store(11), page.address);
    page.set(0);
    expect("T3", "store through a stale entry", subject.obey(Order::Store(12), page.address), Outcome::Value(12));
    expect("T3", "the frame that was given up", Outcome::Value(page.word(0).load(Ordering::SeqCst)), Outcome::Value(12));
    subject.obey(Order::Invalidate, page.address);
    expect("T3", "store after invalidation", subject.obey(Order::Store(13), page.address), Outcome::Fault);
}

fn entry_made_read_only(subject: &Subject, page: &Page) {
    page.begin(subject);
    subject.obey(Order::Store(11), page.address);
    page.set(page.to(0, ACCESSED | DIRTY));
    expect("T4", "store through a stale entry", subject.obey(Order::Store(12), page.address), Outcome::Value(12));
    subject.obey(Order::Invalidate, page.address);
    expect("T4", "store after invalidation", subject.obey(Order::Store(13), page.address), Outcome::Fault);
}

fn removed_clean_entry(subject: &Subject, page: &Page) {
    page.begin(subject);
    expect("T7b", "first load", subject.obey(Order::Load, page.address), Outcome::Value(10));
    page.set(0);
    expect("T7b", "store through a clean entry", subject.obey(Order::Store(12), page.address), Outcome::Fault);
    expect("T7b", "the frame", Outcome::Value(page.word(0).load(Ordering::SeqCst)), Outcome::Value(10));
}

/// An invalidation of one page must not be one of everything: then a flush of a wrong page would go unnoticed.
fn one_of_two(subject: &Subject, pages: &[Page; 2]) {
    for page in pages {
        page.begin(subject);
    }
    for page in pages {
        expect("T10", "first load", subject.obey(Order::Load, page.address), Outcome::Value(10));
        page.set(page.to(1, WRITABLE));
    }
    subject.obey(Order::Invalidate, pages[0].address);
    expect("T10", "the page that was invalidated", subject.obey(Order::Load, pages[0].address), Outcome::Value(20));
    expect("T10", "its neighbour", subject.obey(Order::Load, pages[1].address), Outcome::Value(10));
}
