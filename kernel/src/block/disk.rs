//! One disk: requests on their way to it and back.
//!
//! A request lends the device the frames that it reads or writes, a header and a byte for its answer. They stay in `requests` under
//! the request's token until the device has answered. Whoever waits for an answer sleeps on `answered`.
//!
//! **Answers are taken by tasks only.** The interrupt says that there are some and wakes everybody who waits; the first who
//! looks takes all that have come, its own and others', and wakes the others once more. So frames are never released in an interrupt
//! handler (`memory::Frames` forbids it), and an answer that nobody waits for stays in the ring until the next request.
//!
//! Two things of `virtio-drivers` are not used: its notification by index compares indices that wrap as if they did not
//! (`VirtQueue::should_notify`), so that feature is never agreed upon; and its whole driver for block devices, which waits for a flush
//! by spinning.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering, fence};

use bitflags::bitflags;
use memory::PAGE_SIZE;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::{SomeTransport, Transport};
use virtio_drivers::Error;
use zerocopy::{Immutable, IntoBytes};

use super::access::Access;
use crate::arch::layout::direct;
use crate::memory::Frame;
use crate::sync::{InterruptLock, WaitQueue};

/// The unit in which disks count, whatever their blocks are.
pub(crate) const SECTOR: u64 = 512;
/// Requests that can be on their way at once.
const MOST_REQUESTS: usize = 64;
/// Frames in one request at most. The emulator's disks take up to 254 pieces.
pub(crate) const MOST_FRAMES: usize = 64;
/// The one queue that we use.
const QUEUE: u16 = 0;

bitflags! {
    /// What a block device may offer and we know how to use.
    #[derive(Clone, Copy, Debug)]
    struct Features: u64 {
        const READ_ONLY = 1 << 5;
        const FLUSH = 1 << 9;
        const INDIRECT = 1 << 28;
        const VERSION_1 = 1 << 32;
    }
}

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Into memory.
    In,
    /// Out to the disk.
    Out,
}

/// Where a request has got to.
#[derive(Debug)]
pub(crate) struct Progress(AtomicU8);

const PENDING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// The disk could not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

impl Progress {
    fn pending() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(PENDING)))
    }

    /// How it ended, if it has.
    pub(crate) fn outcome(&self) -> Option<Result<(), Failed>> {
        // Acquire: what the device has written comes before what is done with it.
        match self.0.load(Ordering::Acquire) {
            PENDING => None,
            DONE => Some(Ok(())),
            _ => Some(Err(Failed)),
        }
    }
}

/// The head of every request, as the device reads it.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    kind: u32,
    reserved: u32,
    sector: u64,
}

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
/// The device's answer that all is well.
const ALL_WELL: u8 = 0;

/// A request that the device has, or is to have.
struct Request {
    header: Box<Header>,
    direction: Direction,
    frames: Vec<Frame>,
    /// Bytes of `frames`; the last may be used in part only.
    bytes: usize,
    answer: Box<u8>,
    progress: Arc<Progress>,
}

impl Request {
    /// Hands the request's buffers to `use_them`: first what the device reads, then what it writes.
    fn with_buffers<R>(&mut self, use_them: impl for<'a> FnOnce(&'a [&'a [u8]], &'a mut [&'a mut [u8]]) -> R) -> R {
        let length = |index: usize| (self.bytes - index * PAGE_SIZE as usize).min(PAGE_SIZE as usize);
        let pieces = self.frames.iter().enumerate().map(|(index, frame)| (direct(frame.number().address()), length(index)));
        let header = self.header.as_bytes();
        let answer = core::slice::from_mut(&mut *self.answer);
        match self.direction {
            Direction::In => {
                // SAFETY: frames that the request refers to, in the direct map. Nobody here looks into them through these slices:
                // only where they are, and how long, is told to the device.
                let slice = |(address, length)| unsafe { core::slice::from_raw_parts_mut(address as *mut u8, length) };
                let mut outputs: Vec<&mut [u8]> = pieces.map(slice).collect();
                outputs.push(answer);
                use_them(&[header], &mut outputs)
            }
            Direction::Out => {
                // SAFETY: as above.
                let slice = |(address, length)| unsafe { core::slice::from_raw_parts(address as *const u8, length) };
                let inputs: Vec<&[u8]> = core::iter::once(header).chain(pieces.map(slice)).collect();
                use_them(&inputs, &mut [answer])
            }
        }
    }
}

struct Inside {
    transport: SomeTransport<'static>,
    queue: VirtQueue<Access, MOST_REQUESTS>,
    /// By their tokens.
    requests: [Option<Request>; MOST_REQUESTS],
}

/// A virtio disk.
pub(crate) struct Disk {
    sectors: u64,
    read_only: bool,
    /// It may keep what was written to itself until it is told to make it last.
    has_flush: bool,
    inside: InterruptLock<Inside>,
    answered: WaitQueue,
}

impl Disk {
    /// Agrees with the device on how to talk, and makes it ready.
    ///
    /// # Errors
    /// When it does not offer what is needed, or memory is short.
    pub(super) fn start(mut transport: SomeTransport<'static>) -> Result<Self, Error> {
        let agreed = transport.begin_init(Features::all());
        let half = |offset| transport.read_config_space::<u32>(offset).map(u64::from);
        let sectors = transport.read_consistent(|| Ok(half(0)? | half(4)? << 32))?;
        let queue = VirtQueue::new(&mut transport, QUEUE, agreed.contains(Features::INDIRECT), false)?;
        transport.finish_init();
        Ok(Self {
            sectors,
            read_only: agreed.contains(Features::READ_ONLY),
            has_flush: agreed.contains(Features::FLUSH),
            inside: InterruptLock::new(Inside { transport, queue, requests: [const { None }; MOST_REQUESTS] }),
            answered: WaitQueue::new(),
        })
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.sectors * SECTOR
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Begins to read or write `bytes` bytes at `offset`, whole sectors of the disk, in these frames one after the other. May
    /// sleep, until there is room for the request.
    pub(crate) fn begin(&self, direction: Direction, offset: u64, frames: Vec<Frame>, bytes: usize) -> Arc<Progress> {
        debug_assert!(offset.is_multiple_of(SECTOR) && (bytes as u64).is_multiple_of(SECTOR) && offset + bytes as u64 <= self.size());
        debug_assert!(frames.len() <= MOST_FRAMES && bytes.div_ceil(PAGE_SIZE as usize) == frames.len());
        let kind = if direction == Direction::In { READ } else { WRITE };
        self.send(kind, direction, offset / SECTOR, frames, bytes)
    }

    /// Makes what was written so far last. May sleep.
    pub(crate) fn flush(&self) -> Result<(), Failed> {
        if !self.has_flush || self.read_only {
            return Ok(());
        }
        let progress = self.send(FLUSH, Direction::Out, 0, Vec::new(), 0);
        self.wait(&progress)
    }

    /// Sleeps until a request of this disk has been answered.
    pub(crate) fn wait(&self, progress: &Progress) -> Result<(), Failed> {
        self.answered.wait(|| {
            self.take_answers();
            progress.outcome()
        })
    }

    fn send(&self, kind: u32, direction: Direction, sector: u64, frames: Vec<Frame>, bytes: usize) -> Arc<Progress> {
        let header = Box::new(Header { kind, reserved: 0, sector });
        let progress = Progress::pending();
        let answer = Box::new(!ALL_WELL);
        let mut waiting = Some(Request { header, direction, frames, bytes, answer, progress: progress.clone() });
        self.answered.wait(|| {
            self.take_answers();
            if let Some(request) = waiting.take() {
                waiting = self.try_send(request).err();
            }
            waiting.is_none().then_some(())
        });
        progress
    }

    /// Gives the request back if there is no room for it.
    fn try_send(&self, mut request: Request) -> Result<(), Request> {
        let mut inside = self.inside.lock();
        // SAFETY: the buffers stay where they are, in boxes and frames, until its answer has been taken.
        let token = request.with_buffers(|inputs, outputs| unsafe { inside.queue.add(inputs, outputs) });
        let Ok(token) = token else { return Err(request) };
        inside.requests[usize::from(token)] = Some(request);
        // Partner: the device's own, between asking to be notified and its look for requests. Without it, it could miss ours
        // while we read that it wants no notification.
        fence(Ordering::SeqCst);
        if inside.queue.should_notify() {
            inside.transport.notify(QUEUE);
        }
        Ok(())
    }

    /// Takes the answers that have come, and wakes all who wait if there were some.
    fn take_answers(&self) {
        let answered = self.inside.lock().take_answers();
        if answered.is_empty() {
            return;
        }
        for request in &answered {
            let state = if *request.answer == ALL_WELL { DONE } else { FAILED };
            request.progress.0.store(state, Ordering::Release);
        }
        self.answered.wake_all();
    }

    /// The interrupt.
    pub(super) fn on_interrupt(&self) {
        // Asking what it was about is what makes the device let go of the line.
        if !self.inside.lock().transport.ack_interrupt().is_empty() {
            self.answered.wake_all();
        }
    }
}

impl Inside {
    fn take_answers(&mut self) -> Vec<Request> {
        let mut answered = Vec::new();
        while let Some(token) = self.queue.peek_used() {
            let request = self.requests.get_mut(usize::from(token)).and_then(Option::take);
            let mut request = request.expect("the disk answered a request that it does not have");
            // SAFETY: the buffers that this token was given for.
            let popped = request.with_buffers(|inputs, outputs| unsafe { self.queue.pop_used(token, inputs, outputs) });
            popped.expect("the answer that was seen is there");
            answered.push(request);
        }
        answered
    }
}
