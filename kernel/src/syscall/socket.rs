//! Sockets: making, naming, connecting and ending them. What is sent over them is in `message`, their options in `socket_option`.
//!
//! Linux checks in this order: the descriptor, whether it is a socket, the address.

use super::path::{caller, context, description, install, reserve, table, walk};
use super::pipe::install_pair;
use super::Errno;
use crate::files::{Description, Patience};
use crate::memory::user;
use crate::network::{Address, Endpoint, Family, Kind, Recipient, Socket, find_name};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;
use linux_raw_sys::net;

/// The bits of the type that say which; the others are flags.
const TYPE: u32 = 0xf;
/// The longest address (`struct sockaddr_storage`).
const MOST_ADDRESS: usize = 128;
/// Types of sockets that there are, with their numbers.
const RAW: u32 = 3;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// The endpoint behind a descriptor, and the description, whose flags count.
pub(super) struct Opened {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) description: Arc<Description>,
}

impl Opened {
    /// EBADF, or ENOTSOCK for another file.
    pub(super) fn find(descriptor: u64) -> Result<Self, Errno> {
        let description = description(descriptor)?;
        if description.is_path_only() {
            return Err(Errno::EBADF);
        }
        let endpoint = description.file_as::<Socket>().ok_or(Errno::ENOTSOCK)?.endpoint().clone();
        Ok(Self { endpoint, description })
    }

    /// As the description has it, unless a message says not to wait.
    pub(super) fn patience(&self, flags: u32) -> Patience {
        if flags & net::MSG_DONTWAIT != 0 { Patience::Refuse } else { self.description.patience() }
    }
}

/// Family, type and flags of a new socket.
fn parse(family: u64, kind: u64, protocol: u64) -> Result<(Family, Kind, u32), Errno> {
    let (family, kind, protocol) = (family as u32, kind as u32, protocol as u32);
    let flags = kind & !TYPE;
    if flags & !(abi::O_CLOEXEC | abi::O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let number = kind & TYPE;
    if number > 10 {
        return Err(Errno::EINVAL);
    }
    let family = match family {
        net::AF_UNIX => Family::Unix,
        net::AF_INET => Family::Internet,
        net::AF_INET6 => Family::InternetSix,
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    let kind = if family == Family::Unix {
        if protocol > 1 {
            return Err(Errno::EPROTONOSUPPORT);
        }
        match number {
            1 => Kind::Stream,
            // AF_UNIX takes "raw" for datagrams.
            2 | RAW => Kind::Datagram,
            5 => Kind::SequencedPackets,
            _ => return Err(Errno::ESOCKTNOSUPPORT),
        }
    } else {
        match (number, protocol) {
            (_, protocol) if protocol > 262 => return Err(Errno::EINVAL),
            (1, 0 | TCP) => Kind::Stream,
            (2, 0 | UDP) => Kind::Datagram,
            (1 | 2, _) => return Err(Errno::EPROTONOSUPPORT),
            (RAW, 1..) if caller().user != 0 => return Err(Errno::EPERM),
            _ => return Err(Errno::ESOCKTNOSUPPORT),
        }
    };
    Ok((family, kind, flags))
}

pub(crate) fn socket(&[family, kind, protocol, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let (family, kind, flags) = parse(family, kind, protocol)?;
    let description = Socket::new(Endpoint::new(family, kind)).open(flags);
    install(description, flags & abi::O_CLOEXEC != 0)
}

pub(crate) fn socketpair(&[family, kind, protocol, address, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let (family, kind, flags) = parse(family, kind, protocol)?;
    if family != Family::Unix {
        return Err(Errno::EOPNOTSUPP);
    }
    let pair = Endpoint::pair(kind).map(|end| Socket::new(end).open(flags));
    install_pair(pair, flags & abi::O_CLOEXEC != 0, address)
}

/// The bytes of an address that a program gives.
pub(super) fn read_address(address: u64, length: u64) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(length as i32).map_err(|_| Errno::EINVAL)?;
    if length > MOST_ADDRESS {
        return Err(Errno::EINVAL);
    }
    let mut bytes = vec![0; length];
    user::read_bytes(address, &mut bytes)?;
    Ok(bytes)
}

/// Stores an address, cut off at the room that the program has, and its whole length.
pub(super) fn write_address(bytes: &[u8], address: u64, length_address: u64) -> Result<(), Errno> {
    let room: i32 = user::read(length_address)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    user::write_bytes(address, &bytes[..bytes.len().min(room)])?;
    user::write(length_address, &(bytes.len() as i32))
}

pub(crate) fn bind(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let socket = Opened::find(descriptor)?;
    let bytes = read_address(address, length)?;
    let endpoint = &socket.endpoint;
    let family = endpoint.family();
    // No family will do for "any host" of IPv4.
    let any = family == Family::Internet && bytes.len() >= 16 && Address::is_unspecified(&bytes) && bytes[4..8] == [0; 4];
    let wanted = if any { named_family(&bytes, net::AF_INET) } else { bytes };
    match Address::read(family, &wanted)? {
        Address::Internet(wanted) => endpoint.bind_port(wanted)?,
        name => endpoint.bind_name(name, &walk()?, 0o777 & !context()?.umask())?,
    }
    Ok(0)
}

fn named_family(bytes: &[u8], family: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes
}

pub(crate) fn listen(&[descriptor, most, ..]: &[u64; 6]) -> Result<usize, Errno> {
    Opened::find(descriptor)?.endpoint.listen(most as i32)?;
    Ok(0)
}

pub(crate) fn connect(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let socket = Opened::find(descriptor)?;
    let bytes = read_address(address, length)?;
    let endpoint = &socket.endpoint;
    let patience = socket.patience(0);
    if endpoint.family() != Family::Unix {
        if bytes.len() < 2 {
            return Err(Errno::EINVAL);
        }
        if Address::is_unspecified(&bytes) {
            endpoint.disconnect();
            return Ok(0);
        }
    } else if endpoint.kind() == Kind::Datagram && Address::is_unspecified(&bytes) {
        endpoint.connect_datagrams(None)?;
        return Ok(0);
    }
    match (Address::read(endpoint.family(), &bytes)?, endpoint.kind()) {
        (Address::Internet(to), _) => endpoint.connect_to_port(to, patience)?,
        (name, Kind::Datagram) => endpoint.connect_datagrams(Some(&find_name(&name, &walk()?)?))?,
        (name, _) => endpoint.connect_to_name(&find_name(&name, &walk()?)?, patience)?,
    }
    Ok(0)
}

/// Whom a message with an address is for.
pub(super) fn recipient(endpoint: &Endpoint, bytes: &[u8]) -> Result<Recipient, Errno> {
    match Address::read(endpoint.family(), bytes)? {
        Address::Internet(to) => Ok(Recipient::Internet(to)),
        name => Ok(Recipient::Unix(find_name(&name, &walk()?)?)),
    }
}

pub(crate) fn accept(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    accept4(&[descriptor, address, length, 0, 0, 0])
}

pub(crate) fn accept4(&[descriptor, address, length, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let flags = flags as u32;
    if flags & !(abi::O_CLOEXEC | abi::O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let listener = Opened::find(descriptor)?;
    // A connection that is taken and has no number would be lost.
    let number = reserve(flags & abi::O_CLOEXEC != 0)?;
    let accepted = listener.endpoint.accept(listener.patience(0))?;
    let (socket, moving) = accepted.parts();
    let endpoint = socket.endpoint().clone();
    let description = socket.open(flags);
    drop(moving);
    if address != 0 {
        write_address(&endpoint.origin().bytes(endpoint.family()), address, length)?;
    }
    Ok(number.fill(description))
}

pub(crate) fn getsockname(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let endpoint = Opened::find(descriptor)?.endpoint;
    write_address(&endpoint.own_address().bytes(endpoint.family()), address, length)?;
    Ok(0)
}

pub(crate) fn getpeername(&[descriptor, address, length, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let endpoint = Opened::find(descriptor)?.endpoint;
    write_address(&endpoint.peer_address()?.bytes(endpoint.family()), address, length)?;
    Ok(0)
}

pub(crate) fn shutdown(&[descriptor, how, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let endpoint = Opened::find(descriptor)?.endpoint;
    match how as u32 {
        0 => endpoint.shut_down(true, false)?,
        1 => endpoint.shut_down(false, true)?,
        2 => endpoint.shut_down(true, true)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// Takes a descriptor back that nobody has been told of.
pub(super) fn take_back(descriptor: usize) {
    let _ = table().and_then(|table| table.remove(descriptor as i32));
}
