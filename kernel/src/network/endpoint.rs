//! One end of a connection, or of none.
//!
//! All that others see of an endpoint is its `State`, under one spin lock that is held for a few steps. `ended` and `mute` only ever become true. Whoever
//! changes something says so after it has let go of the lock: to those who sleep (`arrived`, `room`) and to those who watch (`observers`).
//!
//! A sender that finds no room notes itself in the receiver's state, under the lock under which it looked (`State::refuse`); who takes something out looks there
//! under the same lock. So either the sender sees the room, or it is told.

use super::incoming::Incoming;
use super::options::{Flag, Options};
use super::{Address, Sender, Socket, address, listing};
use crate::files::{Description, Observers, Readiness};
use crate::sync::{Mutex, Once, SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use linux_raw_sys::net as abi;

/// What the next endpoint's cookie is.
static NEXT_COOKIE: AtomicU64 = AtomicU64::new(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Unix,
    Internet,
    InternetSix,
}

impl Family {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Unix => abi::AF_UNIX,
            Self::Internet => abi::AF_INET,
            Self::InternetSix => abi::AF_INET6,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Stream,
    Datagram,
    SequencedPackets,
}

impl Kind {
    /// The number of SOCK_STREAM and its kin.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Stream => 1,
            Self::Datagram => 2,
            Self::SequencedPackets => 5,
        }
    }
}

/// Connections that wait to be accepted.
pub(super) struct Backlog {
    pub(super) ready: VecDeque<Socket>,
    pub(super) most: usize,
    /// Endpoints of TCP that found it full.
    pub(super) waiting: VecDeque<Weak<Endpoint>>,
}

/// What an endpoint is at.
pub(super) enum Role {
    Idle,
    Connecting,
    Listening(Backlog),
    /// Weakly: the other side may be closed. Of UDP only the address counts.
    Connected(Weak<Endpoint>),
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) incoming: Incoming,
    pub(super) own: Arc<Address>,
    pub(super) peer: Arc<Address>,
    /// Who was there when the connection was made.
    pub(super) peer_sender: Sender,
    pub(super) peer_groups: Vec<u32>,
    /// Nothing more comes in.
    pub(super) ended: bool,
    /// Nothing more can be sent.
    pub(super) mute: bool,
    /// The other side of a connection of TCP is closed: what is sent to it next resets the connection.
    pub(super) deserted: bool,
    /// The socket is gone.
    pub(super) closed: bool,
    /// A connection that was asked for without waiting, of which the program has not heard yet.
    pub(super) unheard: bool,
    pub(super) error: Option<Errno>,
    /// A sender found no room: how much may be left in the queue when it is told. 0: nobody.
    told_below: usize,
    /// Who watches for room.
    hopeful: Vec<Weak<Endpoint>>,
}

pub(crate) struct Endpoint {
    pub(super) family: Family,
    pub(super) kind: Kind,
    pub(super) options: Options,
    pub(super) state: SpinLock<State>,
    /// Held by a receiver of a stream while it copies.
    pub(super) reading: Mutex<()>,
    /// Something came in, a connection can be accepted, or the own one is made.
    pub(super) arrived: WaitQueue,
    /// Something can be put in here, or connected to.
    pub(super) room: WaitQueue,
    pub(super) observers: Observers,
    /// How often it is under way in a queue.
    pub(super) in_flight: AtomicUsize,
    description: Once<Weak<Description>>,
    /// Its number among all that there have been: what programs may know of it where they want to tell one from another.
    pub(crate) cookie: u64,
}

/// Told that there may be room now, outside of the lock.
pub(super) struct Told(Vec<Weak<Endpoint>>);

impl State {
    /// Notes that `sender` found no room, and wants to hear when not more than `below` is in the queue.
    pub(super) fn refuse(&mut self, sender: &Arc<Endpoint>, below: usize) {
        self.told_below = self.told_below.max(below.max(1));
        let is_new = |hopeful: &Vec<Weak<Endpoint>>| !hopeful.iter().any(|other| other.as_ptr() == Arc::as_ptr(sender));
        if is_new(&self.hopeful) {
            self.hopeful.retain(|other| other.strong_count() > 0);
            self.hopeful.push(Arc::downgrade(sender));
        }
    }

    /// Those who are to be told that something was taken out.
    pub(super) fn take_told(&mut self) -> Option<Told> {
        if self.told_below == 0 || self.incoming.charged() > self.told_below {
            return None;
        }
        self.told_below = 0;
        Some(Told(core::mem::take(&mut self.hopeful)))
    }

    /// As [`State::take_told`], however much is in the queue.
    pub(super) fn tell_all(&mut self) -> Told {
        self.told_below = 0;
        Told(core::mem::take(&mut self.hopeful))
    }

    /// The sockets that wait to be accepted.
    pub(super) fn backlog(&self) -> impl Iterator<Item = &Socket> {
        let ready = match &self.role {
            Role::Listening(backlog) => Some(backlog.ready.iter()),
            _ => None,
        };
        ready.into_iter().flatten()
    }

    pub(super) fn take_backlog(&mut self) -> VecDeque<Socket> {
        match &mut self.role {
            Role::Listening(backlog) => core::mem::take(&mut backlog.ready),
            _ => VecDeque::new(),
        }
    }

    pub(super) fn connected(&self) -> Option<&Weak<Endpoint>> {
        match &self.role {
            Role::Connected(peer) => Some(peer),
            _ => None,
        }
    }

    /// Takes the error that waits to be told.
    pub(super) fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }
}

impl Endpoint {
    pub(crate) fn new(family: Family, kind: Kind) -> Arc<Self> {
        let unnamed = Arc::new(if family == Family::Unix {
            Address::Unnamed
        } else {
            Address::Internet(address::unspecified(family))
        });
        let state = State {
            role: Role::Idle,
            incoming: Incoming::new(),
            own: unnamed.clone(),
            peer: unnamed,
            peer_sender: Sender::NOBODY,
            peer_groups: Vec::new(),
            ended: false,
            mute: false,
            deserted: false,
            closed: false,
            unheard: false,
            error: None,
            told_below: 0,
            hopeful: Vec::new(),
        };
        let endpoint = Arc::new(Self {
            family,
            kind,
            options: Options::new(family, kind),
            state: SpinLock::new(state),
            reading: Mutex::new(()),
            arrived: WaitQueue::new(),
            room: WaitQueue::new(),
            observers: Observers::new(),
            in_flight: AtomicUsize::new(0),
            cookie: NEXT_COOKIE.fetch_add(1, Ordering::Relaxed),
            description: Once::new(),
        });
        listing::enter(&endpoint);
        endpoint
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn is_unix(&self) -> bool {
        self.family == Family::Unix
    }

    /// Whether it is a connection's end or will be, and takes part in nothing else.
    pub(super) fn connects(&self) -> bool {
        self.kind != Kind::Datagram
    }

    /// A stream of the internet: TCP.
    pub(super) fn is_tcp(&self) -> bool {
        !self.is_unix() && self.kind == Kind::Stream
    }

    /// Notes the description that holds its socket.
    pub(super) fn note_description(&self, description: &Arc<Description>) {
        self.description.set(Arc::downgrade(description));
    }

    /// How many references its description has, if there is one.
    pub(super) fn references(&self) -> Option<usize> {
        self.description.get().map(Weak::strong_count)
    }

    /// The inode of its socket; 0 if it waits to be accepted.
    pub(super) fn number(&self) -> u64 {
        let description = self.description.get().and_then(Weak::upgrade);
        description.map_or(0, |description| description.inode().number())
    }

    pub(crate) fn own_address(&self) -> Arc<Address> {
        self.state.lock().own.clone()
    }

    /// ENOTCONN if there is no other side.
    pub(crate) fn peer_address(&self) -> Result<Arc<Address>, Errno> {
        let state = self.state.lock();
        // Of a connection of TCP that has failed or ended nothing is known.
        if state.connected().is_none() || (self.is_tcp() && state.ended && state.mute) {
            return Err(Errno::ENOTCONN);
        }
        Ok(state.peer.clone())
    }

    /// Who was at the other side when the connection was made, and that process's groups.
    pub(crate) fn peer_sender(&self) -> (Sender, Vec<u32>) {
        let state = self.state.lock();
        (state.peer_sender, state.peer_groups.clone())
    }

    pub(super) fn note_peer(&self, sender: Sender, groups: Vec<u32>) {
        let mut state = self.state.lock();
        state.peer_sender = sender;
        let former = core::mem::replace(&mut state.peer_groups, groups);
        drop(state);
        drop(former);
    }

    pub(crate) fn is_listening(&self) -> bool {
        matches!(self.state.lock().role, Role::Listening(_))
    }

    pub(crate) fn take_error(&self) -> Option<Errno> {
        self.state.lock().error.take()
    }

    /// Bytes that can be received: of datagrams, those of the first.
    pub(crate) fn available(&self) -> Result<usize, Errno> {
        let state = self.state.lock();
        if matches!(state.role, Role::Listening(_)) {
            return Err(Errno::EINVAL);
        }
        Ok(if self.kind == Kind::Datagram { state.incoming.first_length() } else { state.incoming.bytes() })
    }

    /// Bytes that it has sent and the other side has not received.
    pub(super) fn unreceived(&self) -> Result<usize, Errno> {
        let state = self.state.lock();
        if matches!(state.role, Role::Listening(_)) {
            return Err(Errno::EINVAL);
        }
        let peer = state.connected().and_then(Weak::upgrade);
        drop(state);
        Ok(peer.map_or(0, |peer| peer.state.lock().incoming.bytes()))
    }

    /// Tells sleepers and watchers of something that came in.
    pub(super) fn announce_arrival(&self) {
        self.arrived.wake_all();
        self.observers.announce(Readiness::READABLE);
    }

    /// Tells everybody that the connection is not what it was.
    pub(super) fn announce_change(&self) {
        self.arrived.wake_all();
        self.room.wake_all();
        self.observers.announce(Readiness::all());
    }

    /// Tells those who found no room.
    pub(super) fn tell(&self, told: Option<Told>) {
        if let Some(Told(hopeful)) = told {
            self.room.wake_all();
            for endpoint in hopeful.iter().filter_map(Weak::upgrade) {
                endpoint.observers.announce(WRITABLE);
            }
        }
    }

    /// Has a receiver drop what it waits for more room for: the bound of a queue has changed.
    pub(crate) fn bounds_changed(&self) {
        let peer = self.state.lock().connected().and_then(Weak::upgrade);
        if let Some(peer) = peer {
            let told = peer.state.lock().tell_all();
            peer.tell(Some(told));
        }
    }

    /// What can be done at once.
    pub(super) fn readiness(self: &Arc<Self>) -> Readiness {
        let state = self.state.lock();
        let mut readiness = Readiness::empty();
        if let Role::Listening(backlog) = &state.role {
            readiness.set(Readiness::READABLE, !backlog.ready.is_empty());
            readiness.set(Readiness::HANGUP, state.ended);
            return readiness;
        }
        let connecting = matches!(state.role, Role::Connecting);
        let unconnected = self.connects() && matches!(state.role, Role::Idle);
        let peer = state.connected().and_then(Weak::upgrade);
        let (ended, mute) = (state.ended, state.mute);
        readiness.set(Readiness::READABLE, !state.incoming.is_empty() || ended);
        readiness.set(Readiness::READ_HANGUP, ended);
        readiness.set(Readiness::HANGUP, (ended && mute) || unconnected);
        readiness.set(Readiness::ERROR, state.error.is_some());
        drop(state);
        let has_room = mute || peer.is_none_or(|peer| self.has_room_at(&peer));
        readiness.set(WRITABLE, has_room && !connecting);
        readiness
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.options.has(flag)
    }
}

/// Sockets have only one band, which counts as both.
pub(super) const WRITABLE: Readiness = Readiness::WRITABLE.union(Readiness::WRITE_BAND);

impl Drop for Endpoint {
    fn drop(&mut self) {
        listing::leave(self);
    }
}
