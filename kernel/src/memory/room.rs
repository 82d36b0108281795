//! Room: frames are kept free, by taking back pages of disks and writing private ones to swap.
//!
//! Three marks, as on Linux, in free frames. Below *low* a kernel task begins to take pages back, and goes on until *high*; so who brings pages in finds
//! room, and does not wait. Below *least* the task is too slow, and whoever brings in more takes some back himself first; so does a page fault that finds no frame,
//! before anybody is killed (`out_of_memory`). There is one task, as there is one node.
//!
//! When it has made room, the task puts pages by for the next time: they are taken out of all entries, and nobody is told (`memory`'s `waiting`). By the time that their frames
//! are needed, most CPUs have flushed for other reasons; one round tells the rest. Without the mechanism `epochs` none are.
//!
//! Clean pages go that have not been used for longest (`memory`'s `scan`); if there are none, dirty ones are written, and are clean then. What is still missing
//! after that comes from private pages, if there is swap (`memory`'s `swap_out`): pages of disks go first. One at a
//! time takes pages back: two would flush for each half of what one flush covers. The others wait behind it, and find room.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ::memory::{Environment, Scanned, Waiting, put_by, take_back};

use super::{FRAMES, Kernel, cache, swap};
use crate::interrupt::shootdown::COHERENCE;
use crate::sync::{Mutex, WaitQueue};
use crate::{task, time};

/// One frame in so many is the least that is kept free, and where the task begins and ends. All more than the room for which processes are killed.
const LEAST_SHARE: usize = 32;
const LOW_SHARE: usize = 16;
const HIGH_SHARE: usize = 12;
/// Pages that the task takes back before it lets others have their turn: as many as one flush covers.
const STEP: usize = 2048;
/// How long the task rests when there was nothing to take, in nanoseconds.
const REST: u64 = 100_000_000;

static TURN: Mutex<()> = Mutex::new(());
static BACKGROUND: Count = Count::new();
static DIRECT: Count = Count::new();
/// What of both was private pages.
static ANONYMOUS: Count = Count::new();
static HAS_BACKGROUND: AtomicBool = AtomicBool::new(false);
/// The task is to take pages back.
static IS_WANTED: AtomicBool = AtomicBool::new(false);
static WANTED: WaitQueue = WaitQueue::new();

/// What somebody has done so far.
struct Count {
    /// How often it began.
    begun: AtomicU64,
    looked_at: AtomicU64,
    taken: AtomicU64,
}

/// As [`Count`], at one moment.
pub(crate) struct Counted {
    pub(crate) begun: u64,
    pub(crate) looked_at: u64,
    pub(crate) taken: u64,
}

impl Count {
    const fn new() -> Self {
        Self { begun: AtomicU64::new(0), looked_at: AtomicU64::new(0), taken: AtomicU64::new(0) }
    }

    fn read(&self) -> Counted {
        let [begun, looked_at, taken] =
            [&self.begun, &self.looked_at, &self.taken].map(|count| count.load(Ordering::Relaxed));
        Counted { begun, looked_at, taken }
    }

    /// Takes pages back; says how many.
    fn take_back(&self, wanted: usize) -> usize {
        let scanned = take_back(&Kernel, &cache::caches(), wanted);
        self.note(scanned)
    }

    /// Takes note of what was done; says how many pages were taken back.
    fn note(&self, scanned: Scanned) -> usize {
        self.looked_at.fetch_add(scanned.looked_at as u64, Ordering::Relaxed);
        self.taken.fetch_add(scanned.taken as u64, Ordering::Relaxed);
        scanned.taken
    }

    /// Has private pages go to swap; says how many.
    fn swap_out(&self, wanted: usize) -> usize {
        let scanned = swap::go_out(wanted);
        for count in [self, &ANONYMOUS] {
            count.looked_at.fetch_add(scanned.looked_at as u64, Ordering::Relaxed);
            count.taken.fetch_add(scanned.taken as u64, Ordering::Relaxed);
        }
        scanned.taken
    }

    /// As [`Count::take_back`]; if nothing is clean, what is dirty is written first. What is missing then comes from private pages.
    fn take_back_or_write(&self, wanted: usize) -> usize {
        let taken = match self.take_back(wanted) {
            0 => {
                cache::write_back_all();
                self.take_back(wanted)
            }
            taken => taken,
        };
        if taken < wanted { taken + self.swap_out(wanted - taken) } else { taken }
    }
}

/// What was taken back in the background, and by those who needed room.
pub(crate) fn counted() -> (Counted, Counted) {
    (BACKGROUND.read(), DIRECT.read())
}

/// What of that was private pages.
pub(crate) fn counted_anonymous() -> Counted {
    ANONYMOUS.read()
}

/// So many frames are missing until one in `share` is free.
fn missing(share: usize) -> usize {
    let statistics = FRAMES.statistics();
    (statistics.total / share).saturating_sub(statistics.free)
}

/// Begins to keep room in the background. Called once, when there is something that can be taken back.
pub(crate) fn start_background() {
    HAS_BACKGROUND.store(true, Ordering::Relaxed);
    task::spawn_kernel("kswapd0", || {
        loop {
            WANTED.wait(|| IS_WANTED.swap(false, Ordering::Relaxed).then_some(()));
            // Somebody else may have made room before this woke up.
            BACKGROUND.begun.fetch_add(u64::from(missing(HIGH_SHARE) > 0), Ordering::Relaxed);
            while missing(HIGH_SHARE) > 0 && step() {}
            while missing(LOW_SHARE) == 0 && stock() {}
        }
    });
}

/// The task takes some pages back; says whether there were any.
fn step() -> bool {
    let turn = TURN.lock();
    let wanted = missing(HIGH_SHARE).min(STEP);
    let has_gone = wanted == 0 || BACKGROUND.take_back_or_write(wanted) > 0;
    drop(turn);
    if !has_gone {
        // All is dirty or in use: whoever needs room finds that out. Nobody wakes this queue: it is a sleep.
        let _ = WaitQueue::new().wait_interruptible::<()>(Some(time::now() + REST), || None);
    }
    has_gone
}

/// From now on faults have room made, too: there is swap.
pub(super) fn watch() {
    FRAMES.watch(FRAMES.statistics().total / LOW_SHARE);
}

/// As [`keep`], after a fault: it looks closer only when little was left lately.
#[inline]
pub(super) fn keep_if_watched() {
    if FRAMES.was_low() {
        FRAMES.forget_low();
        keep();
    }
}

/// The task puts some pages by; says whether there is more to do.
fn stock() -> bool {
    let switches = COHERENCE.switches();
    let (waiting, most) = (Kernel.waiting().pages(), Waiting::most(&Kernel));
    if !switches.batch || !switches.epochs || waiting >= most {
        return false;
    }
    let turn = TURN.lock();
    let taken = BACKGROUND.note(put_by(&Kernel, &cache::caches(), most.min(waiting + STEP)));
    drop(turn);
    // Pages that cannot wait are none to put by.
    taken == 0 && Kernel.waiting().pages() > waiting
}

/// Has room made if there is little, and makes some if there is hardly any. Called by who is about to bring pages in. May sleep.
pub(crate) fn keep() {
    if missing(LOW_SHARE) == 0 {
        return;
    }
    if !IS_WANTED.swap(true, Ordering::Relaxed) {
        WANTED.wake_one();
    }
    if missing(LEAST_SHARE) > 0 {
        make();
    }
}

/// Whether there is room for what does not go away by itself (files in memory, what waits in sockets): one frame in `share` is free, or has a page of
/// a disk, which makes way. Has room made, as [`keep`]. May sleep.
pub(crate) fn is_there_for(share: u64) -> bool {
    keep();
    // The kernel's own memory comes from what is left.
    while missing(LEAST_SHARE) > 0 {
        if !make() {
            return false;
        }
    }
    super::available() >= FRAMES.statistics().total as u64 / share
}

/// Takes pages back until there is some room; says whether any went. May sleep.
pub(crate) fn make() -> bool {
    if !HAS_BACKGROUND.load(Ordering::Relaxed) {
        return false;
    }
    let before = missing(LOW_SHARE);
    let _turn = TURN.lock();
    // Somebody else may have made it while we waited.
    match missing(LOW_SHARE) {
        0 => true,
        wanted if wanted < before && missing(LEAST_SHARE) == 0 => true,
        wanted => {
            DIRECT.begun.fetch_add(1, Ordering::Relaxed);
            DIRECT.take_back_or_write(wanted.min(STEP / 4)) > 0
        }
    }
}
