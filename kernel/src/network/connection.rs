//! How two endpoints come to know each other: pairs, listening, connecting, accepting.
//!
//! The end that the other side will accept is made by who connects, already connected, and put into the listener's backlog. From then on both can send.
//! A full backlog makes AF_UNIX wait, or fail with EAGAIN. TCP notes who asked, without waiting if the program does not want to, and whoever accepts
//! lets the next one in.

use super::address::{route, source_for, unspecified};
use super::collector::Moving;
use super::state::{Backlog, Role};
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
                state.role =
                    Role::Listening(Backlog { ready: VecDeque::new(), most, waiting: VecDeque::new() });
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
        let (accepted, next) =
            self.attempt(&self.arrived, patience, &self.options.receive_timeout, attempt)??;
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

    /// Says that it connects, if it is free to. False: it has connected already, and the program hears of that only now.
    fn claim(&self, peer: &Arc<Address>) -> Result<bool, Errno> {
        let mut state = self.state.lock();
        let unheard = state.unheard;
        match state.role {
            Role::Idle if unheard => return Err(state.failure()),
            Role::Idle => {}
            Role::Connecting(_) => return Err(Errno::EALREADY),
            Role::Connected(_) if unheard => {
                state.unheard = false;
                return Ok(false);
            }
            Role::Connected(_) => return Err(Errno::EISCONN),
            Role::Listening(_) if self.is_tcp() => return Err(Errno::EISCONN),
            Role::Listening(_) => return Err(Errno::EINVAL),
        }
        state.role = Role::Connecting(Weak::new());
        if self.is_tcp() {
            state.error = None;
            state.unheard = true;
        }
        state.peer = peer.clone();
        Ok(true)
    }

    fn give_up(&self) {
        let mut state = self.state.lock();
        (state.role, state.unheard) = (Role::Idle, false);
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
    pub(crate) fn connect_to_name(
        self: &Arc<Self>,
        listener: &Arc<Endpoint>,
        patience: Patience,
    ) -> Result<(), Errno> {
        if listener.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        let has_room = || {
            let mut state = listener.state.lock();
            state.place_in_backlog().map(|place| place.map(|_| ()))
        };
        loop {
            // Nobody claims it while they wait: who comes meanwhile waits, too, and one gets it.
            self.attempt(&listener.room, patience, &self.options.send_timeout, has_room)??;
            match self.claim(&listener.own_address()) {
                // Another thread is between here and the end of `enter_backlog`, where it does not wait.
                Err(Errno::EALREADY) => crate::task::yield_now(),
                Err(error) => return Err(error),
                Ok(_) => {
                    if self.enter_backlog(listener)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Puts the other end into the backlog of a listener of AF_UNIX; false if it is full again.
    fn enter_backlog(self: &Arc<Self>, listener: &Arc<Endpoint>) -> Result<bool, Errno> {
        let end = self.opposite(listener);
        end.note_peer(Sender::effective(), own_groups());
        let (sender, groups) = listener.peer_sender();
        self.note_peer(sender, groups);
        let mut state = listener.state.lock();
        let put = match state.place_in_backlog() {
            Some(Ok(backlog)) => {
                backlog.ready.push_back(Socket::new(end.clone()));
                Ok(true)
            }
            Some(Err(error)) => Err(error),
            None => Ok(false),
        };
        drop(state);
        if put != Ok(true) {
            self.give_up();
            return put;
        }
        self.state.lock().role = Role::Connected(Arc::downgrade(&end));
        listener.arrived.wake_one();
        listener.observers.announce(crate::files::Readiness::READABLE);
        Ok(true)
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
        let unfinished = match self.claim(&Arc::new(Address::Internet(to))) {
            Ok(true) => {
                if let Err(error) = self.ensure_port(Some(to.ip())) {
                    self.give_up();
                    return Err(error);
                }
                let own = self.settle_host(to);
                match ports::listener(to, own) {
                    Ok(listener) => self.begin(&listener),
                    Err(error) => self.fail(&Weak::new(), error),
                }
                Errno::EINPROGRESS
            }
            Ok(false) => return Ok(()),
            Err(Errno::EALREADY) if patience == Patience::Wait => Errno::EALREADY,
            Err(error) => return Err(error),
        };
        if patience == Patience::Refuse {
            return Err(unfinished);
        }
        let made = || {
            let mut state = self.state.lock();
            match state.role {
                Role::Connecting(_) => None,
                Role::Connected(_) if state.error.is_none() => {
                    state.unheard = false;
                    Some(Ok(()))
                }
                _ => Some(Err(state.failure())),
            }
        };
        match self.attempt(&self.arrived, patience, &self.options.send_timeout, made) {
            Err(Errno::EAGAIN) => Err(unfinished),
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

    /// Who is connected has a host, too. The whole address.
    fn settle_host(&self, to: SocketAddr) -> SocketAddr {
        let mut state = self.state.lock();
        let mut own = state.own.internet().unwrap_or(unspecified(self.family));
        if own.ip().is_unspecified() {
            own.set_ip(source_for(to.ip()));
            state.own = Arc::new(Address::Internet(own));
        }
        own
    }

    /// The attempt of TCP to reach `listener` has failed, unless it is at another by now.
    pub(super) fn fail(&self, listener: &Weak<Endpoint>, error: Errno) {
        let mut state = self.state.lock();
        if !state.connects_to(listener) {
            return;
        }
        state.role = Role::Idle;
        state.error = Some(error);
        (state.ended, state.mute) = (true, true);
        drop(state);
        self.announce_change();
    }

    /// Turns to a listener.
    fn begin(self: &Arc<Self>, listener: &Arc<Endpoint>) {
        let mut state = self.state.lock();
        if state.connects_to(&Weak::new()) {
            state.role = Role::Connecting(Arc::downgrade(listener));
            drop(state);
            self.knock(listener);
        }
    }

    /// Asks `listener` for a connection; if its backlog is full, when there is room.
    fn knock(self: &Arc<Self>, listener: &Arc<Endpoint>) {
        let end = self.opposite(listener);
        let mut state = listener.state.lock();
        let refused = match &mut state.role {
            Role::Listening(backlog) if backlog.ready.len() > backlog.most => {
                backlog
                    .waiting
                    .retain(|other| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(self));
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
        let at = Arc::downgrade(listener);
        if refused {
            return self.fail(&at, Errno::ECONNREFUSED);
        }
        let mut state = self.state.lock();
        // It may have been closed, or have turned to another, while somebody's `accept` let it in.
        let still = state.connects_to(&at);
        if still {
            state.role = Role::Connected(Arc::downgrade(&end));
        }
        drop(state);
        if still {
            self.announce_change();
        } else {
            end.lose_peer(self, true);
        }
        listener.arrived.wake_one();
        listener.observers.announce(crate::files::Readiness::READABLE);
    }

    /// There is room at `listener` for one that waited, if it still does.
    fn knock_again(self: &Arc<Self>, listener: &Arc<Endpoint>) {
        let waits = self.state.lock().connects_to(&Arc::downgrade(listener));
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
