//! `getsockopt` and `setsockopt`.

use super::Errno;
use super::socket::Opened;
use crate::memory::user;
use crate::network::{Endpoint, Family, Flag, Kind, remembered};
use crate::process::credentials::CAP_NET_ADMIN;
use crate::process::current;
use crate::time::SECOND;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use linux_raw_sys::net::{self, SOL_SOCKET};
use zerocopy::IntoBytes;

const SIX: u32 = 41;
const SIX_ONLY: u32 = 26;
const TCP: u32 = 6;
const CONGESTION: u32 = 13;
const INFORMATION: u32 = 11;
const SO_PEERGROUPS: u32 = 59;
const SO_INCOMING_CPU: u32 = 49;
const SO_COOKIE: u32 = 57;
/// The one way of sending that nothing holds up.
const CONGESTION_NAME: &[u8; 16] = b"reno\0\0\0\0\0\0\0\0\0\0\0\0";
/// The size of `struct tcp_info` in Linux 6.1.
const INFORMATION_SIZE: usize = 240;

/// Switches with an effect.
fn flag(level: u32, name: u32) -> Option<Flag> {
    match (level, name) {
        (SOL_SOCKET, net::SO_REUSEADDR) => Some(Flag::ReuseAddress),
        (SOL_SOCKET, net::SO_REUSEPORT) => Some(Flag::ReusePort),
        (SOL_SOCKET, net::SO_PASSCRED) => Some(Flag::PassCredentials),
        (SIX, SIX_ONLY) => Some(Flag::SixOnly),
        _ => None,
    }
}

/// An option that is not there: AF_UNIX has none beyond SOL_SOCKET.
fn unknown(endpoint: &Endpoint, level: u32) -> Errno {
    let has_level = match level {
        SOL_SOCKET | 0 => true,
        SIX => endpoint.family() == Family::InternetSix,
        _ => endpoint.family() != Family::Unix,
    };
    if endpoint.family() == Family::Unix && level != SOL_SOCKET {
        Errno::EOPNOTSUPP
    } else if has_level {
        Errno::ENOPROTOOPT
    } else {
        Errno::EOPNOTSUPP
    }
}

pub(crate) fn setsockopt(&[descriptor, level, name, address, length, _]: &[u64; 6]) -> Result<usize, Errno> {
    let (level, name) = (level as u32, name as u32);
    let length = usize::try_from(length as i32).map_err(|_| Errno::EINVAL)?;
    let socket = Opened::find(descriptor)?;
    let endpoint = &socket.endpoint;
    match (level, name) {
        (SOL_SOCKET, net::SO_RCVTIMEO_OLD | net::SO_RCVTIMEO_NEW) => {
            return set_timeout(&endpoint.options().receive_timeout, address, length);
        }
        (SOL_SOCKET, net::SO_SNDTIMEO_OLD | net::SO_SNDTIMEO_NEW) => {
            return set_timeout(&endpoint.options().send_timeout, address, length);
        }
        (SOL_SOCKET, net::SO_LINGER) => {
            if length < 8 {
                return Err(Errno::EINVAL);
            }
            let [on, seconds]: [i32; 2] = user::read(address)?;
            endpoint.options().set_linger((on != 0).then_some(seconds.max(0)));
            return Ok(0);
        }
        (TCP, CONGESTION) if endpoint.family() != Family::Unix && endpoint.kind() == Kind::Stream => {
            let mut named = [0; 16];
            let shown = length.min(named.len());
            user::read_bytes(address, &mut named[..shown])?;
            return if &named == CONGESTION_NAME { Ok(0) } else { Err(Errno::ENOENT) };
        }
        _ => {}
    }
    let known = flag(level, name).is_some() || remembered(endpoint.family(), endpoint.kind(), level, name).is_some();
    let buffer = level == SOL_SOCKET
        && matches!(name, net::SO_SNDBUF | net::SO_RCVBUF | net::SO_SNDBUFFORCE | net::SO_RCVBUFFORCE);
    if !known && !buffer {
        return Err(unknown(endpoint, level));
    }
    let value = read_number(address, length, level)?;
    set_number(endpoint, level, name, value)
}

/// A number: of IP's own options a single byte will do.
fn read_number(address: u64, length: usize, level: u32) -> Result<i32, Errno> {
    match length {
        4.. => user::read(address),
        1.. if level == 0 => Ok(i32::from(user::read::<u8>(address)?)),
        _ => Err(Errno::EINVAL),
    }
}

fn set_number(endpoint: &Arc<Endpoint>, level: u32, name: u32, value: i32) -> Result<usize, Errno> {
    let options = endpoint.options();
    if let Some(flag) = flag(level, name) {
        options.set(flag, value != 0);
        return Ok(0);
    }
    if level == SOL_SOCKET {
        let forced = matches!(name, net::SO_SNDBUFFORCE | net::SO_RCVBUFFORCE);
        let privileged = current().process().credentials().has(CAP_NET_ADMIN);
        if forced && !privileged {
            return Err(Errno::EPERM);
        }
        // A negative number is a very large one, as on Linux.
        let wanted = value as u32;
        match name {
            net::SO_SNDBUF | net::SO_SNDBUFFORCE => options.set_send_buffer(wanted, forced),
            net::SO_RCVBUF | net::SO_RCVBUFFORCE => options.set_receive_buffer(wanted, forced),
            _ => return set_remembered(endpoint, level, name, value),
        }
        endpoint.bounds_changed();
        return Ok(0);
    }
    set_remembered(endpoint, level, name, value)
}

fn set_remembered(endpoint: &Endpoint, level: u32, name: u32, value: i32) -> Result<usize, Errno> {
    let option = remembered(endpoint.family(), endpoint.kind(), level, name).ok_or(Errno::ENOPROTOOPT)?;
    if endpoint.options().set_number(option, value) { Ok(0) } else { Err(Errno::EINVAL) }
}

fn set_timeout(timeout: &AtomicU64, address: u64, length: usize) -> Result<usize, Errno> {
    if length < 16 {
        return Err(Errno::EINVAL);
    }
    let [seconds, microseconds]: [i64; 2] = user::read(address)?;
    if !(0..1_000_000).contains(&microseconds) {
        return Err(Errno::EDOM);
    }
    let nanoseconds = match u64::try_from(seconds) {
        Ok(seconds) => seconds.saturating_mul(SECOND).saturating_add(microseconds as u64 * 1000),
        // A time that is over: the least there is.
        Err(_) => 1,
    };
    timeout.store(nanoseconds, Ordering::Relaxed);
    Ok(0)
}

pub(crate) fn getsockopt(&[descriptor, level, name, address, length, _]: &[u64; 6]) -> Result<usize, Errno> {
    let socket = Opened::find(descriptor)?;
    let room: i32 = user::read(length)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let value = value_of(&socket.endpoint, level as u32, name as u32)?;
    if name as u32 == SO_PEERGROUPS && level as u32 == SOL_SOCKET && room < value.len() {
        user::write(length, &(value.len() as i32))?;
        return Err(Errno::ERANGE);
    }
    let shown = value.len().min(room);
    user::write_bytes(address, &value[..shown])?;
    user::write(length, &(shown as i32))?;
    Ok(0)
}

fn bytes(number: i32) -> Vec<u8> {
    number.to_ne_bytes().to_vec()
}

fn value_of(endpoint: &Arc<Endpoint>, level: u32, name: u32) -> Result<Vec<u8>, Errno> {
    let options = endpoint.options();
    if let Some(flag) = flag(level, name) {
        return Ok(bytes(i32::from(options.has(flag))));
    }
    let is_tcp = endpoint.family() != Family::Unix && endpoint.kind() == Kind::Stream;
    match (level, name) {
        (TCP, CONGESTION) if is_tcp => return Ok(CONGESTION_NAME.to_vec()),
        (TCP, INFORMATION) if is_tcp => return Ok(information(endpoint)),
        (SOL_SOCKET, _) => {}
        _ => {
            let option = remembered(endpoint.family(), endpoint.kind(), level, name);
            return option.map(|option| bytes(options.number(option))).ok_or_else(|| unknown(endpoint, level));
        }
    }
    Ok(match name {
        net::SO_TYPE => bytes(endpoint.kind().number() as i32),
        net::SO_DOMAIN => bytes(endpoint.family().number() as i32),
        net::SO_PROTOCOL => bytes(match (endpoint.family(), endpoint.kind()) {
            (Family::Unix, _) => 0,
            (_, Kind::Stream) => 6,
            _ => 17,
        }),
        net::SO_ERROR => bytes(endpoint.take_error().map_or(0, Errno::number)),
        net::SO_ACCEPTCONN => bytes(i32::from(endpoint.is_listening())),
        net::SO_SNDBUF => bytes(options.send_buffer() as i32),
        net::SO_RCVBUF => bytes(options.receive_buffer() as i32),
        net::SO_RCVTIMEO_OLD | net::SO_RCVTIMEO_NEW => timeout(&options.receive_timeout),
        net::SO_SNDTIMEO_OLD | net::SO_SNDTIMEO_NEW => timeout(&options.send_timeout),
        net::SO_LINGER => {
            let seconds = options.linger();
            [i32::from(seconds.is_some()), seconds.unwrap_or(0)].as_bytes().to_vec()
        }
        net::SO_PEERCRED => endpoint.peer_sender().0.as_bytes().to_vec(),
        SO_PEERGROUPS => {
            let (sender, groups) = endpoint.peer_sender();
            if sender.process == 0 {
                return Err(Errno::ENODATA);
            }
            groups.as_bytes().to_vec()
        }
        net::SO_SNDLOWAT => bytes(1),
        SO_INCOMING_CPU => bytes(-1),
        SO_COOKIE => endpoint.cookie.to_ne_bytes().to_vec(),
        _ => {
            let option = remembered(endpoint.family(), endpoint.kind(), level, name).ok_or(Errno::ENOPROTOOPT)?;
            bytes(options.number(option))
        }
    })
}

fn timeout(timeout: &AtomicU64) -> Vec<u8> {
    let nanoseconds = timeout.load(Ordering::Relaxed);
    [nanoseconds / SECOND, nanoseconds % SECOND / 1000].as_bytes().to_vec()
}

/// `struct tcp_info`: the state, and nothing that only a wire could say.
fn information(endpoint: &Endpoint) -> Vec<u8> {
    let mut bytes = alloc::vec![0; INFORMATION_SIZE];
    bytes[0] = endpoint.tcp_status();
    bytes
}
