//! Pipes: bytes in order from writers to readers, with a bounded store between them.
//!
//! A write of up to `PIPE_BUF` bytes is atomic: it waits until all of it fits. Larger ones go in piece by
//! piece. Nobody left to read makes a write fail with EPIPE and SIGPIPE; nobody left to write makes a read
//! return 0. A FIFO is a pipe with a name, whose ends are opened one by one and wait for each other.

use super::file::{File, Patience};
use super::readiness::{Observers, Readiness};
use super::transfer::{Destination, Source, buffer_for};
use super::waiting;
use crate::process::signal::{self, Signal};
use crate::sync::{SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// Writes up to this size are atomic.
pub(crate) const ATOMIC: usize = 4096;
/// What a pipe holds unless told otherwise.
const DEFAULT_CAPACITY: usize = 64 * 1024;
/// The most that F_SETPIPE_SZ grants.
pub(crate) const MOST_CAPACITY: usize = 1024 * 1024;

pub(crate) struct Pipe {
    state: SpinLock<State>,
    readable: WaitQueue,
    writable: WaitQueue,
    observers: Observers,
}

struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    readers: usize,
    writers: usize,
    /// How often each end has been opened: an opener of a FIFO waits for the *next* opening of the other
    /// end, even if that one is closed again at once.
    reader_openings: u64,
    writer_openings: u64,
}

/// One opening of a pipe: its reading end, its writing end or, for a FIFO opened O_RDWR, both.
pub(crate) struct PipeEnd {
    pipe: Arc<Pipe>,
    reads: bool,
    writes: bool,
    /// Number of writer openings when this end was opened: no hang-up before the first writer came.
    writers_before: u64,
}

impl Pipe {
    pub(crate) fn new() -> Arc<Self> {
        let state = State {
            bytes: VecDeque::new(),
            capacity: DEFAULT_CAPACITY,
            readers: 0,
            writers: 0,
            reader_openings: 0,
            writer_openings: 0,
        };
        Arc::new(Self {
            state: SpinLock::new(state),
            readable: WaitQueue::new(),
            writable: WaitQueue::new(),
            observers: Observers::new(),
        })
    }

    /// Opens an end without waiting for the other.
    pub(crate) fn open(self: &Arc<Self>, reads: bool, writes: bool) -> PipeEnd {
        let mut state = self.state.lock();
        let writers_before = state.writer_openings;
        state.readers += usize::from(reads);
        state.writers += usize::from(writes);
        state.reader_openings += u64::from(reads);
        state.writer_openings += u64::from(writes);
        drop(state);
        self.readable.wake_all();
        self.writable.wake_all();
        PipeEnd { pipe: self.clone(), reads, writes, writers_before }
    }

    /// Opens an end of a FIFO: waits for the other end; a writer that does not want to wait gets ENXIO.
    pub(crate) fn open_named(self: &Arc<Self>, reads: bool, writes: bool, patience: Patience) -> Result<PipeEnd, Errno> {
        if writes && !reads && patience == Patience::Refuse && self.state.lock().readers == 0 {
            return Err(Errno::ENXIO);
        }
        // Taken before this end shows: whoever opens the other end because it saw this one counts.
        let before = {
            let state = self.state.lock();
            if reads { state.writer_openings } else { state.reader_openings }
        };
        let end = self.open(reads, writes);
        if patience == Patience::Wait && reads != writes {
            let queue = if reads { &self.readable } else { &self.writable };
            waiting::wait(queue, || {
                let state = self.state.lock();
                let (present, openings) =
                    if reads { (state.writers, state.writer_openings) } else { (state.readers, state.reader_openings) };
                (present > 0 || openings != before).then_some(())
            })?;
        }
        Ok(end)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.state.lock().capacity
    }

    /// Bytes that wait to be read.
    pub(crate) fn filled(&self) -> usize {
        self.state.lock().bytes.len()
    }

    /// Sets the capacity to `wanted`, rounded up to a power of two of pages. EBUSY if more is in the pipe.
    pub(crate) fn set_capacity(&self, wanted: usize) -> Result<usize, Errno> {
        if wanted > 1 << 31 {
            return Err(Errno::EINVAL);
        }
        let capacity = wanted.max(ATOMIC).next_power_of_two();
        if capacity > MOST_CAPACITY {
            return Err(Errno::EPERM);
        }
        let mut state = self.state.lock();
        if state.bytes.len() > capacity {
            return Err(Errno::EBUSY);
        }
        state.capacity = capacity;
        drop(state);
        self.writable.wake_all();
        self.observers.announce(Readiness::WRITABLE);
        Ok(capacity)
    }

    /// Waits for bytes and takes up to `buffer.len()` of them; 0 once the last writer is gone.
    fn take(&self, buffer: &mut [u8], patience: Patience) -> Result<usize, Errno> {
        let mut attempt = || {
            let mut state = self.state.lock();
            if state.bytes.is_empty() {
                return (state.writers == 0).then_some(0);
            }
            let count = buffer.len().min(state.bytes.len());
            let (front, back) = state.bytes.as_slices();
            let first = count.min(front.len());
            buffer[..first].copy_from_slice(&front[..first]);
            buffer[first..count].copy_from_slice(&back[..count - first]);
            state.bytes.drain(..count);
            Some(count)
        };
        let count = waiting::attempt(&self.readable, patience, &mut attempt)?;
        if count > 0 {
            self.writable.wake_all();
            self.observers.announce(Readiness::WRITABLE);
        }
        Ok(count)
    }

    /// Hands what is in the pipe to `to`, waiting until there is something.
    pub(super) fn receive(&self, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        let mut buffer = buffer_for(to.remaining());
        let count = self.take(&mut buffer, patience)?;
        if count == 0 { Ok(0) } else { to.put(&buffer[..count]) }
    }

    /// Puts all of `bytes` in, waiting for room. Fewer go in only if something ends the waiting.
    pub(super) fn put(&self, bytes: &[u8], atomic: bool, patience: Patience) -> Result<usize, Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let least = if atomic { rest.len() } else { 1 };
            let mut attempt = || {
                let mut state = self.state.lock();
                if state.readers == 0 {
                    return Some(Err(Errno::EPIPE));
                }
                let room = state.capacity.saturating_sub(state.bytes.len());
                if room < least {
                    return None;
                }
                let count = rest.len().min(room);
                if state.bytes.try_reserve(count).is_err() {
                    return Some(Err(Errno::ENOMEM));
                }
                state.bytes.extend(&rest[..count]);
                Some(Ok(count))
            };
            match waiting::attempt(&self.writable, patience, &mut attempt).and_then(|put| put) {
                Ok(count) => done += count,
                Err(Errno::EPIPE) => {
                    let error = broken();
                    return if done == 0 { Err(error) } else { Ok(done) };
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
            self.readable.wake_all();
            self.observers.announce(Readiness::READABLE);
        }
        Ok(done)
    }
}

/// Nobody will read what the current task writes: SIGPIPE for it, and EPIPE.
pub(crate) fn broken() -> Errno {
    signal::raise(Signal::SIGPIPE);
    Errno::EPIPE
}

impl File for PipeEnd {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        self.pipe.receive(to, patience)
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        patience: Patience,
    ) -> Result<usize, Errno> {
        let atomic = from.remaining() <= ATOMIC;
        super::transfer::collect(from, |_, bytes| self.pipe.put(bytes, atomic, patience))
    }

    fn readiness(&self) -> Readiness {
        let state = self.pipe.state.lock();
        let mut readiness = Readiness::empty();
        if self.reads {
            if !state.bytes.is_empty() {
                readiness |= Readiness::READABLE;
            }
            if state.writers == 0 && state.writer_openings != self.writers_before {
                readiness |= Readiness::HANGUP;
            }
        }
        if self.writes {
            if state.capacity.saturating_sub(state.bytes.len()) >= ATOMIC {
                readiness |= Readiness::WRITABLE;
            }
            if state.readers == 0 {
                readiness |= Readiness::ERROR;
            }
        }
        readiness
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.pipe.observers), None]
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        super::control::answer_available(request, argument, self.pipe.filled())
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.readers -= usize::from(self.reads);
        state.writers -= usize::from(self.writes);
        if state.readers == 0 && state.writers == 0 {
            state.bytes = VecDeque::new();
        }
        drop(state);
        self.pipe.readable.wake_all();
        self.pipe.writable.wake_all();
        self.pipe.observers.announce(Readiness::HANGUP | Readiness::ERROR);
    }
}
