//! What `setsockopt` sets.
//!
//! Some options mean something here: those of `Flag`, the sizes of the queues, the timeouts, lingering. The rest change how packets look on a wire. They are
//! accepted in Linux's bounds and remembered (`remembered`), because programs set them without asking whether there is a wire.

use super::{Family, Kind};
use crate::sync::SpinLock;
use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use linux_raw_sys::net as abi;

/// Options that are on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Flag {
    ReuseAddress = 1,
    ReusePort = 2,
    PassCredentials = 4,
    /// Of IPv6: no addresses of IPv4 besides.
    SixOnly = 8,
}

/// What a queue holds at first (`net.core.wmem_default`).
const UNIX_BUFFER: usize = 212_992;
const TCP_SEND_BUFFER: usize = 87_040;
const TCP_RECEIVE_BUFFER: usize = 131_072;
const LEAST_SEND_BUFFER: usize = 4_608;
const LEAST_RECEIVE_BUFFER: usize = 2_304;
/// No lingering was asked for.
const NO_LINGER: i64 = -1;

pub(crate) struct Options {
    flags: AtomicU32,
    send_buffer: AtomicUsize,
    receive_buffer: AtomicUsize,
    /// Nanoseconds; 0 is for ever.
    pub(crate) send_timeout: AtomicU64,
    pub(crate) receive_timeout: AtomicU64,
    /// Seconds, or `NO_LINGER`.
    linger: AtomicI64,
    numbers: SpinLock<BTreeMap<(u32, u32), i32>>,
}

impl Options {
    /// The most that a program may ask for, before it is doubled (`net.core.wmem_max`).
    pub(crate) const MOST_BUFFER: usize = 212_992;

    pub(super) fn new(family: Family, kind: Kind) -> Self {
        let is_tcp = family != Family::Unix && kind == Kind::Stream;
        let (send, receive) = if is_tcp { (TCP_SEND_BUFFER, TCP_RECEIVE_BUFFER) } else { (UNIX_BUFFER, UNIX_BUFFER) };
        Self {
            flags: AtomicU32::new(0),
            send_buffer: AtomicUsize::new(send),
            receive_buffer: AtomicUsize::new(receive),
            send_timeout: AtomicU64::new(0),
            receive_timeout: AtomicU64::new(0),
            linger: AtomicI64::new(NO_LINGER),
            numbers: SpinLock::new(BTreeMap::new()),
        }
    }

    /// An accepted socket has what its listener has.
    pub(super) fn inherit(&self, from: &Self) {
        self.flags.store(from.flags.load(Ordering::Relaxed), Ordering::Relaxed);
        self.send_buffer.store(from.send_buffer(), Ordering::Relaxed);
        self.receive_buffer.store(from.receive_buffer(), Ordering::Relaxed);
        self.send_timeout.store(from.send_timeout.load(Ordering::Relaxed), Ordering::Relaxed);
        self.receive_timeout.store(from.receive_timeout.load(Ordering::Relaxed), Ordering::Relaxed);
        self.linger.store(from.linger.load(Ordering::Relaxed), Ordering::Relaxed);
        let numbers = from.numbers.lock().clone();
        *self.numbers.lock() = numbers;
    }

    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags.load(Ordering::Relaxed) & flag as u32 != 0
    }

    pub(crate) fn set(&self, flag: Flag, on: bool) {
        if on {
            self.flags.fetch_or(flag as u32, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!(flag as u32), Ordering::Relaxed);
        }
    }

    pub(crate) fn send_buffer(&self) -> usize {
        self.send_buffer.load(Ordering::Relaxed)
    }

    pub(crate) fn receive_buffer(&self) -> usize {
        self.receive_buffer.load(Ordering::Relaxed)
    }

    /// Sets the size to twice `wanted`, as Linux does, within its bounds; `beyond` for who may go past the upper one.
    pub(crate) fn set_send_buffer(&self, wanted: u32, beyond: bool) {
        self.send_buffer.store(doubled(wanted, beyond).max(LEAST_SEND_BUFFER), Ordering::Relaxed);
    }

    /// See [`Options::set_send_buffer`].
    pub(crate) fn set_receive_buffer(&self, wanted: u32, beyond: bool) {
        self.receive_buffer.store(doubled(wanted, beyond).max(LEAST_RECEIVE_BUFFER), Ordering::Relaxed);
    }

    /// Seconds to linger when the socket is closed.
    pub(crate) fn linger(&self) -> Option<i32> {
        i32::try_from(self.linger.load(Ordering::Relaxed)).ok().filter(|&seconds| i64::from(seconds) != NO_LINGER)
    }

    pub(crate) fn set_linger(&self, seconds: Option<i32>) {
        self.linger.store(seconds.map_or(NO_LINGER, i64::from), Ordering::Relaxed);
    }

    /// An option that is only remembered.
    pub(crate) fn number(&self, option: &Remembered) -> i32 {
        self.numbers.lock().get(&(option.level, option.name)).copied().unwrap_or(option.default)
    }

    /// See [`Options::number`]. False if the value is out of bounds.
    pub(crate) fn set_number(&self, option: &Remembered, value: i32) -> bool {
        let value = if option.is_switch() { i32::from(value != 0) } else { value };
        let fits = (option.least..=option.most).contains(&value);
        if fits {
            self.numbers.lock().insert((option.level, option.name), value);
        }
        fits
    }
}

fn doubled(wanted: u32, beyond: bool) -> usize {
    let wanted = wanted as usize;
    let most = if beyond { i32::MAX as usize / 2 } else { Options::MOST_BUFFER };
    wanted.min(most) * 2
}

/// An option without effect here.
pub(crate) struct Remembered {
    level: u32,
    name: u32,
    default: i32,
    least: i32,
    most: i32,
}

impl Remembered {
    /// On or off, whatever number says so.
    fn is_switch(&self) -> bool {
        self.least == 0 && self.most == 1
    }
}

const TCP: u32 = 6;
const UDP: u32 = 17;
const IP: u32 = 0;
const SIX: u32 = 41;

const fn switch(level: u32, name: u32) -> Remembered {
    Remembered { level, name, default: 0, least: 0, most: 1 }
}

const fn number(level: u32, name: u32, default: i32, least: i32, most: i32) -> Remembered {
    Remembered { level, name, default, least, most }
}

static REMEMBERED: [Remembered; 42] = [
    switch(abi::SOL_SOCKET, 5 /* DONTROUTE */),
    switch(abi::SOL_SOCKET, 6 /* BROADCAST */),
    switch(abi::SOL_SOCKET, 9 /* KEEPALIVE */),
    switch(abi::SOL_SOCKET, 10 /* OOBINLINE */),
    switch(abi::SOL_SOCKET, 40 /* RXQ_OVFL */),
    switch(abi::SOL_SOCKET, 60 /* ZEROCOPY */),
    number(abi::SOL_SOCKET, 12 /* PRIORITY */, 0, 0, 6),
    number(abi::SOL_SOCKET, 18 /* RCVLOWAT */, 1, 1, i32::MAX),
    number(abi::SOL_SOCKET, 36 /* MARK */, 0, 0, i32::MAX),
    number(abi::SOL_SOCKET, 46 /* BUSY_POLL */, 0, 0, i32::MAX),
    switch(TCP, 1 /* NODELAY */),
    number(TCP, 2 /* MAXSEG */, 65_483, 88, 65_535),
    switch(TCP, 3 /* CORK */),
    number(TCP, 4 /* KEEPIDLE */, 7200, 1, 32_767),
    number(TCP, 5 /* KEEPINTVL */, 75, 1, 32_767),
    number(TCP, 6 /* KEEPCNT */, 9, 1, 127),
    number(TCP, 7 /* SYNCNT */, 6, 1, 127),
    number(TCP, 8 /* LINGER2 */, 60, i32::MIN, i32::MAX),
    number(TCP, 9 /* DEFER_ACCEPT */, 0, i32::MIN, i32::MAX),
    number(TCP, 10 /* WINDOW_CLAMP */, 0, 0, i32::MAX),
    number(TCP, 12 /* QUICKACK */, 1, i32::MIN, i32::MAX),
    number(TCP, 18 /* USER_TIMEOUT */, 0, 0, i32::MAX),
    number(TCP, 23 /* FASTOPEN */, 0, 0, i32::MAX),
    number(TCP, 25 /* NOTSENT_LOWAT */, -1, i32::MIN, i32::MAX),
    switch(TCP, 30 /* FASTOPEN_CONNECT */),
    switch(UDP, 1 /* CORK */),
    number(IP, 1 /* TOS */, 0, 0, 255),
    number(IP, 2 /* TTL */, 64, 1, 255),
    number(IP, 10 /* MTU_DISCOVER */, 1, 0, 5),
    switch(IP, 6 /* RECVOPTS */),
    switch(IP, 8 /* PKTINFO */),
    switch(IP, 11 /* RECVERR */),
    switch(IP, 12 /* RECVTTL */),
    switch(IP, 13 /* RECVTOS */),
    switch(IP, 15 /* FREEBIND */),
    switch(IP, 24 /* BIND_ADDRESS_NO_PORT */),
    number(IP, 33 /* MULTICAST_TTL */, 1, 0, 255),
    switch(IP, 34 /* MULTICAST_LOOP */),
    number(SIX, 16 /* UNICAST_HOPS */, 64, 0, 255),
    switch(SIX, 25 /* RECVERR */),
    switch(SIX, 49 /* RECVPKTINFO */),
    number(SIX, 67 /* TCLASS */, 0, 0, 255),
];

/// The option of a socket of `family` and `kind` that is only remembered, if that is one.
pub(crate) fn remembered(family: Family, kind: Kind, level: u32, name: u32) -> Option<&'static Remembered> {
    let fits = match level {
        abi::SOL_SOCKET => true,
        IP => family != Family::Unix,
        SIX => family == Family::InternetSix,
        TCP => family != Family::Unix && kind == Kind::Stream,
        UDP => family != Family::Unix && kind == Kind::Datagram,
        _ => false,
    };
    REMEMBERED.iter().find(|option| fits && option.level == level && option.name == name)
}
