//! How two endpoints come to know each other: pairs, listening, connecting, accepting.
//!
//! The end that the other side will accept is made by who connects, already connected, and put into the listener's backlog. From then on both can send.
//! A full backlog makes AF_UNIX wait, or fail with EAGAIN. TCP notes who asked, without waiting if the program does not want to, and whoever accepts
//! lets the next one in.

use super::address::{route, source_for};
use super::endpoint::{Backlog, Role};
use super::rights::Moving;
use super::{Address, Endpoint, Family, Kind, Sender, Socket, ports};
use crate::files::{Patience, waiting};
use crate::process::current;
use crate::syscall::Errno;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::SocketAddr;

/// The longest backlog (`net.core.somaxconn`).
pub(crate) const MOST_BACKLOG: usize = 4096;

/// A socket that somebody asked for, and what keeps it from being taken for garbage until it has a description.
pub(crate) struct Accepted {
    pub(crate) socket: Socket,
    moving: Moving,
}

impl Accepted {
    /// The two apart; the second is to be dropped when the socket has a description.
    pub(crate) fn parts(self) -> (Socket, Moving) {
        (self.socket, self.moving)
    }
}

fn own_groups() -> Vec<u32> {
    current().process().credentials().groups
}

impl Endpoint {
    /// Two endpoints of AF_UNIX, connected to each other.
    pub(crate) fn pair(kind: Kind) -> [Arc<Self>; 2] {
        let [one, other] = [Self::new(Family::Unix, kind), Self::new(Family::Unix, kind)];
        for (own, peer) in [(&one, &other), (&other, &one)] {
            own.state.lock().role = Role::Connected(Arc::downgrade(peer));
            own.note_peer(Sender::effective(), own_groups());
        }
        [one, other]
    }

    /// Lets others connect; `most` of them, and one, may wait to be accepted.
    ///
    /// # Errors
    /// EOPNOTSUPP for datagrams, EINVAL without a name or with a connection, EADDRINUSE.
    pub(crate) fn listen(self: &Arc<Self>, most: i32) -> Result<(), Errno> {
        if !self.connects() {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.is_tcp() {
            let role_allows = matches!(self.state.lock().role, Role::Idle | Role::Listening(_));
            if !role_allows {
                return Err(Errno::EINVAL);
            }
            self.ensure_port(None)?;
            if !self.is_listening() {
                self.check_listening()?;
            }
        } else if *self.own_address() == Address::Unnamed {
            return Err(Errno::EINVAL);
        }
        self.note_peer(Sender::effective(), own_groups());
        let most = usize::try_from(most).map_or(MOST_BACKLOG, |most| most.min(MOST_BACKLOG));
        let mut state = self.state.lock();
        match &mut state.role {
            Role::Listening(backlog) => backlog.most = most,
            Role::Idle => {
                state.ended = false;
                state.role = Role::Listening(Backlog { ready: VecDeque::new(), most, waiting: VecDeque::new() });
            }
            _ => return Err(Errno::EINVAL),
        }
        drop(state);
        // There may be room now for who waits.
        self.room.wake_all();
        Ok(())
    }

    /// Takes the next connection.
    ///
    /// # Errors
    /// EOPNOTSUPP for datagrams, EINVAL if it does not listen, EAGAIN, or a restart code.
    pub(crate) fn accept(self: &Arc<Self>, patience: Patience) -> Result<Accepted, Errno> {
        if !self.connects() {
            return Err(Errno::EOPNOTSUPP);
        }
        let attempt = || {
            let mut state = self.state.lock();
            let ended = state.ended;
            let Role::Listening(backlog) = &mut state.role else { return Some(Err(Errno::EINVAL)) };
            if backlog.ready.is_empty() {
                return ended.then_some(Err(Errno::EINVAL));
            }
            let moving = Moving::begin();
            let socket = backlog.ready.pop_front()?;
            // Those that have gone wait no longer.
            let next = core::iter::from_fn(|| backlog.waiting.pop_front()).find_map(|next| next.upgrade());
            Some(Ok((Accepted { socket, moving }, next)))
        };
        let (accepted, next) = self.attempt(&self.arrived, patience, &self.options.receive_timeout, attempt)??;
        self.room.wake_all();
        if let Some(next) = next {
            next.knock_again(self);
        }
        if self.has_ready() {
            // A choice that met this thread while it took another connection was another thread's.
            self.arrived.wake_one();
        }
        Ok(accepted)
    }

    fn has_ready(&self) -> bool {
        matches!(&self.state.lock().role, Role::Listening(backlog) if !backlog.ready.is_empty())
    }

    /// Says that it connects, if it is free to.
    fn claim(&self, peer: &Arc<Address>) -> Result<(), Errno> {
        let mut state = self.state.lock();
        match state.role {
            Role::Idle => {}
            Role::Connecting => return Err(Errno::EALREADY),
            Role::Connected(_) => return Err(Errno::EISCONN),
            Role::Listening(_) if self.is_tcp() => return Err(Errno::EISCONN),
            Role::Listening(_) => return Err(Errno::EINVAL),
        }
        state.take_error()?;
        state.role = Role::Connecting;
        // An attempt that failed may have left them.
        (state.ended, state.mute) = (false, false);
        state.peer = peer.clone();
        Ok(())
    }

    fn give_up(&self) {
        self.state.lock().role = Role::Idle;
    }

    /// The end that the other side will accept: connected to this one.
    fn opposite(self: &Arc<Self>, listener: &Arc<Endpoint>) -> Arc<Endpoint> {
        let end = Self::new(listener.family, listener.kind);
        end.options.inherit(&listener.options);
        let (own, peer) = {
            let state = self.state.lock();
            (state.own.clone(), state.peer.clone())
        };
        let mut state = end.state.lock();
        state.role = Role::Connected(Arc::downgrade(self));
        state.own = if listener.is_unix() { listener.own_address() } else { peer };
        state.peer = own;
        drop(state);
        end
    }

    /// Connects a stream or sequenced packets of AF_UNIX to `listener`.
    ///
    /// # Errors
    /// EPROTOTYPE, ECONNREFUSED, EISCONN, EINVAL, EAGAIN or a restart code.
    pub(crate) fn connect_to_name(self: &Arc<Self>, listener: &Arc<Endpoint>, patience: Patience) -> Result<(), Errno> {
        if listener.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        self.claim(&listener.own_address())?;
        let end = self.opposite(listener);
        end.note_peer(Sender::effective(), own_groups());
        let attempt = || {
            let mut state = listener.state.lock();
            let ended = state.ended;
            match &mut state.role {
                Role::Listening(_) if ended => Some(Err(Errno::ECONNREFUSED)),
                Role::Listening(backlog) if backlog.ready.len() > backlog.most => None,
                Role::Listening(backlog) => {
                    backlog.ready.push_back(Socket::new(end.clone()));
                    Some(Ok(()))
                }
                _ => Some(Err(Errno::ECONNREFUSED)),
            }
        };
        let put = self.attempt(&listener.room, patience, &self.options.send_timeout, attempt);
        if let Err(error) = put.and_then(|put| put) {
            self.give_up();
            return Err(error);
        }
        let (sender, groups) = listener.peer_sender();
        self.note_peer(sender, groups);
        self.state.lock().role = Role::Connected(Arc::downgrade(&end));
        listener.arrived.wake_one();
        listener.observers.announce(crate::files::Readiness::READABLE);
        Ok(())
    }

    /// Has datagrams of AF_UNIX go to `peer`, or to nobody in particular.
    ///
    /// # Errors
    /// EPROTOTYPE; EPERM if the other listens to somebody else only.
    pub(crate) fn connect_datagrams(self: &Arc<Self>, peer: Option<&Arc<Endpoint>>) -> Result<(), Errno> {
        let Some(peer) = peer else {
            self.state.lock().role = Role::Idle;
            return Ok(());
        };
        if peer.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if !peer.accepts_from(self) {
            return Err(Errno::EPERM);
        }
        let address = peer.own_address();
        let mut state = self.state.lock();
        state.role = Role::Connected(Arc::downgrade(peer));
        state.peer = address;
        drop(state);
        self.announce_change();
        Ok(())
    }

    /// Whether its datagrams may come from `sender`: it is connected to it or to nobody.
    pub(super) fn accepts_from(&self, sender: &Arc<Endpoint>) -> bool {
        self.state.lock().connected().is_none_or(|peer| core::ptr::eq(peer.as_ptr(), Arc::as_ptr(sender)))
    }

    /// Connects to host and port.
    ///
    /// # Errors
    /// ENETUNREACH, ECONNREFUSED, EISCONN, EALREADY, EINPROGRESS or a restart code.
    pub(crate) fn connect_to_port(self: &Arc<Self>, to: SocketAddr, patience: Patience) -> Result<(), Errno> {
        let to = route(to)?;
        if self.family == Family::Internet && to.is_ipv6() {
            return Err(Errno::EAFNOSUPPORT);
        }
        if self.kind == Kind::Datagram {
            return self.connect_datagrams_to_port(to);
        }
        let heard = core::mem::take(&mut self.state.lock().unheard);
        match self.claim(&Arc::new(Address::Internet(to))) {
            Ok(()) => {
                if let Err(error) = self.ensure_port(Some(to.ip())) {
                    self.give_up();
                    return Err(error);
                }
                self.settle_host(to);
                match ports::listener(to) {
                    Ok(listener) => self.knock(&listener),
                    Err(error) => self.fail(error),
                }
            }
            // Asked for without waiting, and made meanwhile: now the program has heard of it.
            Err(Errno::EISCONN) if heard => return Ok(()),
            Err(Errno::EALREADY) if patience == Patience::Wait => {}
            Err(error) => return Err(error),
        }
        if patience == Patience::Refuse {
            self.state.lock().unheard = true;
            return Err(Errno::EINPROGRESS);
        }
        let made = || {
            let mut state = self.state.lock();
            match state.role {
                Role::Connecting => None,
                _ => Some(state.take_error()),
            }
        };
        match self.attempt(&self.arrived, patience, &self.options.send_timeout, made) {
            Err(Errno::EAGAIN) => Err(Errno::EINPROGRESS),
            result => result?,
        }
    }

    fn connect_datagrams_to_port(self: &Arc<Self>, to: SocketAddr) -> Result<(), Errno> {
        self.ensure_port(Some(to.ip()))?;
        self.settle_host(to);
        let mut state = self.state.lock();
        state.role = Role::Connected(Weak::new());
        state.peer = Arc::new(Address::Internet(to));
        drop(state);
        self.announce_change();
        Ok(())
    }

    /// Who is connected has a host, too.
    fn settle_host(&self, to: SocketAddr) {
        let mut state = self.state.lock();
        if let Ok(own) = state.own.internet()
            && own.ip().is_unspecified()
        {
            state.own = Arc::new(Address::Internet(SocketAddr::new(source_for(to.ip()), own.port())));
        }
    }

    /// An attempt of TCP has failed.
    pub(super) fn fail(&self, error: Errno) {
        let mut state = self.state.lock();
        state.role = Role::Idle;
        state.error = Some(error);
        (state.ended, state.mute) = (true, true);
        drop(state);
        self.announce_change();
    }

    /// Asks `listener` for a connection; if its backlog is full, when there is room.
    fn knock(self: &Arc<Self>, listener: &Arc<Endpoint>) {
        let end = self.opposite(listener);
        let mut state = listener.state.lock();
        let refused = match &mut state.role {
            Role::Listening(backlog) if backlog.ready.len() > backlog.most => {
                backlog.waiting.retain(|other| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(self));
                backlog.waiting.push_back(Arc::downgrade(self));
                return;
            }
            Role::Listening(backlog) => {
                backlog.ready.push_back(Socket::new(end.clone()));
                false
            }
            _ => true,
        };
        drop(state);
        if refused {
            return self.fail(Errno::ECONNREFUSED);
        }
        let mut state = self.state.lock();
        // It may have been closed while another's `accept` let it in.
        let still = matches!(state.role, Role::Connecting) && !state.closed;
        if still {
            state.role = Role::Connected(Arc::downgrade(&end));
        }
        drop(state);
        if still {
            self.announce_change();
        } else {
            end.lose_peer(true);
        }
        listener.arrived.wake_one();
        listener.observers.announce(crate::files::Readiness::READABLE);
    }

    /// There is room at `listener` for one that waited, if it still does.
    fn knock_again(self: &Arc<Self>, listener: &Arc<Endpoint>) {
        let waits = {
            let state = self.state.lock();
            matches!(state.role, Role::Connecting) && !state.closed
        };
        if waits {
            self.knock(listener);
        }
    }

    /// Tries at once, then as long as the program wants to wait.
    pub(super) fn attempt<R>(
        &self,
        queue: &crate::sync::WaitQueue,
        patience: Patience,
        timeout: &core::sync::atomic::AtomicU64,
        attempt: impl FnMut() -> Option<R>,
    ) -> Result<R, Errno> {
        let timeout = timeout.load(core::sync::atomic::Ordering::Relaxed);
        let until = (timeout != 0).then(|| crate::time::now().saturating_add(timeout));
        waiting::attempt_until(queue, patience, until, attempt).map_err(|error| match error {
            Errno::ETIMEDOUT => Errno::EAGAIN,
            // With a time limit it cannot be begun again.
            Errno::ERESTARTSYS if until.is_some() => Errno::EINTR,
            error => error,
        })
    }
}
