//! How many owners each slot of a disk has: a tree of frames, of which those are there that say something.
//!
//! A disk may have four thousand million slots, and most of them are free. A frame of the lowest level holds the counts of 512 slots, one above it says where 512
//! below it are, and how many words of each are in use; what has none in use is not there. So a disk costs memory for what is in it, frame by frame: single ones
//! can be had when memory is nearly full and long stretches of it cannot. Who looks for a free slot passes full frames without a look into them.
//!
//! The frames are the kernel's own, from its reserve if need be: they are wanted when memory is short, to make room. If there is none even there no
//! slot can be had, and the page stays where it is.
//!
//! All of it lies under the lock of `swap`.

use core::ops::Range;

use lock_api::RawMutex;

use crate::environment::Environment;
use crate::error::OutOfMemory;
use crate::frame::FrameNumber;
use crate::frames::Frames;
use crate::sync::{load_unhooked as load, store_unhooked as store};

/// A frame has so many words, as a power of two.
const BITS: u32 = 9;
const WORDS: u64 = 1 << BITS;

/// The counts of a disk.
pub(crate) struct SlotOwners {
    slots: u32,
    levels: u32,
    /// What leads to the top frame. See [`Link`].
    root: u64,
}

/// What a word says that leads to a frame: where it is, and how many of its words are in use. The word is 0 where there is none.
struct Link {
    frame: FrameNumber,
    used: u64,
}

impl Link {
    fn of(word: u64) -> Option<Self> {
        (word != 0).then_some(Self { frame: FrameNumber(word as u32), used: word >> 32 })
    }

    fn word(&self) -> u64 {
        self.used << 32 | u64::from(self.frame.0)
    }
}

impl SlotOwners {
    /// So many slots, none of which has an owner.
    pub(crate) fn none(slots: u32) -> Self {
        let mut levels = 1;
        while u64::from(slots) > 1 << (BITS * levels) {
            levels += 1;
        }
        Self { slots, levels, root: 0 }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// How many owners a slot has. None has what lies behind the last slot.
    pub(crate) fn of<L: RawMutex>(&self, frames: &Frames<L>, slot: u32) -> u32 {
        if slot >= self.slots {
            return 0;
        }
        let mut word = self.root;
        for level in (0..self.levels).rev() {
            let Some(link) = Link::of(word) else { return 0 };
            word = load(&frames.words(link.frame)[place(slot, level)]);
        }
        word as u32
    }

    /// Gives a slot so many owners.
    ///
    /// # Errors
    /// When the slot had none, and there is no frame to say in that it has now. Nothing has changed then.
    pub(crate) fn set<E: Environment>(
        &mut self,
        environment: &E,
        slot: u32,
        owners: u32,
    ) -> Result<(), OutOfMemory> {
        debug_assert!(slot < self.slots);
        self.root = put(environment, self.root, self.levels, slot, owners.into())?;
        Ok(())
    }

    /// The first slot of a range without an owner that `is_good`.
    pub(crate) fn find_free<L: RawMutex>(
        &self,
        frames: &Frames<L>,
        range: Range<u32>,
        is_good: &dyn Fn(u32) -> bool,
    ) -> Option<u32> {
        let range = u64::from(range.start)..u64::from(range.end.min(self.slots));
        find_zero(frames, self.root, (0, self.levels), &range, is_good)
    }

    /// Gives all frames back.
    pub(crate) fn release<E: Environment>(self, environment: &E) {
        release(environment, self.root, self.levels);
    }
}

/// Which word of a frame of that level leads to a slot.
fn place(slot: u32, level: u32) -> usize {
    (u64::from(slot) >> (BITS * level) & (WORDS - 1)) as usize
}

/// Stores a slot's count below what `word` leads to, so many levels down; says what leads there then.
fn put<E: Environment>(
    environment: &E,
    word: u64,
    levels: u32,
    slot: u32,
    count: u64,
) -> Result<u64, OutOfMemory> {
    let Some(level) = levels.checked_sub(1) else { return Ok(count) };
    let (frames, cpu) = (environment.frames(), environment.current_cpu());
    let mut link = match Link::of(word) {
        Some(link) => link,
        None if count == 0 => return Ok(0),
        None => {
            let frame = frames.allocate(cpu)?;
            frames.zero(frame);
            Link { frame, used: 0 }
        }
    };
    let below = &frames.words(link.frame)[place(slot, level)];
    let old = load(below);
    let outcome = put(environment, old, level, slot, count);
    let new = outcome.unwrap_or(old);
    store(below, new);
    link.used = link.used + u64::from(new != 0) - u64::from(old != 0);
    if link.used == 0 {
        frames.release(cpu, link.frame);
        return outcome.map(|_| 0);
    }
    outcome.map(|_| link.word())
}

/// The first slot of a range that `is_good` and whose count is 0, below what `word` leads to: so many levels from slot `first` on.
fn find_zero<L: RawMutex>(
    frames: &Frames<L>,
    word: u64,
    (first, levels): (u64, u32),
    range: &Range<u64>,
    is_good: &dyn Fn(u32) -> bool,
) -> Option<u32> {
    let start = range.start.max(first);
    let end = range.end.min(first + (1 << (BITS * levels)));
    if start >= end {
        return None;
    }
    let Some(link) = Link::of(word) else {
        return (start..end).map(|slot| slot as u32).find(|slot| is_good(*slot));
    };
    // At the end of the way a word is a count.
    let level = levels.checked_sub(1)?;
    if level == 0 && link.used == WORDS {
        return None;
    }
    let (words, shift) = (frames.words(link.frame), BITS * level);
    let mut places = (start - first) >> shift..=(end - 1 - first) >> shift;
    places.find_map(|place| {
        let part = (first + (place << shift), level);
        find_zero(frames, load(&words[place as usize]), part, range, is_good)
    })
}

fn release<E: Environment>(environment: &E, word: u64, levels: u32) {
    let (Some(level), Some(link)) = (levels.checked_sub(1), Link::of(word)) else { return };
    environment.frames().words(link.frame).iter().for_each(|word| release(environment, load(word), level));
    environment.frames().release(environment.current_cpu(), link.frame);
}
