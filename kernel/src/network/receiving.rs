//! Receiving: from an endpoint's queue into a program's memory.
//!
//! A packet is taken out whole, and what does not fit is lost. Of a stream, bytes are copied under the lock, written to the program without it, and only then
//! taken away: the endpoint's `reading` keeps other receivers out meanwhile, and is let go while there is nothing to receive.

use super::collector::Moving;
use super::options::Flag;
use super::state::Role;
use super::{Address, Endpoint, Kind, Sender};
use crate::files::transfer::buffer_for;
use crate::files::{Description, Destination, Patience};
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// How to receive.
#[derive(Clone, Copy)]
pub(crate) struct Receiving {
    pub(crate) patience: Patience,
    /// Leaves everything where it is (MSG_PEEK).
    pub(crate) peek: bool,
    /// As much of a stream as was asked for (MSG_WAITALL).
    pub(crate) all: bool,
}

/// What was received.
pub(crate) struct Receipt {
    /// Bytes in the program's memory.
    pub(crate) count: usize,
    /// Bytes that the packet had.
    pub(crate) length: usize,
    pub(crate) from: Option<Arc<Address>>,
    pub(crate) sender: Option<Sender>,
    pub(crate) descriptions: Vec<Arc<Description>>,
    /// Until the descriptions have descriptors.
    pub(crate) moving: Option<Moving>,
}

impl Receipt {
    fn nothing() -> Self {
        Self { count: 0, length: 0, from: None, sender: None, descriptions: Vec::new(), moving: None }
    }
}

impl Endpoint {
    /// Receives into `to`.
    ///
    /// # Errors
    /// Linux's.
    pub(crate) fn receive(&self, to: &mut dyn Destination, receiving: Receiving) -> Result<Receipt, Errno> {
        if self.connects() {
            let state = self.state.lock();
            match state.role {
                Role::Connected(_) => {}
                Role::Connecting(_) if self.is_tcp() => {}
                // A stream of TCP that was refused says so once; one that was shut down has ended.
                Role::Idle if (state.error.is_some() || state.ended) && self.is_tcp() => {}
                _ if self.is_unix() && self.kind == Kind::Stream => return Err(Errno::EINVAL),
                _ => return Err(Errno::ENOTCONN),
            }
        }
        if self.kind == Kind::Stream {
            self.receive_stream(to, receiving)
        } else {
            self.receive_packet(to, receiving)
        }
    }

    /// Waits until there are more than `known` bytes in the queue, or will never be: false then.
    fn wait_for_arrival(&self, known: usize, patience: Patience) -> Result<bool, Errno> {
        let attempt = || {
            let mut state = self.state.lock();
            if state.incoming.bytes() > known {
                return Some(Ok(true));
            }
            if state.finished {
                // Who has read the end is told of nothing that went wrong later.
                return Some(Ok(false));
            }
            if let Err(error) = state.take_error() {
                return Some(Err(error));
            }
            state.ended.then_some(Ok(false))
        };
        self.attempt(&self.arrived, patience, &self.options.receive_timeout, attempt)?
    }

    fn receive_stream(&self, to: &mut dyn Destination, receiving: Receiving) -> Result<Receipt, Errno> {
        let mut receipt = Receipt::nothing();
        let mut buffer = buffer_for(to.remaining());
        // AF_UNIX shows what is there.
        let all = receiving.all && !(receiving.peek && self.is_unix());
        while to.remaining() > 0 {
            let step = self.receive_step(to, &mut buffer, receiving.peek, &mut receipt);
            match step {
                Ok(0) => {}
                Ok(_) if !receipt.descriptions.is_empty() || crate::files::transfer::is_given_up() => break,
                Ok(_) => {
                    crate::task::yield_if_needed();
                    continue;
                }
                Err(error) if receipt.count == 0 => return Err(error),
                Err(_) => break,
            }
            // The queue is empty, or was seen to its end.
            if receipt.count > 0 && !all {
                break;
            }
            let known = if receiving.peek { receipt.count } else { 0 };
            match self.wait_for_arrival(known, receiving.patience) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if receipt.count == 0 => return Err(error),
                Err(_) => break,
            }
        }
        receipt.length = receipt.count;
        Ok(receipt)
    }

    /// Hands over what is there of a stream, up to a buffer full; 0 if there is nothing.
    fn receive_step(
        &self,
        to: &mut dyn Destination,
        buffer: &mut [u8],
        peek: bool,
        receipt: &mut Receipt,
    ) -> Result<usize, Errno> {
        let _reading = self.reading.lock();
        let wanted = buffer.len().min(to.remaining());
        let one_sender = self.has(Flag::PassCredentials);
        let skipped = if peek { receipt.count } else { 0 };
        let count = {
            let state = self.state.lock();
            let Some(first) = state.incoming.packet_behind(skipped) else { return Ok(0) };
            if one_sender && receipt.sender.is_some_and(|sender| sender != first.sender) {
                // Another's bytes are for another call, which an empty step would wait for.
                return Err(Errno::EAGAIN);
            }
            receipt.sender = Some(first.sender);
            let count = state.incoming.copy(skipped, &mut buffer[..wanted], one_sender);
            if peek && state.incoming.has_rights(skipped + count) {
                receipt.moving = Some(Moving::begin());
                receipt.descriptions = state.incoming.peek_rights(skipped + count);
            }
            count
        };
        let accepted = to.put(&buffer[..count])?;
        receipt.count += accepted;
        if peek {
            return Ok(accepted);
        }
        let mut used = Vec::new();
        let mut state = self.state.lock();
        let moving = state.incoming.has_rights(accepted).then(Moving::begin);
        let rights = state.incoming.consume(accepted, &mut used);
        let told = state.take_told();
        drop(state);
        if moving.is_some() {
            receipt.descriptions = rights.arrive();
            receipt.moving = moving;
        }
        drop(used);
        self.tell(told);
        if accepted < count { Err(Errno::EFAULT) } else { Ok(accepted) }
    }

    fn receive_packet(&self, to: &mut dyn Destination, receiving: Receiving) -> Result<Receipt, Errno> {
        // Of datagrams, only who would wait reads an end.
        let ends = self.kind != Kind::Datagram || receiving.patience == Patience::Wait;
        let attempt = || {
            let mut state = self.state.lock();
            if let Err(error) = state.take_error() {
                return Some(Err(error));
            }
            let Some(first) = state.incoming.first() else {
                return (state.ended && ends).then_some(Ok(None));
            };
            // Also for who only looks: others hold then what nobody else may have held.
            let moving = (!first.rights.is_empty()).then(Moving::begin);
            if receiving.peek {
                let count = first.bytes.len().min(to.remaining());
                let mut copy = Vec::new();
                if copy.try_reserve_exact(count).is_err() {
                    return Some(Err(Errno::ENOBUFS));
                }
                copy.extend_from_slice(&first.bytes[..count]);
                let mut receipt = Receipt::nothing();
                receipt.length = first.bytes.len();
                receipt.from = Some(first.from.clone());
                receipt.sender = Some(first.sender);
                receipt.descriptions = first.rights.peek();
                receipt.moving = moving;
                return Some(Ok(Some((copy, receipt, None))));
            }
            let packet = state.incoming.pop()?;
            let told = state.take_told();
            drop(state);
            let descriptions = packet.rights.arrive();
            let receipt = Receipt {
                count: 0,
                length: packet.bytes.len(),
                from: Some(packet.from),
                sender: Some(packet.sender),
                descriptions,
                moving,
            };
            Some(Ok(Some((packet.bytes, receipt, told))))
        };
        let received =
            self.attempt(&self.arrived, receiving.patience, &self.options.receive_timeout, attempt)??;
        let Some((bytes, mut receipt, told)) = received else { return Ok(Receipt::nothing()) };
        self.tell(told);
        let fitting = bytes.len().min(to.remaining());
        if fitting > 0 {
            receipt.count = to.put(&bytes[..fitting])?;
            if receipt.count < fitting {
                return Err(Errno::EFAULT);
            }
        }
        Ok(receipt)
    }
}
