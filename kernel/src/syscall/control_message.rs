//! Control messages: descriptors and ids that go with a message.
//!
//! A `cmsghdr` (length, level, type) is followed by its data; each begins at a multiple of eight bytes. Lengths are allegations.

use super::Errno;
use super::path::{descriptor_limit, install, table};
use super::socket::take_back;
use crate::files::Description;
use crate::memory::user;
use crate::network::{MOST_RIGHTS, Rights, Sender};
use crate::process::credentials::{CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN, CAP_SYS_RESOURCE};
use crate::process::current;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::net::{MSG_CTRUNC, SCM_CREDENTIALS, SCM_RIGHTS, SOL_SOCKET};
use zerocopy::{FromBytes, IntoBytes};

/// `struct cmsghdr`.
const HEADER: usize = 16;
/// The most control data of one message (`net.core.optmem_max`).
const MOST_CONTROL: u64 = 20_480;

/// What a program sends beside bytes.
pub(super) struct Control {
    pub(super) sender: Sender,
    pub(super) rights: Rights,
}

impl Control {
    /// A message without any.
    pub(super) fn none() -> Self {
        Self { sender: Sender::real(), rights: Rights::none() }
    }

    /// What the control data at `address` says. To families other than AF_UNIX, descriptors and ids say nothing.
    ///
    /// # Errors
    /// EINVAL, ENOBUFS, EBADF, EPERM, ETOOMANYREFS.
    pub(super) fn read(address: u64, length: u64, is_unix: bool) -> Result<Self, Errno> {
        if length > MOST_CONTROL {
            return Err(Errno::ENOBUFS);
        }
        let mut bytes = vec![0; length as usize];
        user::read_bytes(address, &mut bytes)?;
        let mut sender = Sender::real();
        let mut descriptions = Vec::new();
        let mut rest = bytes.as_slice();
        while rest.len() >= HEADER {
            let word = |at: usize| u32::from_ne_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
            let whole = (u64::from(word(4)) << 32 | u64::from(word(0))) as usize;
            let (level, kind) = (word(8), word(12));
            if whole < HEADER || whole > rest.len() {
                return Err(Errno::EINVAL);
            }
            let data = &rest[HEADER..whole];
            match (level, kind) {
                (SOL_SOCKET, SCM_RIGHTS | SCM_CREDENTIALS) if !is_unix => {}
                (SOL_SOCKET, SCM_RIGHTS) => find_descriptions(data, &mut descriptions)?,
                (SOL_SOCKET, SCM_CREDENTIALS) => {
                    sender = Sender::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
                    check_sender(sender)?;
                }
                (SOL_SOCKET, _) => return Err(Errno::EINVAL),
                _ => {}
            }
            rest = rest.get(whole.next_multiple_of(8)..).unwrap_or(&[]);
        }
        let own = current().process().credentials();
        let privileged = own.has(CAP_SYS_RESOURCE) || own.has(CAP_SYS_ADMIN);
        let rights = Rights::new(descriptions, own.user.real, (!privileged).then(|| descriptor_limit() as u64))?;
        Ok(Self { sender, rights })
    }
}

fn find_descriptions(data: &[u8], descriptions: &mut Vec<Arc<Description>>) -> Result<(), Errno> {
    let table = table()?;
    for number in data.chunks_exact(4) {
        if descriptions.len() == MOST_RIGHTS {
            return Err(Errno::EINVAL);
        }
        let number = i32::from_ne_bytes([number[0], number[1], number[2], number[3]]);
        let description = table.get(number)?;
        descriptions.push(description);
    }
    Ok(())
}

/// EPERM unless the caller may say that it is `sender`.
fn check_sender(sender: Sender) -> Result<(), Errno> {
    let process = current().process().clone();
    let own = process.credentials();
    let is_one_of = |id: u32, ids: &crate::process::credentials::Identity| {
        id == ids.real || id == ids.effective || id == ids.saved
    };
    let allowed = (sender.process == process.id() || own.has(CAP_SYS_ADMIN))
        && (is_one_of(sender.user, &own.user) || own.has(CAP_SETUID))
        && (is_one_of(sender.group, &own.group) || own.has(CAP_SETGID));
    if allowed { Ok(()) } else { Err(Errno::EPERM) }
}

/// Room for control data in a program's memory.
pub(super) struct ControlRoom {
    address: u64,
    room: usize,
    written: usize,
    /// MSG_CTRUNC if not everything had room.
    pub(super) flags: u32,
}

impl ControlRoom {
    pub(super) fn new(address: u64, length: u64) -> Self {
        let room = if address == 0 { 0 } else { usize::try_from(length).unwrap_or(usize::MAX) };
        Self { address, room, written: 0, flags: 0 }
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> usize {
        self.written
    }

    /// Adds a message of level SOL_SOCKET, cut off if there is no room for all of it.
    fn add(&mut self, kind: u32, data: &[u8]) -> Result<(), Errno> {
        let left = self.room - self.written;
        if left < HEADER {
            self.flags |= MSG_CTRUNC;
            return Ok(());
        }
        let whole = HEADER + data.len();
        if whole > left {
            self.flags |= MSG_CTRUNC;
        }
        let length = whole.min(left);
        let mut bytes = Vec::with_capacity(whole);
        bytes.extend_from_slice(&(length as u64).to_ne_bytes());
        bytes.extend_from_slice(&SOL_SOCKET.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(data);
        user::write_bytes(self.address + self.written as u64, &bytes[..length])?;
        self.written += whole.next_multiple_of(8).min(left);
        Ok(())
    }

    /// Tells who sent the message.
    pub(super) fn add_sender(&mut self, sender: Sender) -> Result<(), Errno> {
        self.add(SCM_CREDENTIALS, sender.as_bytes())
    }

    /// Gives the descriptions descriptors: as many as have room, and as the program may have.
    pub(super) fn add_descriptions(&mut self, descriptions: Vec<Arc<Description>>, close_on_exec: bool) -> Result<(), Errno> {
        if descriptions.is_empty() {
            return Ok(());
        }
        let places = (self.room - self.written).saturating_sub(HEADER) / 4;
        let mut numbers: Vec<i32> = Vec::new();
        let wanted = descriptions.len();
        for description in descriptions.into_iter().take(places) {
            match install(description, close_on_exec) {
                Ok(number) => numbers.push(number as i32),
                Err(_) => break,
            }
        }
        if numbers.len() < wanted {
            self.flags |= MSG_CTRUNC;
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let flags = self.flags;
        let added = self.add(SCM_RIGHTS, numbers.as_bytes());
        self.flags |= flags;
        if added.is_err() {
            numbers.iter().for_each(|&number| take_back(number as usize));
        }
        added
    }
}
