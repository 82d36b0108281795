//! How a connection ends: shut down in one direction or both, closed, reset.
//!
//! Closing takes everything out of the state under its lock and drops it afterwards; the other side is told last. It does not wait for anything.

use super::incoming::Incoming;
use super::state::Role;
use super::{Address, Endpoint, collector, names, ports};
use crate::syscall::Errno;
use alloc::sync::{Arc, Weak};

impl Endpoint {
    /// Ends receiving, sending or both, for good.
    ///
    /// # Errors
    /// ENOTCONN if there is no connection, where AF_INET minds: it is shut down nevertheless, and who waits hears of it.
    pub(crate) fn shut_down(self: &Arc<Self>, receiving: bool, sending: bool) -> Result<(), Errno> {
        let mut state = self.state.lock();
        match state.role {
            Role::Listening(_) if self.is_tcp() => {
                drop(state);
                if receiving {
                    self.stop_listening();
                }
                return Ok(());
            }
            // It is no longer wanted.
            Role::Connecting(_) if self.is_tcp() => {
                drop(state);
                self.disconnect();
                return Ok(());
            }
            _ => {}
        }
        let is_connected = state.connected().is_some() && !state.over;
        state.ended |= receiving;
        state.mute |= sending;
        state.over |= self.is_tcp() && state.finished && state.mute;
        let peer = state.connected().and_then(Weak::upgrade).filter(|_| is_connected && self.connects());
        drop(state);
        if let Some(peer) = peer {
            let mut state = peer.state.lock();
            state.ended |= sending;
            if self.is_tcp() {
                // The other side does not hear that nobody wants to read.
                state.finished |= sending;
                state.over |= state.finished && state.mute;
            } else {
                state.mute |= receiving;
            }
            drop(state);
            peer.announce_change();
        }
        self.announce_change();
        if is_connected || self.is_unix() { Ok(()) } else { Err(Errno::ENOTCONN) }
    }

    fn stop_listening(self: &Arc<Self>) {
        let role = core::mem::replace(&mut self.state.lock().role, Role::Idle);
        self.refuse_all(role);
        self.announce_change();
    }

    /// The other side is gone. With `reset`, what was sent to it is lost.
    ///
    /// Of a connection of TCP whose other side had finished before, a reset says only that writing is no use (EPIPE).
    pub(super) fn lose_peer(&self, peer: &Endpoint, reset: bool) {
        let mut state = self.state.lock();
        let is_ours = match &state.role {
            Role::Connected(own) => core::ptr::eq(own.as_ptr(), peer),
            // It was accepted, used and closed before this side has noted that it is connected.
            Role::Connecting(_) => true,
            Role::Idle | Role::Listening(_) => false,
        };
        if state.over || !is_ours {
            return;
        }
        state.ended = true;
        state.deserted = true;
        state.mute |= self.is_unix() || reset;
        if reset {
            state.error = Some(if state.finished { Errno::EPIPE } else { Errno::ECONNRESET });
        }
        if self.is_tcp() {
            state.finished |= !reset;
            state.over = state.mute;
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
        let over = state.over;
        let role = core::mem::replace(&mut state.role, Role::Idle);
        let incoming = core::mem::replace(&mut state.incoming, Incoming::new());
        (state.closed, state.ended, state.mute) = (true, true, true);
        let told = state.tell_all();
        drop(state);
        let at_once = self.is_tcp() && self.options.linger() == Some(0);
        if let Role::Connected(peer) = &role
            && self.connects()
            && !over
            && let Some(peer) = peer.upgrade()
        {
            peer.lose_peer(self, lost || unaccepted || at_once);
        }
        self.refuse_all(role);
        self.tell(Some(told));
        self.announce_change();
        drop(incoming);
        if self.is_unix() {
            collector::pass_by();
        }
    }

    /// Gives up a connection of TCP or UDP, or the attempt at one (a `connect` to no family).
    pub(crate) fn disconnect(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let role = core::mem::replace(&mut state.role, Role::Idle);
        let incoming = self.is_tcp().then(|| core::mem::take(&mut state.incoming));
        let lost = matches!(role, Role::Connected(_) | Role::Connecting(_)) && !state.over;
        if self.is_tcp() {
            if lost {
                state.error = Some(Errno::ECONNRESET);
            }
            state.forget_connection();
        }
        drop(state);
        if let Role::Connected(peer) = &role
            && lost
            && let Some(peer) = peer.upgrade()
        {
            peer.lose_peer(self, true);
        }
        self.refuse_all(role);
        self.announce_change();
        drop(incoming);
    }

    /// The listener is gone: who waits in its backlog is reset, who waited for it is refused.
    fn refuse_all(self: &Arc<Self>, role: Role) {
        let Role::Listening(backlog) = role else { return };
        for socket in &backlog.ready {
            socket.endpoint().close(true);
        }
        let listener = Arc::downgrade(self);
        for endpoint in backlog.waiting.iter().filter_map(Weak::upgrade) {
            endpoint.fail(&listener, Errno::ECONNREFUSED);
        }
    }
}
