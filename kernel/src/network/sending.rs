//! Sending: from a program's memory into the queue of who is to receive it.
//!
//! The bytes are taken from the program first, outside of all locks, in pieces that fit, and then wait for room if they have to. How much a queue holds is
//! bounded by the sender's SO_SNDBUF (AF_UNIX), by both sides' buffers (TCP) or the receiver's (UDP, which loses what does not fit, as it does on Linux).

use super::address::{route, source_for};
use super::incoming::Packet;
use super::state::{Role, State};
use super::{Address, Endpoint, Family, Kind, Rights, Sender, ports};
use crate::files::{Patience, Source, broken};
use crate::memory::room;
use crate::syscall::Errno;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::SocketAddr;

/// The largest piece of a stream.
const PIECE: usize = 32 * 1024;
/// The part of memory that queues leave free, or to the pages of disks, as files do.
const KEPT_FREE: u64 = 8;
/// What of a send buffer is not for bytes.
const RESERVED: usize = 32;
/// The largest datagram of UDP.
const MOST_UDP: usize = 65_507;
/// Datagrams of AF_UNIX that wait for a receiver who is not the sender's partner (`net.unix.max_dgram_qlen`, and one).
pub(crate) const MOST_DATAGRAMS: usize = 11;

/// What is sent besides bytes, and how.
pub(crate) struct Sending {
    /// To whom, if not to who is connected.
    pub(crate) to: Option<Recipient>,
    pub(crate) sender: Sender,
    pub(crate) rights: Rights,
    pub(crate) patience: Patience,
    /// Without SIGPIPE (MSG_NOSIGNAL).
    pub(crate) quiet: bool,
}

pub(crate) enum Recipient {
    Unix(Arc<Endpoint>),
    Internet(SocketAddr),
}

impl Endpoint {
    /// Sends what `from` has.
    ///
    /// # Errors
    /// Linux's; EPIPE with SIGPIPE unless quiet.
    pub(crate) fn send(self: &Arc<Self>, from: &mut dyn Source, sending: Sending) -> Result<usize, Errno> {
        // Packets never raise it.
        let mut quiet = sending.quiet || self.kind != Kind::Stream;
        let result = match (self.kind, self.family) {
            (Kind::Stream, _) => self.send_stream(from, sending, &mut quiet),
            (Kind::Datagram, Family::Internet | Family::InternetSix) => self.send_udp(from, sending),
            _ => self.send_packet(from, sending),
        };
        if result == Err(Errno::EPIPE) && !quiet { Err(broken()) } else { result }
    }

    /// Why a stream of AF_UNIX sends to nobody by name.
    pub(crate) fn refuse_name(&self) -> Errno {
        if self.state.lock().connected().is_some() { Errno::EISCONN } else { Errno::EOPNOTSUPP }
    }

    fn packet(self: &Arc<Self>, bytes: Vec<u8>, sender: Sender, rights: Rights) -> Packet {
        let from = self.own_address();
        Packet { bytes, taken: 0, from, sender, rights }
    }

    /// The other side of a connection that can still be sent to; None if `bytes` will only be answered by a reset.
    fn sendable_peer(self: &Arc<Self>, bytes: usize) -> Result<Option<Arc<Endpoint>>, Errno> {
        let mut state = self.state.lock();
        if self.is_tcp() {
            state.take_error()?;
        }
        if state.mute {
            return Err(Errno::EPIPE);
        }
        state.take_error()?;
        match &state.role {
            Role::Connected(_) if state.deserted && self.is_tcp() => {
                if bytes > 0 {
                    (state.mute, state.over) = (true, true);
                    state.error = Some(Errno::EPIPE);
                    drop(state);
                    self.announce_change();
                }
                Ok(None)
            }
            Role::Connected(peer) => peer.upgrade().map(Some).ok_or(Errno::EPIPE),
            Role::Connecting(_) => Err(Errno::EAGAIN),
            _ if self.is_tcp() => Err(Errno::EPIPE),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// `quiet` becomes true where there is no SIGPIPE.
    fn send_stream(
        self: &Arc<Self>,
        from: &mut dyn Source,
        sending: Sending,
        quiet: &mut bool,
    ) -> Result<usize, Errno> {
        let Sending { sender, mut rights, patience, .. } = sending;
        self.wait_for_connection(patience)?;
        let mut done = 0;
        while from.remaining() > 0 || done == 0 {
            let peer = match self.sendable_peer(from.remaining()).transpose() {
                // All of it goes where nobody is.
                None => return Ok(done + from.remaining()),
                Some(peer) => peer,
            };
            let step = peer.and_then(|peer| {
                if from.remaining() == 0 {
                    return Ok(0);
                }
                let bound = self.bound_at(&peer);
                let piece = from.remaining().min(PIECE).min(bound / 2);
                let bytes = gather(from, piece)?;
                let count = bytes.len();
                let packet = self.packet(bytes, sender, core::mem::replace(&mut rights, Rights::none()));
                let (waited, put) = self.put(&peer, packet, bound, patience);
                // Under whom a connection of AF_UNIX ends while it waits for room hears no signal.
                *quiet |= waited && self.is_unix() && put == Err(Errno::EPIPE);
                put?;
                Ok(count)
            });
            match step {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            crate::task::yield_if_needed();
            if crate::files::transfer::is_given_up() {
                break;
            }
        }
        Ok(done)
    }

    /// A stream of TCP that is about to be connected sends when it is.
    fn wait_for_connection(self: &Arc<Self>, patience: Patience) -> Result<(), Errno> {
        let settled = || (!matches!(self.state.lock().role, Role::Connecting(_))).then_some(());
        self.attempt(&self.arrived, patience, &self.options.send_timeout, settled)
    }

    /// What the queue at the other side of a connection may hold.
    fn bound_at(&self, peer: &Endpoint) -> usize {
        let own = self.options.send_buffer();
        if self.is_unix() { own } else { own + peer.options.receive_buffer() }
    }

    /// Puts a packet of a connection into the queue at its other side, as soon as that is not full. Also whether that was not at once.
    fn put(
        self: &Arc<Self>,
        peer: &Arc<Endpoint>,
        packet: Packet,
        bound: usize,
        patience: Patience,
    ) -> (bool, Result<(), Errno>) {
        let mut packet = Some(packet);
        let mut turns = 0;
        let attempt = || {
            turns += 1;
            let (error, mute) = {
                let mut state = self.state.lock();
                (state.error.take(), state.mute)
            };
            if let Some(error) = error {
                return Some(Err(error));
            }
            let mut state = peer.state.lock();
            if mute || state.closed || (state.ended && self.is_unix()) {
                return Some(Err(Errno::EPIPE));
            }
            if state.incoming.charged() >= bound {
                state.refuse(self, bound / 2);
                return None;
            }
            let packet = packet.take()?;
            let pushed = if self.kind == Kind::Stream {
                state.incoming.push_stream(packet)
            } else {
                state.incoming.push(packet)
            };
            Some(Ok(pushed))
        };
        let pushed = self.attempt(&peer.room, patience, &self.options.send_timeout, attempt);
        let put = pushed.and_then(|put| put).and_then(|pushed| pushed.map_err(|_lost| Errno::ENOBUFS));
        if put.is_ok() {
            peer.announce_arrival();
        }
        (turns > 1, put)
    }

    /// Sends a packet of AF_UNIX whole.
    fn send_packet(self: &Arc<Self>, from: &mut dyn Source, sending: Sending) -> Result<usize, Errno> {
        let Sending { to, sender, rights, patience, .. } = sending;
        if self.kind == Kind::SequencedPackets {
            let mut state = self.state.lock();
            state.take_error()?;
            if state.connected().is_none() {
                return Err(Errno::ENOTCONN);
            }
        }
        let to = match (to, self.kind) {
            (Some(Recipient::Unix(to)), Kind::Datagram) => Some(to),
            _ => None,
        };
        let length = from.remaining();
        if length > self.options.send_buffer().saturating_sub(RESERVED) {
            return Err(Errno::EMSGSIZE);
        }
        let bytes = gather(from, length)?;
        let packet = self.packet(bytes, sender, rights);
        if self.kind == Kind::SequencedPackets {
            let peer = self.sendable_peer(length)?.ok_or(Errno::EPIPE)?;
            self.put(&peer, packet, self.options.send_buffer(), patience).1?;
            return Ok(length);
        }
        let to = match to {
            Some(to) => to,
            None => self.partner()?,
        };
        if to.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        self.put_datagram(&to, packet, patience)?;
        Ok(length)
    }

    /// Whom datagrams of AF_UNIX go to that name nobody.
    fn partner(&self) -> Result<Arc<Endpoint>, Errno> {
        let mut state = self.state.lock();
        state.take_error()?;
        let partner = state
            .connected()
            .ok_or(Errno::ENOTCONN)?
            .upgrade()
            .filter(|partner| !core::ptr::eq(&**partner, self));
        match partner {
            Some(partner) => Ok(partner),
            None if state.connected().is_some_and(|peer| core::ptr::eq(peer.as_ptr(), self)) => {
                state.connected().and_then(Weak::upgrade).ok_or(Errno::ECONNREFUSED)
            }
            None => {
                state.role = Role::Idle;
                Err(Errno::ECONNREFUSED)
            }
        }
    }

    /// Whether a datagram to `receiver`, whose state that is, has to wait, and until how much is left there.
    fn datagram_waits(&self, receiver: &State) -> Option<usize> {
        let bound = self.options.send_buffer();
        let are_partners = receiver.connected().is_some_and(|peer| core::ptr::eq(peer.as_ptr(), self));
        if are_partners {
            return (receiver.incoming.charged() >= bound).then_some(bound / 2);
        }
        (receiver.incoming.count() >= MOST_DATAGRAMS).then_some(usize::MAX)
    }

    fn put_datagram(
        self: &Arc<Self>,
        to: &Arc<Endpoint>,
        packet: Packet,
        patience: Patience,
    ) -> Result<(), Errno> {
        let mut packet = Some(packet);
        let attempt = || {
            if self.state.lock().mute {
                return Some(Err(Errno::EPIPE));
            }
            if !to.accepts_from(self) {
                return Some(Err(Errno::EPERM));
            }
            let mut state = to.state.lock();
            if state.closed {
                return Some(Err(Errno::ECONNREFUSED));
            }
            if state.ended {
                return Some(Err(Errno::EPIPE));
            }
            if let Some(below) = self.datagram_waits(&state) {
                state.refuse(self, below);
                return None;
            }
            let packet = packet.take()?;
            Some(Ok(state.incoming.push(packet)))
        };
        let pushed = self.attempt(&to.room, patience, &self.options.send_timeout, attempt)??;
        pushed.map_err(|_lost| Errno::ENOBUFS)?;
        to.announce_arrival();
        Ok(())
    }

    /// Sends a datagram of UDP: it arrives, is lost, or nobody is there.
    fn send_udp(self: &Arc<Self>, from: &mut dyn Source, sending: Sending) -> Result<usize, Errno> {
        let length = from.remaining();
        if length > MOST_UDP {
            return Err(Errno::EMSGSIZE);
        }
        let to = match sending.to {
            Some(Recipient::Internet(to)) => {
                if to.port() == 0 {
                    return Err(Errno::EINVAL);
                }
                route(to)?
            }
            _ => self.peer_address().map_err(|_| Errno::EDESTADDRREQ)?.internet()?,
        };
        if self.family == Family::Internet && to.is_ipv6() {
            return Err(Errno::EAFNOSUPPORT);
        }
        {
            let mut state = self.state.lock();
            state.take_error()?;
            if state.mute {
                return Err(Errno::EPIPE);
            }
        }
        let bytes = gather(from, length)?;
        self.ensure_port(None)?;
        let own = self.own_address().internet()?;
        let host = if own.ip().is_unspecified() { source_for(to.ip()) } else { own.ip() };
        let own = SocketAddr::new(host, own.port());
        let Some(receiver) = ports::receiver(to, own) else {
            self.nobody_there(to);
            return Ok(length);
        };
        let from = Arc::new(Address::Internet(own));
        let packet = Packet { bytes, taken: 0, from, sender: sending.sender, rights: Rights::none() };
        let mut state = receiver.state.lock();
        let fits = !state.closed && state.incoming.charged() < receiver.options.receive_buffer();
        let lost = if fits { state.incoming.push(packet).err() } else { Some(packet) };
        drop(state);
        if lost.is_none() {
            receiver.announce_arrival();
        }
        Ok(length)
    }

    /// A connected socket hears that there is nobody.
    fn nobody_there(&self, to: SocketAddr) {
        let mut state = self.state.lock();
        if state.connected().is_some() && state.peer.internet() == Ok(to) {
            state.error = Some(Errno::ECONNREFUSED);
            drop(state);
            self.announce_change();
        }
    }

    /// Whether something sent to `peer` would not have to wait; if not, `peer` will say when.
    pub(super) fn has_room_at(self: &Arc<Self>, peer: &Arc<Endpoint>) -> bool {
        let mut state = peer.state.lock();
        let below = if state.closed {
            None
        } else if self.kind == Kind::Datagram {
            self.datagram_waits(&state)
        } else {
            let bound = self.bound_at(peer);
            (state.incoming.charged() >= bound).then_some(bound / 2)
        };
        if let Some(below) = below {
            state.refuse(self, below);
        }
        below.is_none()
    }
}

/// Takes `count` bytes from a program: ENOBUFS if memory is short, which queues do not give back by themselves; EFAULT unless it gets all of them.
fn gather(from: &mut dyn Source, count: usize) -> Result<Vec<u8>, Errno> {
    if !room::is_there_for(KEPT_FREE) {
        return Err(Errno::ENOBUFS);
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| Errno::ENOBUFS)?;
    bytes.resize(count, 0);
    if from.take(&mut bytes)? == count { Ok(bytes) } else { Err(Errno::EFAULT) }
}
