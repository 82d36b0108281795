//! The strings that a new program gets: its arguments, or its environment.
//!
//! A program may hand over megabytes in hundreds of thousands of strings. They are kept as one stream of bytes,
//! each string with its NUL, in pieces of moderate size: the kernel's heap has no block that is large enough for all
//! of them in a row, and running out of memory here is the caller's ENOMEM and not the kernel's end.

use crate::syscall::Errno;
use alloc::vec::Vec;

/// Bytes in a piece.
const PIECE: usize = 16 << 10;

/// A list of strings, none of which has a NUL inside.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    /// All of them full but the last.
    pieces: Vec<Vec<u8>>,
    count: usize,
    bytes: u64,
}

impl Strings {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of all of them, with their NULs.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds one at the end.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn push(&mut self, string: &[u8]) -> Result<(), Errno> {
        self.append(string)?;
        self.append(&[0])?;
        self.count += 1;
        Ok(())
    }

    /// Adds all of `others` but the first.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn push_all_but_first(&mut self, others: &Strings) -> Result<(), Errno> {
        let mut skipping = others.count > 0;
        for piece in &others.pieces {
            let mut rest = piece.as_slice();
            if skipping {
                let Some(end) = rest.iter().position(|byte| *byte == 0) else { continue };
                rest = &rest[end + 1..];
                skipping = false;
            }
            self.append(rest)?;
        }
        self.count += others.count.saturating_sub(1);
        Ok(())
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), Errno> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
                let mut piece = Vec::new();
                piece.try_reserve_exact(PIECE).map_err(|_| Errno::ENOMEM)?;
                self.pieces.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
                self.pieces.push(piece);
            }
            let Some(piece) = self.pieces.last_mut() else { return Err(Errno::ENOMEM) };
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// The stream, piece by piece.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(Vec::as_slice)
    }

    /// Where each string starts in the stream.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        let bytes = self.pieces.iter().flatten();
        let after_ends = bytes.zip(1..).filter(|(byte, _)| **byte == 0).map(|(_, next)| next);
        core::iter::once(0).chain(after_ends).take(self.count)
    }
}
