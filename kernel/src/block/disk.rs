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
use core::sync::atomic::{Ordering, fence};

use bitflags::bitflags;
use memory::{Direction, PAGE_SIZE, Store, StoreFailed, Transfer};
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::{SomeTransport, Transport};
use virtio_drivers::Error;
use zerocopy::{Immutable, IntoBytes};

use super::access::Access;
use crate::arch::layout::direct;
use crate::memory::{Frame, Kernel};
use crate::sync::{InterruptLock, WaitQueue};

/// The unit in which disks count, whatever their blocks are.
pub(crate) const SECTOR: u64 = 512;
/// Requests that can be on their way at once.
const MOST_REQUESTS: usize = 64;
/// Frames in one request at most: 128 KiB, as far as Linux reads ahead. The emulator's disks take up to 254 pieces.
const MOST_FRAMES: usize = 32;
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
    transfer: Arc<Transfer>,
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

    fn send(&self, header: Header, direction: Direction, frames: Vec<Frame>, bytes: usize, transfer: &Arc<Transfer>) {
        let (header, answer, transfer) = (Box::new(header), Box::new(!ALL_WELL), transfer.clone());
        let mut waiting = Some(Request { header, direction, frames, bytes, answer, transfer });
        self.answered.wait(|| {
            self.take_answers();
            if let Some(request) = waiting.take() {
                waiting = self.try_send(request).err();
            }
            waiting.is_none().then_some(())
        });
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
        for Request { answer, frames, transfer, .. } in answered {
            // Before its end is told: who waits for it may look who else has the frames.
            drop(frames);
            transfer.end(if *answer == ALL_WELL { Ok(()) } else { Err(StoreFailed) });
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

impl Store<Kernel> for Disk {
    fn most_pages(&self) -> u64 {
        MOST_FRAMES as u64
    }

    fn begin(&self, direction: Direction, first: u64, frames: Vec<Frame>, transfer: &Arc<Transfer>) {
        let offset = first * PAGE_SIZE;
        let bytes = (frames.len() as u64 * PAGE_SIZE).min(self.size() - offset) as usize;
        let kind = if direction == Direction::In { READ } else { WRITE };
        let header = Header { kind, reserved: 0, sector: offset / SECTOR };
        super::note_carried(direction, bytes as u64);
        self.send(header, direction, frames, bytes, transfer);
    }

    fn wait(&self, transfer: &Transfer) -> Result<(), StoreFailed> {
        self.answered.wait(|| {
            self.take_answers();
            transfer.outcome()
        })
    }

    fn make_lasting(&self) -> Result<(), StoreFailed> {
        if !self.has_flush {
            return Ok(());
        }
        let transfer = Transfer::pending();
        self.send(Header { kind: FLUSH, reserved: 0, sector: 0 }, Direction::Out, Vec::new(), 0, &transfer);
        self.wait(&transfer)
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
