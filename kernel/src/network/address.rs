//! What an endpoint is called, and how programs write it.
//!
//! Addresses of the internet are kept in one form: an IPv4 address is one, whether a program said it so or mapped into IPv6. Only what is handed back is
//! written as the socket's own family has it.

use super::Family;
use crate::syscall::Errno;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linux_raw_sys::net as abi;

/// The longest name of AF_UNIX, without the two bytes of the family.
const MOST_NAME: usize = 108;
/// IPv6 without the scope at its end will do, as programs of old have it.
const LEAST_IPV6: usize = 24;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Address {
    Unnamed,
    /// As it was given to `bind`.
    Path(Vec<u8>),
    Abstract(Vec<u8>),
    Internet(SocketAddr),
}

impl Address {
    /// What the bytes of a `sockaddr` say to a socket of `family`.
    ///
    /// # Errors
    /// EINVAL for a wrong length; EINVAL or EAFNOSUPPORT, as the family has it, for another family's address.
    pub(crate) fn read(family: Family, bytes: &[u8]) -> Result<Self, Errno> {
        match family {
            Family::Unix => Self::read_name(bytes),
            Family::Internet | Family::InternetSix => Self::read_internet(family, bytes),
        }
    }

    /// Whether it asks a socket to give up its connection (AF_UNSPEC).
    pub(crate) fn is_unspecified(bytes: &[u8]) -> bool {
        bytes.len() >= 2 && bytes[..2] == [0, 0]
    }

    fn read_name(bytes: &[u8]) -> Result<Self, Errno> {
        let (family, name) = bytes.split_at_checked(2).ok_or(Errno::EINVAL)?;
        if family != (abi::AF_UNIX as u16).to_ne_bytes() || name.len() > MOST_NAME {
            return Err(Errno::EINVAL);
        }
        Ok(match name {
            [] => Self::Unnamed,
            [0, rest @ ..] => Self::Abstract(rest.to_vec()),
            _ => Self::Path(name.split(|&byte| byte == 0).next().unwrap_or(name).to_vec()),
        })
    }

    fn read_internet(family: Family, bytes: &[u8]) -> Result<Self, Errno> {
        let least = if family == Family::Internet { 16 } else { LEAST_IPV6 };
        if bytes.len() < 2 {
            return Err(Errno::EINVAL);
        }
        let said = u32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        // A socket of IPv6 takes an address of IPv4 only as an IPv6 address that stands for it.
        if said != family.number() {
            return Err(if bytes.len() < least { Errno::EINVAL } else { Errno::EAFNOSUPPORT });
        }
        if bytes.len() < least {
            return Err(Errno::EINVAL);
        }
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let host = if family == Family::Internet {
            IpAddr::V4(Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]))
        } else {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[8..24]);
            IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
        };
        Ok(Self::Internet(SocketAddr::new(host, port)))
    }

    /// The bytes of the `sockaddr` that a socket of `family` shows.
    pub(crate) fn bytes(&self, family: Family) -> Vec<u8> {
        let mut bytes = (family.number() as u16).to_ne_bytes().to_vec();
        match self {
            Self::Unnamed if family == Family::Unix => {}
            Self::Unnamed => write_internet(&mut bytes, family, unspecified(family)),
            Self::Path(path) => {
                bytes.extend_from_slice(path);
                bytes.push(0);
            }
            Self::Abstract(name) => {
                bytes.push(0);
                bytes.extend_from_slice(name);
            }
            Self::Internet(address) => write_internet(&mut bytes, family, *address),
        }
        bytes
    }

    /// Host and port; EAFNOSUPPORT for a name of AF_UNIX.
    pub(super) fn internet(&self) -> Result<SocketAddr, Errno> {
        match self {
            Self::Internet(address) => Ok(*address),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }
}

/// No host and no port.
pub(super) fn unspecified(family: Family) -> SocketAddr {
    let host = if family == Family::InternetSix {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    };
    SocketAddr::new(host, 0)
}

fn write_internet(bytes: &mut Vec<u8>, family: Family, address: SocketAddr) {
    bytes.extend_from_slice(&address.port().to_be_bytes());
    match (family, address.ip()) {
        (Family::InternetSix, host) => {
            let host = match host {
                IpAddr::V4(host) => host.to_ipv6_mapped(),
                IpAddr::V6(host) => host,
            };
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&host.octets());
            bytes.extend_from_slice(&[0; 4]);
        }
        (_, IpAddr::V4(host)) => {
            bytes.extend_from_slice(&host.octets());
            bytes.extend_from_slice(&[0; 8]);
        }
        // A socket of IPv4 never has such an address.
        (_, IpAddr::V6(_)) => bytes.extend_from_slice(&[0; 12]),
    }
}

/// Whether this machine has the address: there is the loopback and nothing else.
pub(super) fn is_local(host: IpAddr) -> bool {
    host.is_loopback() || host.is_unspecified()
}

/// Where something for `to` goes: what is sent to no host goes to the loopback's.
///
/// # Errors
/// ENETUNREACH for every host but this one.
pub(super) fn route(to: SocketAddr) -> Result<SocketAddr, Errno> {
    let host = match to.ip() {
        IpAddr::V4(host) if host.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(host) if host.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host if host.is_loopback() => host,
        _ => return Err(Errno::ENETUNREACH),
    };
    Ok(SocketAddr::new(host, to.port()))
}

/// From where something for the host `to` comes if its sender is bound to no host.
pub(super) fn source_for(to: IpAddr) -> IpAddr {
    match to {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    }
}
