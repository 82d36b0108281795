//! What others see of an endpoint: all of it under one spin lock, which is held for a few steps.
//!
//! A sender that finds no room notes itself in the receiver's state, under the lock under which it looked (`State::refuse`); who takes something out looks there
//! under the same lock. So either the sender sees the room, or it is told.

use super::endpoint::Endpoint;
use super::incoming::Incoming;
use super::{Address, Sender, Socket};
use crate::syscall::Errno;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

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
    /// To whom, once that is known: of TCP, whose backlog it waits for.
    Connecting(Weak<Endpoint>),
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
    /// The other side of a connection of TCP has said that nothing more comes from it.
    pub(super) finished: bool,
    /// The other side of a connection of TCP is closed: what is sent to it next resets the connection.
    pub(super) deserted: bool,
    /// A connection of TCP is no more: both sides have finished, or it was reset.
    pub(super) over: bool,
    /// The socket is gone.
    pub(super) closed: bool,
    /// A connection was asked for, and the program has not heard yet what came of it.
    pub(super) unheard: bool,
    pub(super) error: Option<Errno>,
    /// A sender found no room: how much may be left in the queue when it is told. 0: nobody.
    told_below: usize,
    /// Who watches for room.
    hopeful: Vec<Weak<Endpoint>>,
}

/// Told that there may be room now, outside of the lock.
pub(super) struct Told(pub(super) Vec<Weak<Endpoint>>);

impl State {
    /// Of an endpoint that nobody has used; `unnamed` is how its family writes that it has no name.
    pub(super) fn new(unnamed: Arc<Address>) -> Self {
        Self {
            role: Role::Idle,
            incoming: Incoming::new(),
            own: unnamed.clone(),
            peer: unnamed,
            peer_sender: Sender::NOBODY,
            peer_groups: Vec::new(),
            ended: false,
            mute: false,
            finished: false,
            deserted: false,
            over: false,
            closed: false,
            unheard: false,
            error: None,
            told_below: 0,
            hopeful: Vec::new(),
        }
    }

    /// Notes that `sender` found no room, and wants to hear when not more than `below` is in the queue.
    pub(super) fn refuse(&mut self, sender: &Arc<Endpoint>, below: usize) {
        self.told_below = self.told_below.max(below.max(1));
        let is_new = |hopeful: &Vec<Weak<Endpoint>>| {
            !hopeful.iter().any(|other| other.as_ptr() == Arc::as_ptr(sender))
        };
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

    /// Whether it wants a connection to `listener`, and to no other.
    pub(super) fn connects_to(&self, listener: &Weak<Endpoint>) -> bool {
        matches!(&self.role, Role::Connecting(wanted) if wanted.ptr_eq(listener)) && !self.closed
    }

    pub(super) fn connected(&self) -> Option<&Weak<Endpoint>> {
        match &self.role {
            Role::Connected(peer) => Some(peer),
            _ => None,
        }
    }

    /// A stream of TCP is as it was before it was connected, but for its port and what it has to tell.
    pub(super) fn forget_connection(&mut self) {
        (self.ended, self.mute, self.finished) = (false, false, false);
        (self.deserted, self.over, self.unheard) = (false, false, false);
    }

    /// Why an attempt of TCP failed; the next begins anew.
    pub(super) fn failure(&mut self) -> Errno {
        let error = self.error.take().unwrap_or(Errno::ECONNABORTED);
        self.role = Role::Idle;
        self.forget_connection();
        error
    }

    /// The backlog, if a connection of AF_UNIX can go there now; None if it is full.
    pub(super) fn place_in_backlog(&mut self) -> Option<Result<&mut Backlog, Errno>> {
        let ended = self.ended;
        match &mut self.role {
            Role::Listening(backlog) if !ended => {
                (backlog.ready.len() <= backlog.most).then_some(Ok(backlog))
            }
            _ => Some(Err(Errno::ECONNREFUSED)),
        }
    }

    /// Takes the error that waits to be told.
    pub(super) fn take_error(&mut self) -> Result<(), Errno> {
        self.error.take().map_or(Ok(()), Err)
    }
}
