//! Runs of 512 frames, aligned to their size, of which large pages are made.
//!
//! Each frame of a run has references of its own, as if it were mapped alone: one for each large page that it is part of. So a large page
//! can fall to pieces without any change to them, and a frame is free when nobody refers to *it*. That costs 512 counts where one would
//! do, beside two megabytes that are cleared or copied at the same time.

use coherence::CpuId;
use lock_api::RawMutex;

use crate::entry::LARGE_FRAMES;
use crate::environment::Environment;
use crate::frame::FrameNumber;
use crate::frames::Frames;
use crate::sync;

/// A run's size as the buddy allocator counts.
const ORDER: usize = LARGE_FRAMES.trailing_zeros() as usize;
/// Frames that are cleared or copied before others may run.
const STRETCH: u32 = 32;

/// The run that begins with `first`.
pub(crate) fn run(first: FrameNumber) -> impl Iterator<Item = FrameNumber> {
    (first.0..first.0 + LARGE_FRAMES).map(FrameNumber)
}

impl<L: RawMutex> Frames<L> {
    /// A run for a user's page, with one reference to each frame. Contents undefined. `None` if there is none, or only the kernel's
    /// reserve would be left.
    pub(crate) fn allocate_run(&self) -> Option<FrameNumber> {
        let first = FrameNumber(self.take_block_above(ORDER, self.reserve())?);
        for frame in run(first) {
            sync::store_count(&self.metadata(frame).references, 1);
            sync::frame_given(frame);
        }
        Some(first)
    }

    /// One more reference to each frame of a run.
    pub(crate) fn acquire_run(&self, first: FrameNumber) {
        run(first).for_each(|frame| sync::add_to_count(&self.metadata(frame).references));
    }

    /// Whether there is one reference to each frame of a run. Exact only for a caller that excludes new ones.
    pub(crate) fn is_sole_run(&self, first: FrameNumber) -> bool {
        run(first).all(|frame| sync::load_count(&self.metadata(frame).references) == 1)
    }

    /// One reference less to each frame of a run. What nobody refers to any more is free.
    pub(crate) fn release_run(&self, cpu: CpuId, first: FrameNumber) {
        // A sole owner gives all back at once: nobody else can add a reference.
        if !self.is_sole_run(first) {
            return run(first).for_each(|frame| self.release(cpu, frame));
        }
        for frame in run(first) {
            sync::store_count(&self.metadata(frame).references, 0);
            sync::frame_taken(frame);
        }
        self.give_block(first, ORDER);
    }

    /// Hangs a table that nobody has seen on `table`, whose lock the caller holds.
    pub(crate) fn put_aside(&self, table: FrameNumber, spare: FrameNumber) {
        let next = self.metadata(table).link.aside();
        self.metadata(spare).link.set_aside(next);
        self.metadata(table).link.set_aside(Some(spare.0));
    }

    /// Takes one of those that hang on `table`, whose lock the caller holds.
    pub(crate) fn take_aside(&self, table: FrameNumber) -> Option<FrameNumber> {
        let spare = self.metadata(table).link.aside()?;
        self.metadata(table).link.set_aside(self.metadata(FrameNumber(spare)).link.aside());
        Some(FrameNumber(spare))
    }

    /// Makes a table of a frame whose words are in order already: nothing hangs on it, and, as far as is counted, it is empty.
    pub(crate) fn begin_table(&self, table: FrameNumber) {
        self.metadata(table).link.set_aside(None);
        *self.metadata(table).table.lock() = 0;
        self.sharers(table).clear();
    }
}

/// A run that is about to be mapped: one reference to each of its frames.
pub(crate) struct Run<E: Environment> {
    first: FrameNumber,
    environment: E,
    owned: bool,
}

impl<E: Environment> Run<E> {
    /// A run with undefined contents, if there is one.
    pub(crate) fn allocate(environment: &E) -> Option<Self> {
        let first = environment.frames().allocate_run()?;
        Some(Self { first, environment: environment.clone(), owned: true })
    }

    /// A run of zeroes, if there is one. The caller holds no spinning lock.
    pub(crate) fn zeroed(environment: &E) -> Option<Self> {
        let fresh = Self::allocate(environment)?;
        fresh.fill(|frame| environment.frames().zero(frame));
        Some(fresh)
    }

    /// Fills it frame by frame; others may run meanwhile.
    pub(crate) fn fill(&self, mut fill: impl FnMut(FrameNumber)) {
        for frame in run(self.first) {
            fill(frame);
            if frame.0 % STRETCH == STRETCH - 1 {
                self.environment.yield_if_needed();
            }
        }
    }

    pub(crate) fn first(&self) -> FrameNumber {
        self.first
    }

    /// Gives the references away: whoever takes the number owes the release.
    pub(crate) fn into_first(self) -> FrameNumber {
        let mut this = self;
        this.owned = false;
        this.first
    }
}

impl<E: Environment> Drop for Run<E> {
    fn drop(&mut self) {
        if self.owned {
            self.environment.frames().release_run(self.environment.current_cpu(), self.first);
        }
    }
}
