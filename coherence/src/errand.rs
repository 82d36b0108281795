//! What an initiator asks of its targets, and the words in which it stands where they can read it.
//!
//! Each CPU has one place for one request of its own, on a cache line that only it writes. An errand is posted there before the
//! initiator's bit enters any inbox, and stays as it is until every target has acknowledged (`shootdown.rs`): so targets read it
//! without a lock, word by word, and all read the same. An errand without a space is written as space 0, which no space has, and
//! its kind where a flush has its generation.

use crate::decision::Request;
use crate::flush::{Extent, PageRange};
use crate::sync::{AtomicU64, Ordering, constructor};
use crate::{Flush, Generation, SpaceId};

/// What an initiator has its targets do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Errand {
    Flush(Request),
    /// A full fence.
    Barrier,
    /// A full fence, and forget fetched instructions.
    Serialise,
    /// A full fence, and abandon restartable sequences.
    Restart,
    /// Flush, if the loaded space has changed since the CPU last flushed it: `batch.rs`.
    CatchUp,
}

/// How [`PostedRequest::generation`] says what it is, where there is no space.
const BARRIER: u64 = 0;
const SERIALISE: u64 = 1;
const RESTART: u64 = 2;
const CATCH_UP: u64 = 3;

/// What an interrupt asks a CPU for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Flushes, each for one initiator.
    pub flushes: u64,
    /// Memory barriers that are no flushes.
    pub barriers: u64,
}

/// An initiator's request where its targets can read it. The accesses are relaxed: the inbox orders them.
#[derive(Debug)]
pub(crate) struct PostedRequest {
    ticket: AtomicU64,
    /// 0 if it is for no flush.
    space: AtomicU64,
    generation: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    /// The stride, or 0 for everything.
    stride: AtomicU64,
}

impl PostedRequest {
    constructor! {
        pub(crate) fn new() -> Self {
            PostedRequest {
                ticket: AtomicU64::new(0),
                space: AtomicU64::new(0),
                generation: AtomicU64::new(0),
                start: AtomicU64::new(0),
                end: AtomicU64::new(0),
                stride: AtomicU64::new(0),
            }
        }
    }

    /// Puts an errand where its targets will read it.
    pub(crate) fn post(&self, errand: &Errand, ticket: u64) {
        self.ticket.store(ticket, Ordering::Relaxed);
        match errand {
            Errand::Flush(request) => self.post_flush(request),
            Errand::Barrier => self.post_without_space(BARRIER),
            Errand::Serialise => self.post_without_space(SERIALISE),
            Errand::CatchUp => self.post_without_space(CATCH_UP),
            Errand::Restart => self.post_without_space(RESTART),
        }
    }

    fn post_without_space(&self, kind: u64) {
        self.space.store(0, Ordering::Relaxed);
        self.generation.store(kind, Ordering::Relaxed);
    }

    fn post_flush(&self, request: &Request) {
        let range = match request.flush.extent {
            Extent::Range(range) => range,
            Extent::All => PageRange { start: 0, end: 0, stride: 0 },
        };
        self.space.store(request.space.number(), Ordering::Relaxed);
        self.generation.store(request.generation.number(), Ordering::Relaxed);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.stride.store(range.stride, Ordering::Relaxed);
    }

    pub(crate) fn is_flush(&self) -> bool {
        self.space.load(Ordering::Relaxed) != 0 || self.generation.load(Ordering::Relaxed) == CATCH_UP
    }

    /// The errand and its ticket.
    pub(crate) fn read(&self) -> (Errand, u64) {
        let generation = self.generation.load(Ordering::Relaxed);
        let errand = match SpaceId::from_number(self.space.load(Ordering::Relaxed)) {
            Some(space) => Errand::Flush(self.read_flush(space, Generation::new(generation))),
            None if generation == SERIALISE => Errand::Serialise,
            None if generation == RESTART => Errand::Restart,
            None if generation == CATCH_UP => Errand::CatchUp,
            None => Errand::Barrier,
        };
        (errand, self.ticket.load(Ordering::Relaxed))
    }

    /// A flush. Whether tables are freed decides who is a target, and is of no interest to a target.
    fn read_flush(&self, space: SpaceId, generation: Generation) -> Request {
        let range = PageRange {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            stride: self.stride.load(Ordering::Relaxed),
        };
        let extent = if range.stride == 0 { Extent::All } else { Extent::Range(range) };
        let flush = Flush { extent, tables_freed: false };
        Request { space, generation, flush }
    }
}
