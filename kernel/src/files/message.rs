//! One message of a queue, in pieces: it may be larger than what can be had in one.

use crate::memory::user;
use crate::syscall::Errno;
use alloc::vec::Vec;

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

pub(crate) struct Message {
    pieces: Vec<Vec<u8>>,
    length: usize,
}

impl Message {
    /// What a program has at `address`.
    ///
    /// # Errors
    /// ENOMEM; EFAULT.
    pub(crate) fn read(address: u64, length: usize) -> Result<Self, Errno> {
        let mut pieces = Vec::new();
        pieces.try_reserve_exact(length.div_ceil(PIECE)).map_err(|_| Errno::ENOMEM)?;
        for start in (0..length).step_by(PIECE) {
            let size = (length - start).min(PIECE);
            let mut piece = Vec::new();
            piece.try_reserve_exact(size).map_err(|_| Errno::ENOMEM)?;
            piece.resize(size, 0);
            user::read_bytes(address.wrapping_add(start as u64), &mut piece)?;
            pieces.push(piece);
        }
        Ok(Self { pieces, length })
    }

    /// Puts it at a program's `address`.
    ///
    /// # Errors
    /// EFAULT.
    pub(crate) fn write(&self, address: u64) -> Result<(), Errno> {
        let mut at = address;
        for piece in &self.pieces {
            user::write_bytes(at, piece)?;
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Bytes in it.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}
