//! Sending and receiving messages.
//!
//! `read` and `write` do the same without addresses, flags and control data (`network::Socket`).

use super::control_message::{Control, ControlRoom};
use super::socket::{Opened, read_address, recipient, write_address};
use super::transfer::stretches;
use super::{Errno, poll};
use crate::files::{Patience, UserMemory};
use crate::memory::user;
use crate::network::{Family, Flag, Kind, Receipt, Receiving, Sending};
use crate::time;
use linux_raw_sys::net::{
    MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK, MSG_TRUNC, MSG_WAITALL,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The largest multiple of a page below 2^31.
const MOST_BYTES: u64 = 0x7fff_f000;
/// After the first message no other is waited for.
const MSG_WAITFORONE: u32 = 0x1_0000;
/// Most messages of one call.
const MOST_MESSAGES: usize = 1024;

/// `struct msghdr`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    name: u64,
    name_length: u32,
    padding: u32,
    vector: u64,
    count: u64,
    control: u64,
    control_length: u64,
    flags: u32,
    tail: u32,
}

/// `struct mmsghdr` is a header and the length of what was moved.
const HEADER_SIZE: u64 = size_of::<Header>() as u64;
const MANY_STEP: u64 = HEADER_SIZE + 8;

fn vector(address: u64, count: u64) -> Result<UserMemory, Errno> {
    if count > 1024 {
        return Err(Errno::EMSGSIZE);
    }
    let list = stretches(address, count)?;
    Ok(UserMemory::of_stretches(list.into_iter().map(|(address, length)| (address, length as usize)).collect()))
}

fn memory(address: u64, length: u64) -> Result<UserMemory, Errno> {
    let length = length.min(MOST_BYTES);
    user::check_range(address, length)?;
    Ok(UserMemory::new(address, length as usize))
}

fn send(socket: &Opened, from: &mut UserMemory, name: Option<(u64, u64)>, control: Control, flags: u32) -> Result<usize, Errno> {
    if flags & MSG_OOB != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let endpoint = &socket.endpoint;
    let to = match name {
        // TCP passes over an address.
        Some(_) if endpoint.family() != Family::Unix && endpoint.kind() == Kind::Stream => None,
        Some((address, length)) => {
            let bytes = read_address(address, length)?;
            if endpoint.kind() == Kind::Stream {
                return Err(endpoint.refuse_name());
            }
            if endpoint.kind() == Kind::SequencedPackets { None } else { Some(recipient(endpoint, &bytes)?) }
        }
        None => None,
    };
    let Control { sender, rights } = control;
    let sending = Sending { to, sender, rights, patience: socket.patience(flags), quiet: flags & MSG_NOSIGNAL != 0 };
    endpoint.send(from, sending)
}

pub(crate) fn sendto(&[descriptor, address, length, flags, name, name_length]: &[u64; 6]) -> Result<usize, Errno> {
    let mut from = memory(address, length)?;
    let socket = Opened::find(descriptor)?;
    let name = (name != 0).then_some((name, name_length));
    send(&socket, &mut from, name, Control::none(), flags as u32)
}

fn send_message(socket: &Opened, address: u64, flags: u32) -> Result<usize, Errno> {
    let header: Header = user::read(address)?;
    let mut from = vector(header.vector, header.count)?;
    let is_unix = socket.endpoint.family() == Family::Unix;
    let control = if header.control_length == 0 {
        Control::none()
    } else {
        Control::read(header.control, header.control_length, is_unix)?
    };
    let name = (header.name != 0 && header.name_length != 0).then_some((header.name, u64::from(header.name_length)));
    send(socket, &mut from, name, control, flags)
}

pub(crate) fn sendmsg(&[descriptor, address, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    send_message(&Opened::find(descriptor)?, address, flags as u32)
}

pub(crate) fn sendmmsg(&[descriptor, address, count, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    let socket = Opened::find(descriptor)?;
    let count = (count as u32 as usize).min(MOST_MESSAGES);
    let mut done = 0;
    while done < count {
        let at = address + done as u64 * MANY_STEP;
        let sent = send_message(&socket, at, flags as u32);
        match sent.and_then(|sent| user::write(at + HEADER_SIZE, &(sent as u32))) {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn receive(socket: &Opened, to: &mut UserMemory, flags: u32) -> Result<Receipt, Errno> {
    if flags & MSG_OOB != 0 {
        // There never is any.
        let has_some = socket.endpoint.kind() == Kind::Stream;
        return Err(if has_some { Errno::EINVAL } else { Errno::EOPNOTSUPP });
    }
    if flags & MSG_ERRQUEUE != 0 && socket.endpoint.family() != Family::Unix {
        // Errors come with the calls; that queue is always empty.
        return Err(Errno::EAGAIN);
    }
    let receiving = Receiving {
        patience: socket.patience(flags),
        peek: flags & MSG_PEEK != 0,
        all: flags & MSG_WAITALL != 0,
    };
    socket.endpoint.receive(to, receiving)
}

/// What the call returns: with MSG_TRUNC, how long the packet was.
fn result(socket: &Opened, receipt: &Receipt, flags: u32) -> usize {
    let whole = flags & MSG_TRUNC != 0 && socket.endpoint.kind() != Kind::Stream;
    if whole { receipt.length } else { receipt.count }
}

/// The sender's address, as calls show it that have asked for it: streams have none, and neither has who has no name.
fn name_of(socket: &Opened, receipt: &Receipt) -> alloc::vec::Vec<u8> {
    match &receipt.from {
        Some(from) if socket.endpoint.kind() != Kind::Stream && **from != crate::network::Address::Unnamed => {
            from.bytes(socket.endpoint.family())
        }
        _ => alloc::vec::Vec::new(),
    }
}

pub(crate) fn recvfrom(&[descriptor, address, length, flags, name, name_length]: &[u64; 6]) -> Result<usize, Errno> {
    let mut to = memory(address, length)?;
    let socket = Opened::find(descriptor)?;
    let flags = flags as u32;
    let receipt = receive(&socket, &mut to, flags)?;
    if name != 0 {
        write_address(&name_of(&socket, &receipt), name, name_length)?;
    }
    Ok(result(&socket, &receipt, flags))
}

fn receive_message(socket: &Opened, address: u64, flags: u32) -> Result<usize, Errno> {
    let header: Header = user::read(address)?;
    if (header.name_length as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let mut to = vector(header.vector, header.count)?;
    let mut receipt = receive(socket, &mut to, flags)?;
    let mut room = ControlRoom::new(header.control, header.control_length);
    if let Some(sender) = receipt.sender
        && socket.endpoint.has(Flag::PassCredentials)
    {
        room.add_sender(sender)?;
    }
    let descriptions = core::mem::take(&mut receipt.descriptions);
    room.add_descriptions(descriptions, flags & MSG_CMSG_CLOEXEC != 0)?;
    drop(receipt.moving.take());
    let name = name_of(socket, &receipt);
    if header.name != 0 {
        let shown = name.len().min(header.name_length as usize);
        user::write_bytes(header.name, &name[..shown])?;
        user::write(address + 8, &(name.len() as u32))?;
    }
    let cut = socket.endpoint.kind() != Kind::Stream && receipt.length > receipt.count;
    let mut answer = room.flags;
    if cut {
        answer |= MSG_TRUNC;
    }
    if flags & MSG_CMSG_CLOEXEC != 0 {
        answer |= MSG_CMSG_CLOEXEC;
    }
    user::write(address + 40, &(room.written() as u64))?;
    user::write(address + 48, &answer)?;
    Ok(result(socket, &receipt, flags))
}

pub(crate) fn recvmsg(&[descriptor, address, flags, ..]: &[u64; 6]) -> Result<usize, Errno> {
    receive_message(&Opened::find(descriptor)?, address, flags as u32)
}

pub(crate) fn recvmmsg(&[descriptor, address, count, flags, timeout, _]: &[u64; 6]) -> Result<usize, Errno> {
    let deadline = poll::deadline_after(timeout)?;
    let socket = Opened::find(descriptor)?;
    let count = (count as u32 as usize).min(MOST_MESSAGES);
    let mut flags = flags as u32;
    let mut done = 0;
    while done < count {
        let at = address + done as u64 * MANY_STEP;
        let received = receive_message(&socket, at, flags & !MSG_WAITFORONE);
        match received.and_then(|received| user::write(at + HEADER_SIZE, &(received as u32))) {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        if flags & MSG_WAITFORONE != 0 {
            flags |= MSG_DONTWAIT;
        }
        // As on Linux, the time is looked at between messages only.
        if deadline.is_some_and(|deadline| time::now() >= deadline) || socket.patience(flags) == Patience::Refuse && done == count {
            break;
        }
    }
    poll::store_rest(timeout, deadline, 1);
    Ok(done)
}
