//! How a connection ends: shut down in one direction or both, closed, reset.
//!
//! Closing takes everything out of the state under its lock and drops it afterwards; the other side is told last. It does not wait for anything.

use super::endpoint::{Kind, Role};
use super::incoming::Incoming;
use super::{Address, Endpoint, names, ports, rights};
use crate::syscall::Errno;
use alloc::sync::{Arc, Weak};

impl Endpoint {
    /// Ends receiving, sending or both, for good.
    ///
    /// # Errors
    /// ENOTCONN if there is no connection, where AF_INET minds.
    pub(crate) fn shut_down(self: &Arc<Self>, receiving: bool, sending: bool) -> Result<(), Errno> {
        let mut state = self.state.lock();
        let listens = matches!(state.role, Role::Listening(_));
        if !self.is_unix() && !listens && state.connected().is_none() {
            return Err(Errno::ENOTCONN);
        }
        if listens && self.is_tcp() {
            drop(state);
            if receiving {
                self.stop_listening();
            }
            return Ok(());
        }
        state.ended |= receiving;
        state.mute |= sending;
        let peer = state.connected().and_then(Weak::upgrade);
        drop(state);
        if self.connects()
            && let Some(peer) = peer
        {
            let mut state = peer.state.lock();
            state.ended |= sending;
            // With TCP the other side does not hear that nobody wants to read.
            state.mute |= receiving && self.is_unix();
            drop(state);
            peer.announce_change();
        }
        self.announce_change();
        Ok(())
    }

    fn stop_listening(self: &Arc<Self>) {
        let role = core::mem::replace(&mut self.state.lock().role, Role::Idle);
        refuse_all(role);
        self.announce_change();
    }

    /// The other side is gone. With `reset`, what was sent to it is lost.
    pub(super) fn lose_peer(&self, reset: bool) {
        let mut state = self.state.lock();
        state.ended = true;
        state.deserted = true;
        state.mute |= self.is_unix() || reset;
        if reset {
            state.error = Some(Errno::ECONNRESET);
        }
        drop(state);
        self.announce_change();
    }

    /// The socket is dropped. A connection that nobody has accepted is reset.
    pub(super) fn close(self: &Arc<Self>, unaccepted: bool) {
        match &*self.own_address() {
            Address::Abstract(name) => names::release(self, name),
            Address::Internet(_) => ports::release(self),
            _ => {}
        }
        let mut state = self.state.lock();
        let lost = !state.incoming.is_empty();
        let role = core::mem::replace(&mut state.role, Role::Idle);
        let incoming = core::mem::replace(&mut state.incoming, Incoming::new());
        (state.closed, state.ended, state.mute) = (true, true, true);
        let told = state.tell_all();
        drop(state);
        let at_once = self.is_tcp() && self.options.linger() == Some(0);
        if let Role::Connected(peer) = &role
            && self.connects()
            && let Some(peer) = peer.upgrade()
        {
            peer.lose_peer(lost || unaccepted || at_once);
        }
        refuse_all(role);
        self.tell(Some(told));
        self.announce_change();
        drop(incoming);
        if self.is_unix() {
            rights::collect_if_any();
        }
    }

    /// Gives up a connection of TCP or UDP (a `connect` to no family).
    pub(crate) fn disconnect(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let role = core::mem::replace(&mut state.role, Role::Idle);
        let incoming = (self.kind == Kind::Stream).then(|| core::mem::take(&mut state.incoming));
        (state.ended, state.mute, state.deserted, state.unheard) = (false, false, false, false);
        drop(state);
        if let Role::Connected(peer) = &role
            && let Some(peer) = peer.upgrade()
        {
            peer.lose_peer(true);
        }
        refuse_all(role);
        self.announce_change();
        drop(incoming);
    }
}

/// A listener is gone: who waits in its backlog is reset, who waited for it is refused.
fn refuse_all(role: Role) {
    let Role::Listening(backlog) = role else { return };
    for socket in &backlog.ready {
        socket.endpoint().close(true);
    }
    for endpoint in backlog.waiting.iter().filter_map(Weak::upgrade) {
        let waits = matches!(endpoint.state.lock().role, Role::Connecting);
        if waits {
            endpoint.fail(Errno::ECONNREFUSED);
        }
    }
}
