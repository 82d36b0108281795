//! Bytes on their way between a file and whoever reads or writes it.
//!
//! Files see neither user addresses nor page faults: they put bytes into a `Destination` or take them from
//! a `Source`. User memory is read and written a page at a time, outside all spin locks, since it may have
//! to be faulted in. A fault in the middle of a transfer ends it after the bytes before it, as on Linux; only
//! a fault at the first byte is EFAULT.

use crate::memory::user;
use crate::syscall::Errno;
use alloc::vec;
use alloc::vec::Vec;

/// Where bytes that are read go to.
pub(crate) trait Destination {
    /// Room that is left.
    fn remaining(&self) -> usize;
    /// Takes as many of `bytes` as it can, from the front, and says how many; EFAULT if it cannot even
    /// take the first.
    fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno>;
}

/// Where bytes that are written come from.
pub(crate) trait Source {
    /// Bytes that are left.
    fn remaining(&self) -> usize;
    /// Fills `buffer` from the front as far as it can and says how far; EFAULT if not even the first
    /// byte can be had.
    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Errno>;
}

/// Largest piece that is copied at once.
const PIECE: usize = 64 * 1024;

/// A buffer of a size that suits a transfer of `remaining` bytes.
pub(crate) fn buffer_for(remaining: usize) -> Vec<u8> {
    vec![0; remaining.min(PIECE)]
}

/// Whether the caller's process is ending: nobody will look at the rest of a long transfer.
pub(crate) fn is_given_up() -> bool {
    crate::task::current().interrupted() && crate::process::current().process().is_ending()
}

/// Carries up to `destination.remaining()` bytes over. `fetch` fills a buffer with what comes at a distance
/// from the start of the transfer, and returns 0 at the end.
pub(crate) fn deliver(
    destination: &mut dyn Destination,
    mut fetch: impl FnMut(u64, &mut [u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut buffer = buffer_for(destination.remaining());
    let mut done = 0;
    while destination.remaining() > 0 {
        let wanted = buffer.len().min(destination.remaining());
        let step = fetch(done as u64, &mut buffer[..wanted]).and_then(|fetched| {
            let accepted = if fetched == 0 { 0 } else { destination.put(&buffer[..fetched])? };
            Ok((fetched, accepted))
        });
        match step {
            Ok((fetched, accepted)) => {
                done += accepted;
                if fetched == 0 || accepted < fetched {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        crate::task::yield_if_needed();
        if is_given_up() {
            break;
        }
    }
    Ok(done)
}

/// Carries all of `source` over. `store` takes bytes and their distance from the start of the transfer, and
/// says how many it took.
pub(crate) fn collect(
    source: &mut dyn Source,
    mut store: impl FnMut(u64, &[u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut buffer = buffer_for(source.remaining());
    let mut done = 0;
    while source.remaining() > 0 {
        let wanted = buffer.len().min(source.remaining());
        let step = source.take(&mut buffer[..wanted]).and_then(|taken| {
            let stored = store(done as u64, &buffer[..taken])?;
            Ok((taken, stored))
        });
        match step {
            Ok((taken, stored)) => {
                done += stored;
                if taken < wanted || stored < taken {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        crate::task::yield_if_needed();
        if is_given_up() {
            break;
        }
    }
    Ok(done)
}

/// Stretches of user memory, as `readv` and `writev` name them.
pub(crate) struct UserMemory {
    /// Address and length of what is left, last stretch first.
    stretches: Vec<(u64, usize)>,
    remaining: usize,
}

impl UserMemory {
    pub(crate) fn new(address: u64, length: usize) -> Self {
        Self { stretches: vec![(address, length)], remaining: length }
    }

    /// The stretches in the order in which they are to be used.
    pub(crate) fn of_stretches(mut stretches: Vec<(u64, usize)>) -> Self {
        stretches.reverse();
        let remaining = stretches.iter().map(|&(_, length)| length).sum();
        Self { stretches, remaining }
    }

    /// Goes through up to `most` bytes in pieces that lie within one page each. `copy` is given the address
    /// of a piece and which of the `most` bytes it holds. Returns how far it came.
    fn advance(
        &mut self,
        most: usize,
        mut copy: impl FnMut(u64, core::ops::Range<usize>) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let mut done = 0;
        while done < most {
            let Some((address, length)) = self.stretches.last_mut() else { break };
            let to_page_end = 4096 - (*address % 4096) as usize;
            let piece = (*length).min(most - done).min(to_page_end);
            if piece > 0
                && let Err(error) = copy(*address, done..done + piece)
            {
                return if done == 0 { Err(error) } else { Ok(done) };
            }
            *address += piece as u64;
            *length -= piece;
            if *length == 0 {
                self.stretches.pop();
            }
            done += piece;
            self.remaining -= piece;
        }
        Ok(done)
    }
}

impl Destination for UserMemory {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.advance(bytes.len(), |address, piece| user::write_bytes(address, &bytes[piece]))
    }
}

impl Source for UserMemory {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.advance(buffer.len(), |address, piece| user::read_bytes(address, &mut buffer[piece]))
    }
}

impl Source for &[u8] {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn take(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let count = buffer.len().min(self.len());
        let (taken, rest) = self.split_at(count);
        buffer[..count].copy_from_slice(taken);
        *self = rest;
        Ok(count)
    }
}

impl Destination for &mut [u8] {
    fn remaining(&self) -> usize {
        self.len()
    }

    fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let count = bytes.len().min(self.len());
        let (filled, rest) = core::mem::take(self).split_at_mut(count);
        filled.copy_from_slice(&bytes[..count]);
        *self = rest;
        Ok(count)
    }
}
