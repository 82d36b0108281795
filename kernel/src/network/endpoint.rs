//! One end of a connection, or of none.
//!
//! All that others see of an endpoint is its `State`. Whoever changes something there says so after it has let go of the lock: to those who sleep (`arrived`,
//! `room`) and to those who watch (`observers`).

use super::options::{Flag, Options};
use super::state::{Role, State, Told};
use super::{Address, Sender, address, listing};
use crate::files::{Description, Observers, Readiness};
use crate::sync::{Mutex, Once, SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
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
    description: Once<Weak<Description>>,
    /// Its number among all that there have been: what programs may know of it where they want to tell one from another.
    pub(crate) cookie: u64,
}

impl Endpoint {
    pub(crate) fn new(family: Family, kind: Kind) -> Arc<Self> {
        let unnamed = Arc::new(if family == Family::Unix {
            Address::Unnamed
        } else {
            Address::Internet(address::unspecified(family))
        });
        let endpoint = Arc::new(Self {
            family,
            kind,
            options: Options::new(family, kind),
            state: SpinLock::new(State::new(unnamed)),
            reading: Mutex::new(()),
            arrived: WaitQueue::new(),
            room: WaitQueue::new(),
            observers: Observers::new(),
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

    /// The description that holds its socket, if it has one yet.
    pub(super) fn description(&self) -> Option<&Weak<Description>> {
        self.description.get()
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
        // Of a connection of TCP that is over nothing is known.
        if state.connected().is_none() || state.over {
            return Err(Errno::ENOTCONN);
        }
        Ok(state.peer.clone())
    }

    /// From where the connection came that was accepted just now, even if it is over.
    pub(crate) fn origin(&self) -> Arc<Address> {
        self.state.lock().peer.clone()
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
        let connecting = matches!(state.role, Role::Connecting(_));
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
