//! Who waits for an answer, and for a reader.

use super::context::Context;
use crate::process;
use ::memory::{PageRange, Reason, WatchedFault, round_down};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;
use zerocopy::{Immutable, IntoBytes};

/// `struct uffd_msg`: the event's number in the low byte, and up to three words about it.
#[derive(Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Message {
    event: u64,
    words: [u64; 3],
}

impl Message {
    pub(super) fn fault(fault: &WatchedFault, features: u32) -> Self {
        let mut flags = if fault.write { abi::UFFD_PAGEFAULT_FLAG_WRITE } else { 0 };
        flags |= match fault.reason {
            Reason::Missing => 0,
            Reason::Guarded => abi::UFFD_PAGEFAULT_FLAG_WP,
            Reason::Minor => abi::UFFD_PAGEFAULT_FLAG_MINOR,
        };
        let is_exact = features & abi::UFFD_FEATURE_EXACT_ADDRESS != 0;
        let address = if is_exact { fault.address } else { round_down(fault.address) };
        let names_thread = features & abi::UFFD_FEATURE_THREAD_ID != 0;
        let thread = if names_thread { process::current().id() } else { 0 };
        Self { event: abi::UFFD_EVENT_PAGEFAULT.into(), words: [flags.into(), address, thread.into()] }
    }

    pub(super) fn fork(descriptor: i32) -> Self {
        Self { event: abi::UFFD_EVENT_FORK.into(), words: [descriptor as u32 as u64, 0, 0] }
    }

    pub(super) fn remap(from: u64, to: u64, length: u64) -> Self {
        Self { event: abi::UFFD_EVENT_REMAP.into(), words: [from, to, length] }
    }

    pub(super) fn remove(range: PageRange) -> Self {
        Self { event: abi::UFFD_EVENT_REMOVE.into(), words: [range.start(), range.end(), 0] }
    }

    pub(super) fn unmap(range: PageRange) -> Self {
        Self { event: abi::UFFD_EVENT_UNMAP.into(), words: [range.start(), range.end(), 0] }
    }
}

struct Fault {
    ticket: u64,
    page: u64,
    message: Message,
    was_read: bool,
}

/// An event other than a fault.
pub(super) enum Told {
    Message(Message),
    /// A child's context, which whoever reads this gets a descriptor for.
    Fork(Arc<Context>),
}

struct Event {
    ticket: u64,
    told: Told,
    /// A reader is at it.
    is_taken: bool,
}

/// What a reader gets.
pub(super) enum Taken {
    Message(Message),
    /// To be settled when the reader has its descriptor, or has none.
    Fork { ticket: u64, child: Arc<Context> },
}

pub(super) struct Queue {
    next_ticket: u64,
    faults: VecDeque<Fault>,
    events: VecDeque<Event>,
    /// The file is closed: nobody will read or answer any more.
    pub(super) is_released: bool,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { next_ticket: 0, faults: VecDeque::new(), events: VecDeque::new(), is_released: false }
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub(super) fn add_fault(&mut self, page: u64, message: Message) -> u64 {
        let ticket = self.ticket();
        self.faults.push_back(Fault { ticket, page, message, was_read: false });
        ticket
    }

    pub(super) fn add_event(&mut self, told: Told) -> u64 {
        let ticket = self.ticket();
        self.events.push_back(Event { ticket, told, is_taken: false });
        ticket
    }

    pub(super) fn has_fault(&self, ticket: u64) -> bool {
        self.faults.iter().any(|fault| fault.ticket == ticket)
    }

    pub(super) fn has_event(&self, ticket: u64) -> bool {
        self.events.iter().any(|event| event.ticket == ticket)
    }

    pub(super) fn remove_fault(&mut self, ticket: u64) {
        self.faults.retain(|fault| fault.ticket != ticket);
    }

    /// Takes an event out; `None` if it was read.
    pub(super) fn remove_event(&mut self, ticket: u64) -> Option<Told> {
        let at = self.events.iter().position(|event| event.ticket == ticket)?;
        self.events.remove(at).map(|event| event.told)
    }

    /// Takes out the faults in a range; says whether there were any.
    pub(super) fn answer(&mut self, range: PageRange) -> bool {
        let before = self.faults.len();
        self.faults.retain(|fault| !range.contains(fault.page));
        self.faults.len() < before
    }

    pub(super) fn answer_all(&mut self) {
        self.faults.clear();
    }

    pub(super) fn has_unread(&self) -> bool {
        self.faults.iter().any(|fault| !fault.was_read) || self.events.iter().any(|event| !event.is_taken)
    }

    /// What is read next: faults before other events.
    pub(super) fn take(&mut self) -> Option<Taken> {
        if let Some(fault) = self.faults.iter_mut().find(|fault| !fault.was_read) {
            fault.was_read = true;
            return Some(Taken::Message(fault.message));
        }
        let at = self.events.iter().position(|event| !event.is_taken)?;
        let event = &mut self.events[at];
        match &event.told {
            Told::Fork(child) => {
                event.is_taken = true;
                Some(Taken::Fork { ticket: event.ticket, child: child.clone() })
            }
            Told::Message(message) => {
                let taken = Taken::Message(*message);
                self.events.remove(at);
                Some(taken)
            }
        }
    }

    /// A reader has got its descriptor for a child, or could not.
    pub(super) fn settle_fork(&mut self, ticket: u64, is_read: bool) {
        if is_read {
            self.remove_event(ticket);
        } else if let Some(event) = self.events.iter_mut().find(|event| event.ticket == ticket) {
            event.is_taken = false;
        }
    }
}
