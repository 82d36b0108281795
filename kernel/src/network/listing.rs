//! All endpoints there are, for `/proc/net`.

use super::endpoint::Endpoint;
use super::state::Role;
use super::{Address, Family};
use crate::sync::SpinLock;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};

static ALL: SpinLock<BTreeMap<usize, Weak<Endpoint>>> = SpinLock::new(BTreeMap::new());

pub(super) fn enter(endpoint: &Arc<Endpoint>) {
    ALL.lock().insert(Arc::as_ptr(endpoint).addr(), Arc::downgrade(endpoint));
}

pub(super) fn leave(endpoint: &Endpoint) {
    let key = core::ptr::from_ref(endpoint).addr();
    let left = ALL.lock().remove(&key);
    drop(left);
}

fn all(wanted: impl Fn(&Endpoint) -> bool) -> Vec<Arc<Endpoint>> {
    let endpoints: Vec<_> = ALL.lock().values().filter_map(Weak::upgrade).collect();
    endpoints.into_iter().filter(|endpoint| wanted(endpoint)).collect()
}

fn all_unix() -> Vec<Arc<Endpoint>> {
    all(Endpoint::is_unix)
}

impl Endpoint {
    /// Its state in the numbers of TCP.
    pub(crate) fn tcp_status(&self) -> u8 {
        let state = self.state.lock();
        match state.role {
            Role::Listening(_) => 10,
            Role::Connecting(_) => 2,
            Role::Connected(_) if !self.is_tcp() => 1,
            Role::Connected(_) if state.over => 7,
            Role::Connected(_) => match (state.finished, state.mute) {
                (false, false) => 1,
                (false, true) => 5,
                (true, _) => 8,
            },
            Role::Idle => 7,
        }
    }
}

/// `/proc/net/unix`.
pub(crate) fn unix_table() -> Vec<u8> {
    let mut text = String::from("Num       RefCount Protocol Flags    Type St Inode Path\n");
    for endpoint in all_unix() {
        let state = endpoint.state.lock();
        let (flags, shown) = match state.role {
            Role::Listening(_) => (0x1_0000, 1),
            Role::Connected(_) => (0, 3),
            Role::Connecting(_) => (0, 2),
            Role::Idle => (0, 1),
        };
        let own = state.own.clone();
        drop(state);
        let name = match &*own {
            Address::Path(path) => format!(" {}", String::from_utf8_lossy(path)),
            Address::Abstract(name) => format!(" @{}", String::from_utf8_lossy(name)),
            _ => String::new(),
        };
        let (kind, number) = (endpoint.kind.number(), endpoint.number());
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "0000000000000000: 00000002 00000000 {flags:08X} {kind:04X} {shown:02X} {number:5}{name}"
        );
    }
    text.into_bytes()
}

/// `/proc/net/tcp` and its kin.
pub(crate) fn internet_table(family: Family, is_tcp: bool) -> Vec<u8> {
    let mut text = String::from(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
    );
    let listed =
        all(|endpoint| endpoint.family == family && endpoint.is_tcp() == is_tcp && endpoint.port() != 0);
    for (line, endpoint) in listed.iter().enumerate() {
        let status = endpoint.tcp_status();
        let state = endpoint.state.lock();
        let connected = state.connected().is_some();
        let (own, peer, bytes) = (state.own.clone(), state.peer.clone(), state.incoming.bytes());
        drop(state);
        let peer = if connected { &peer } else { &Arc::new(Address::Unnamed) };
        let (own, peer) = (shown(family, &own), shown(family, peer));
        let number = endpoint.number();
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{line:4}: {own} {peer} {status:02X} 00000000:{bytes:08X} 00:00000000 00000000     0        0 {number} 1 0000000000000000 100 0 0 10 0"
        );
    }
    text.into_bytes()
}

/// Host and port in hexadecimal; the host in words of the machine.
fn shown(family: Family, address: &Address) -> String {
    let address = address.internet().unwrap_or_else(|_| super::address::unspecified(family));
    let SocketAddr::V4(_) = address else { return shown_six(address) };
    match (family, address.ip()) {
        (Family::Internet, IpAddr::V4(host)) => {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(host.octets()), address.port())
        }
        _ => shown_six(address),
    }
}

fn shown_six(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(host) => host.to_ipv6_mapped().octets(),
        IpAddr::V6(host) => host.octets(),
    };
    let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let mut text: String = words.map(|word| format!("{word:08X}")).collect();
    let _ = write!(text, ":{:04X}", address.port());
    text
}
