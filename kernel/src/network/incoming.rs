//! What has come in for an endpoint and was not received yet.
//!
//! A queue of packets. Datagrams are taken whole; of a stream, bytes are copied first and taken away when they have arrived in user memory, so a
//! receiver whose memory is bad loses nothing. Descriptors stick to the packet that they came with, and so do the sender's ids: bytes of a stream
//! are put together only if nothing lies between them.

use super::rights::Rights;
use super::{Address, Sender};
use crate::files::Description;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What a packet counts beside its bytes, so that empty ones count too.
const OVERHEAD: usize = 512;
/// Bytes of a stream are put together in packets of up to this size.
const TOGETHER: usize = 4096;

pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    /// How many of the bytes have been taken.
    pub(super) taken: usize,
    pub(super) from: Arc<Address>,
    pub(super) sender: Sender,
    pub(super) rights: Rights,
}

impl Packet {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn charge(&self) -> usize {
        self.rest().len() + OVERHEAD
    }
}

#[derive(Default)]
pub(super) struct Incoming {
    packets: VecDeque<Packet>,
    /// Bytes, and `OVERHEAD` for each packet.
    charged: usize,
    bytes: usize,
    /// Packets that bring descriptors.
    with_rights: usize,
}

impl Incoming {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), charged: 0, bytes: 0, with_rights: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.packets.len()
    }

    /// How much of its bound the queue has used up.
    pub(super) fn charged(&self) -> usize {
        self.charged
    }

    /// Packets that bring descriptors.
    pub(super) fn with_rights(&self) -> usize {
        self.with_rights
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the first packet.
    pub(super) fn first_length(&self) -> usize {
        self.packets.front().map_or(0, |packet| packet.rest().len())
    }

    pub(super) fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Adds a packet; gives it back if there is no memory for it.
    pub(super) fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.packets.try_reserve(1).is_err() {
            return Err(packet);
        }
        self.charged += packet.charge();
        self.bytes += packet.rest().len();
        self.with_rights += usize::from(!packet.rights.is_empty());
        self.packets.push_back(packet);
        Ok(())
    }

    /// Adds bytes of a stream, to the last packet if they belong to it.
    pub(super) fn push_stream(&mut self, packet: Packet) -> Result<(), Packet> {
        let last = self.packets.back_mut().filter(|last| {
            last.rights.is_empty()
                && packet.rights.is_empty()
                && last.sender == packet.sender
                && last.bytes.len() + packet.bytes.len() <= TOGETHER
        });
        if let Some(last) = last
            && last.bytes.try_reserve(packet.bytes.len()).is_ok()
        {
            last.bytes.extend_from_slice(&packet.bytes);
            self.charged += packet.bytes.len();
            self.bytes += packet.bytes.len();
            return Ok(());
        }
        self.push(packet)
    }

    /// Takes the first packet.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.charged -= packet.charge();
        self.bytes -= packet.rest().len();
        self.with_rights -= usize::from(!packet.rights.is_empty());
        Some(packet)
    }

    /// The packet in which the first byte of a stream is that has `skipped` before it.
    pub(super) fn packet_behind(&self, mut skipped: usize) -> Option<&Packet> {
        self.packets.iter().find(|packet| {
            let is_behind = skipped < packet.rest().len();
            skipped = skipped.saturating_sub(packet.rest().len());
            is_behind
        })
    }

    /// Copies bytes of a stream from behind the first `skipped`: as far as there are any, up to the first packet with descriptors, and, if
    /// `one_sender`, up to the first of another sender.
    pub(super) fn copy(&self, mut skipped: usize, buffer: &mut [u8], one_sender: bool) -> usize {
        let mut done = 0;
        let mut sender = None;
        for packet in &self.packets {
            let step = skipped.min(packet.rest().len());
            skipped -= step;
            let rest = &packet.rest()[step..];
            if rest.is_empty() {
                continue;
            }
            if one_sender && *sender.get_or_insert(packet.sender) != packet.sender {
                break;
            }
            let count = rest.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
            if done == buffer.len() || !packet.rights.is_empty() {
                break;
            }
        }
        done
    }

    /// Takes the first `count` bytes away, with the descriptors of the packets that they are from. Packets that are used up are handed back, to be
    /// dropped outside of the lock.
    pub(super) fn consume(&mut self, mut count: usize, used: &mut Vec<Packet>) -> Rights {
        let mut rights = Rights::none();
        while count > 0 {
            let Some(first) = self.packets.front_mut() else { break };
            let step = first.rest().len().min(count);
            first.taken += step;
            count -= step;
            self.charged -= step;
            self.bytes -= step;
            if !first.rights.is_empty() {
                rights = core::mem::replace(&mut first.rights, Rights::none());
                self.with_rights -= 1;
            }
            if first.rest().is_empty() {
                used.extend(self.pop());
            }
        }
        rights
    }

    /// Whether one of the packets that the first `count` bytes are from has descriptors.
    pub(super) fn has_rights(&self, count: usize) -> bool {
        self.packet_with_rights(count).is_some()
    }

    /// Copies of the descriptions that the first `count` bytes bring.
    pub(super) fn peek_rights(&self, count: usize) -> Vec<Arc<Description>> {
        self.packet_with_rights(count).map_or(Vec::new(), |packet| packet.rights.peek())
    }

    fn packet_with_rights(&self, count: usize) -> Option<&Packet> {
        let mut left = count;
        for packet in &self.packets {
            if left == 0 {
                break;
            }
            if !packet.rights.is_empty() {
                return Some(packet);
            }
            left = left.saturating_sub(packet.rest().len());
        }
        None
    }

    /// All packets, from the first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }
}
