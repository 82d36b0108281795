//! Ports of TCP and UDP, and who has them.
//!
//! One table under one spin lock, which is taken outside of the endpoints'. Sockets that were accepted are not in it: they share their listener's port and
//! are reached through their connection. There is no waiting time after a connection: nothing of it can be late.
//!
//! What comes for a port that several have goes to one of those that share it (SO_REUSEPORT), chosen by the addresses of both sides, so that a sender stays
//! with one of them as long as they are the same ones; or, of those that merely do not mind (SO_REUSEADDR), to the last.

use super::address::{is_local, source_for, unspecified};
use super::options::Flag;
use super::{Address, Endpoint, Family};
use crate::process::{credentials::CAP_NET_BIND_SERVICE, current};
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Ports that are chosen for who names none (`net.ipv4.ip_local_port_range`).
pub(crate) const EPHEMERAL: RangeInclusive<u16> = 32_768..=60_999;
/// Below this one a port wants a privilege.
const FIRST_FREE: u16 = 1024;

/// Whether it is TCP's, and the port.
type Port = (bool, u16);

static PORTS: SpinLock<BTreeMap<Port, Vec<Binding>>> = SpinLock::new(BTreeMap::new());
/// Where the search for a free port goes on.
static NEXT: AtomicUsize = AtomicUsize::new(0);

struct Binding {
    endpoint: Weak<Endpoint>,
    host: IpAddr,
    /// A socket of IPv6 that takes what is for IPv4 too.
    both: bool,
    /// Whether it gives others a part of what comes (SO_REUSEPORT).
    shares: bool,
    user: u32,
}

impl Binding {
    /// Whether what is for `host` may be for it.
    fn covers(&self, host: IpAddr) -> bool {
        self.host == host
            || (self.host.is_unspecified()
                && (self.host.is_ipv6() == host.is_ipv6() || (self.both && host.is_ipv4())))
    }

    /// Whether the two cannot have one port.
    fn excludes(&self, endpoint: &Arc<Endpoint>, other: &Binding) -> bool {
        let Some(own) = self.endpoint.upgrade() else { return false };
        if Arc::ptr_eq(&own, endpoint) || !(self.covers(other.host) || other.covers(self.host)) {
            return false;
        }
        let both = |flag| own.has(flag) && endpoint.has(flag);
        let listens = own.is_tcp() && (own.is_listening() || endpoint.is_listening());
        let shared =
            (both(Flag::ReuseAddress) && !listens) || (both(Flag::ReusePort) && self.user == other.user);
        !shared
    }
}

fn binding(endpoint: &Arc<Endpoint>, host: IpAddr) -> Binding {
    let both = endpoint.family == Family::InternetSix && !endpoint.has(Flag::SixOnly);
    let user = current().process().credentials().user.effective;
    Binding { endpoint: Arc::downgrade(endpoint), host, both, shares: endpoint.has(Flag::ReusePort), user }
}

impl Endpoint {
    /// Gives an endpoint host and port; port 0 is any that is free.
    ///
    /// # Errors
    /// EINVAL if it has a port; EADDRNOTAVAIL, EACCES, EADDRINUSE.
    pub(crate) fn bind_port(self: &Arc<Self>, wanted: SocketAddr) -> Result<(), Errno> {
        if !is_local(wanted.ip()) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        // An address of IPv4 that a socket of IPv6 was given is one that it must be able to have.
        if self.family == Family::InternetSix && wanted.ip().is_ipv4() && self.has(Flag::SixOnly) {
            return Err(Errno::EINVAL);
        }
        let privileged = current().process().credentials().has(CAP_NET_BIND_SERVICE);
        if wanted.port() != 0 && wanted.port() < FIRST_FREE && !privileged {
            return Err(Errno::EACCES);
        }
        let new = binding(self, wanted.ip());
        let mut ports = PORTS.lock();
        if self.port() != 0 || self.state.lock().connected().is_some() {
            return Err(Errno::EINVAL);
        }
        let is_free = |ports: &BTreeMap<Port, Vec<Binding>>, port: u16| {
            let holders = ports.get(&(self.is_tcp(), port));
            holders.is_none_or(|holders| !holders.iter().any(|holder| holder.excludes(self, &new)))
        };
        let port = if wanted.port() != 0 {
            Some(wanted.port()).filter(|&port| is_free(&ports, port))
        } else {
            let count = EPHEMERAL.len();
            let start = NEXT.fetch_add(1, Ordering::Relaxed);
            (0..count).map(|step| EPHEMERAL.start() + ((start + step) % count) as u16).find(|&port| {
                // Chosen ports are nobody else's, even if they could be shared.
                !ports.contains_key(&(self.is_tcp(), port)) && is_free(&ports, port)
            })
        };
        let port = port.ok_or(Errno::EADDRINUSE)?;
        ports.entry((self.is_tcp(), port)).or_default().push(new);
        self.state.lock().own = Arc::new(Address::Internet(SocketAddr::new(wanted.ip(), port)));
        Ok(())
    }

    /// Its port; 0 if it has none.
    pub(super) fn port(&self) -> u16 {
        self.own_address().internet().map_or(0, |own| own.port())
    }

    /// Has it a port if it has none yet. What is sent or connected to `to` comes from there.
    pub(super) fn ensure_port(self: &Arc<Self>, to: Option<IpAddr>) -> Result<(), Errno> {
        if self.port() == 0 {
            let any = unspecified(self.family);
            self.bind_port(to.map_or(any, |to| SocketAddr::new(source_for(to), 0)))?;
        }
        Ok(())
    }

    /// EADDRINUSE if another listens at its port.
    pub(super) fn check_listening(self: &Arc<Self>) -> Result<(), Errno> {
        let own = self.own_address().internet()?;
        let new = binding(self, own.ip());
        let ports = PORTS.lock();
        let rivals = ports.get(&(true, own.port())).into_iter().flatten();
        let taken =
            rivals.filter(|rival| rival.endpoint.upgrade().is_some_and(|endpoint| endpoint.is_listening()));
        if taken.into_iter().any(|rival| rival.excludes(self, &new)) {
            Err(Errno::EADDRINUSE)
        } else {
            Ok(())
        }
    }
}

/// Gives up the port of a socket that is closed.
pub(super) fn release(endpoint: &Endpoint) {
    let mut ports = PORTS.lock();
    let key = (endpoint.is_tcp(), endpoint.port());
    let Some(holders) = ports.get_mut(&key) else { return };
    holders.retain(|holder| !core::ptr::eq(holder.endpoint.as_ptr(), endpoint));
    if holders.is_empty() {
        ports.remove(&key);
    }
}

/// Who listens at `to`, for who connects from `from`.
///
/// # Errors
/// ECONNREFUSED if nobody does.
pub(super) fn listener(to: SocketAddr, from: SocketAddr) -> Result<Arc<Endpoint>, Errno> {
    let candidates = |endpoint: &Arc<Endpoint>| endpoint.is_listening().then_some(0);
    best(true, to, from, candidates).ok_or(Errno::ECONNREFUSED)
}

/// Whom a datagram from `from` to `to` is for: one that is connected to `from` before others.
pub(super) fn receiver(to: SocketAddr, from: SocketAddr) -> Option<Arc<Endpoint>> {
    best(false, to, from, |endpoint| {
        let state = endpoint.state.lock();
        match state.connected() {
            Some(_) => (state.peer.internet() == Ok(from)).then_some(2),
            None => Some(0),
        }
    })
}

/// The holder of a port with the best of the ranks that `rank` gives; to be bound to the very host counts one.
fn best(
    is_tcp: bool,
    to: SocketAddr,
    from: SocketAddr,
    rank: impl Fn(&Arc<Endpoint>) -> Option<u32>,
) -> Option<Arc<Endpoint>> {
    let ports = PORTS.lock();
    let holders = ports.get(&(is_tcp, to.port()))?.iter().filter(|holder| holder.covers(to.ip()));
    let mut found: Vec<(u32, bool, Arc<Endpoint>)> = holders
        .filter_map(|holder| {
            let endpoint = holder.endpoint.upgrade()?;
            Some((rank(&endpoint)? + u32::from(holder.host == to.ip()), holder.shares, endpoint))
        })
        .collect();
    drop(ports);
    let highest = found.iter().map(|(rank, ..)| *rank).max()?;
    found.retain(|(rank, ..)| *rank == highest);
    if found.last().is_some_and(|(_, shares, _)| *shares) {
        found.retain(|(_, shares, _)| *shares);
        let chosen = mixed(from, to) % found.len() as u64;
        found.truncate(chosen as usize + 1);
    }
    found.pop().map(|(.., endpoint)| endpoint)
}

/// A number for who speaks to whom, which differs in every bit for neighbours.
fn mixed(from: SocketAddr, to: SocketAddr) -> u64 {
    let bits = |host: IpAddr| match host {
        IpAddr::V4(host) => u128::from(u32::from(host)),
        IpAddr::V6(host) => u128::from(host),
    };
    let mut hash = u64::from(from.port()) << 16 | u64::from(to.port());
    for half in [from.ip(), to.ip()].map(bits).iter().flat_map(|host| [*host as u64, (*host >> 64) as u64]) {
        // Multiplying carries upwards only, so the upper half is brought down each time.
        hash = (hash ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    hash
}
