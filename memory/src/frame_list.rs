//! Frames that were taken out of page tables and wait for their flush.
//!
//! This is the container that a gather carries: a few frames in place, the rest in a chain of frames borrowed from
//! the allocator, 511 to each. So one gather can hold a whole address space without the kernel's heap. When no frame
//! can be borrowed, [`FrameList::push`] says so and the caller ends its gather early: a second round of interrupts
//! under memory shortage, never a failure. A run of frames (a large page's) is one element.

use core::sync::atomic::Ordering::Relaxed;

use crate::environment::Environment;
use crate::frame::FrameNumber;

const IN_PLACE: usize = 24;
const PER_CHUNK: usize = 511;
/// In a chunk's word: it is a run that begins with this frame.
const RUN: u64 = 1 << 32;

/// Frames that this list owes one release each.
pub(crate) struct FrameList {
    in_place: [FrameNumber; IN_PLACE],
    in_place_count: usize,
    /// Which of those in place are runs: one bit each.
    in_place_runs: u32,
    /// The newest chunk: word 0 is the next chunk's number plus one (0 ends the chain), the others are frame numbers.
    chunk: Option<FrameNumber>,
    chunk_count: usize,
}

/// The list has no room and no frame to grow by.
#[derive(Debug)]
pub(crate) struct Full;

impl Default for FrameList {
    fn default() -> Self {
        Self {
            in_place: [FrameNumber(0); IN_PLACE],
            in_place_count: 0,
            in_place_runs: 0,
            chunk: None,
            chunk_count: PER_CHUNK,
        }
    }
}

impl FrameList {
    /// Adds a run of frames.
    pub(crate) fn push_run<E: Environment>(
        &mut self,
        environment: &E,
        first: FrameNumber,
    ) -> Result<(), Full> {
        let place = self.in_place_count;
        self.push_word(environment, u64::from(first.0) | RUN)?;
        if place < IN_PLACE {
            self.in_place_runs |= 1 << place;
        }
        Ok(())
    }

    /// Adds a frame.
    #[inline]
    pub(crate) fn push<E: Environment>(&mut self, environment: &E, frame: FrameNumber) -> Result<(), Full> {
        self.push_word(environment, u64::from(frame.0))
    }

    #[inline]
    fn push_word<E: Environment>(&mut self, environment: &E, word: u64) -> Result<(), Full> {
        if self.in_place_count < IN_PLACE {
            self.in_place[self.in_place_count] = FrameNumber(word as u32);
            self.in_place_count += 1;
            return Ok(());
        }
        if self.chunk_count == PER_CHUNK {
            self.grow(environment)?;
        }
        if let Some(chunk) = self.chunk {
            self.chunk_count += 1;
            environment.frames().words(chunk)[self.chunk_count].store(word, Relaxed);
        }
        Ok(())
    }

    #[cold]
    fn grow<E: Environment>(&mut self, environment: &E) -> Result<(), Full> {
        let fresh = environment.frames().allocate(environment.current_cpu()).map_err(|_| Full)?;
        let words = environment.frames().words(fresh);
        words[0].store(self.chunk.map_or(0, |older| u64::from(older.0) + 1), Relaxed);
        self.chunk = Some(fresh);
        self.chunk_count = 0;
        Ok(())
    }

    /// No CPU uses these frames any more through the entries that they were taken from.
    pub(crate) fn have_waited<E: Environment>(&self, environment: &E) {
        let frames = environment.frames();
        self.in_place[..self.in_place_count].iter().for_each(|frame| frames.have_waited(*frame));
        let (mut chunk, mut count) = (self.chunk, self.chunk_count);
        while let Some(current) = chunk {
            let words = frames.words(current);
            words[1..=count]
                .iter()
                .for_each(|word| frames.have_waited(FrameNumber(word.load(Relaxed) as u32)));
            chunk = words[0].load(Relaxed).checked_sub(1).map(|older| FrameNumber(older as u32));
            count = PER_CHUNK;
        }
    }

    /// Releases every frame, and the list's own, without letting others run: the caller may hold a table lock.
    pub(crate) fn release<E: Environment>(self, environment: &E) {
        self.release_in_steps(environment, || {});
    }

    /// As [`FrameList::release`], for a caller that holds no spinning lock: others may run between two chunks.
    pub(crate) fn release_yielding<E: Environment>(self, environment: &E) {
        self.release_in_steps(environment, || environment.yield_if_needed());
    }

    fn release_in_steps<E: Environment>(mut self, environment: &E, between: impl Fn()) {
        let frames = environment.frames();
        let mut cpu = environment.current_cpu();
        for (place, &frame) in self.in_place[..self.in_place_count].iter().enumerate() {
            if self.in_place_runs & 1 << place == 0 {
                frames.release(cpu, frame);
            } else {
                frames.release_run(cpu, frame);
            }
        }
        self.in_place_count = 0;
        self.in_place_runs = 0;
        while let Some(chunk) = self.chunk {
            let words = frames.words(chunk);
            for word in &words[1..=self.chunk_count] {
                let word = word.load(Relaxed);
                let frame = FrameNumber(word as u32);
                if word & RUN == 0 { frames.release(cpu, frame) } else { frames.release_run(cpu, frame) }
            }
            self.chunk = words[0].load(Relaxed).checked_sub(1).map(|older| FrameNumber(older as u32));
            self.chunk_count = PER_CHUNK;
            frames.release(cpu, chunk);
            between();
            cpu = environment.current_cpu();
        }
        self.chunk_count = PER_CHUNK;
    }
}
