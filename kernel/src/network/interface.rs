//! The one interface, `lo`, as the old requests of `ioctl` show it.

use crate::memory::user;
use crate::syscall::Errno;
use linux_raw_sys::ioctl;

/// A name of an interface, with zeroes behind it.
const NAME: [u8; 16] = *b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const INDEX: i32 = 1;
/// Up, loopback, running.
const FLAGS: u16 = 0x49;
const LARGEST_PACKET: i32 = 65_536;
/// The family of the hardware address of a loopback.
const HARDWARE: u16 = 772;

/// The two halves of a `struct ifreq`.
const NAME_SIZE: usize = 16;
const ANSWER_SIZE: usize = 24;

/// Answers a request about interfaces; ENOTTY for any other.
pub(super) fn control(request: u32, argument: u64) -> Result<usize, Errno> {
    match request {
        ioctl::SIOCGIFCONF => list(argument),
        ioctl::SIOCGIFNAME => {
            let index: i32 = user::read(argument.wrapping_add(NAME_SIZE as u64))?;
            if index != INDEX {
                return Err(Errno::ENODEV);
            }
            user::write(argument, &NAME)?;
            Ok(0)
        }
        ioctl::SIOCGIFINDEX => answer(argument, &INDEX.to_ne_bytes()),
        ioctl::SIOCGIFFLAGS => answer(argument, &FLAGS.to_ne_bytes()),
        ioctl::SIOCGIFMTU => answer(argument, &LARGEST_PACKET.to_ne_bytes()),
        ioctl::SIOCGIFADDR => answer(argument, &address([127, 0, 0, 1])),
        ioctl::SIOCGIFNETMASK => answer(argument, &address([255, 0, 0, 0])),
        ioctl::SIOCGIFHWADDR => answer(argument, &HARDWARE.to_ne_bytes()),
        _ => Err(Errno::ENOTTY),
    }
}

/// A `sockaddr_in` without a port.
fn address(host: [u8; 4]) -> [u8; 8] {
    let [low, high] = 2u16.to_ne_bytes();
    [low, high, 0, 0, host[0], host[1], host[2], host[3]]
}

/// Answers about the interface whose name is at `argument`: ENODEV if there is none.
fn answer(argument: u64, bytes: &[u8]) -> Result<usize, Errno> {
    let name: [u8; NAME_SIZE] = user::read(argument)?;
    if name.split(|&byte| byte == 0).next() != Some(b"lo") {
        return Err(Errno::ENODEV);
    }
    let mut whole = [0; ANSWER_SIZE];
    whole[..bytes.len()].copy_from_slice(bytes);
    user::write_bytes(argument + NAME_SIZE as u64, &whole)?;
    Ok(0)
}

/// `struct ifconf`: room, and where; without a place, how much is needed.
fn list(argument: u64) -> Result<usize, Errno> {
    let size = NAME_SIZE + ANSWER_SIZE;
    let room: i32 = user::read(argument)?;
    let place: u64 = user::read(argument + 8)?;
    let mut written = size as i32;
    if place != 0 {
        if (room as i64) < size as i64 {
            written = 0;
        } else {
            let mut whole = [0; NAME_SIZE + ANSWER_SIZE];
            whole[..NAME_SIZE].copy_from_slice(&NAME);
            whole[NAME_SIZE..NAME_SIZE + 8].copy_from_slice(&address([127, 0, 0, 1]));
            user::write_bytes(place, &whole)?;
        }
    }
    user::write(argument, &written)?;
    Ok(0)
}
