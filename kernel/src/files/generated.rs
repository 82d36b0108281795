//! Files whose text the kernel makes: an opening of one.
//!
//! The text is made when the file is read at its start and kept for the reads that follow, so that a reader
//! with a small buffer sees one state of the kernel. Whoever seeks back to the start gets a new one.

use super::file::{File, Patience, Positions};
use super::inode::{Content, Generated};
use super::transfer::{Destination, Source, deliver};
use super::Inode;
use crate::sync::Mutex;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The most that a program may write into one.
const MOST_WRITTEN: usize = 4096;

pub(crate) struct GeneratedFile {
    inode: Arc<Inode>,
    text: Mutex<Vec<u8>>,
}

impl GeneratedFile {
    pub(crate) fn new(inode: Arc<Inode>) -> Self {
        Self { inode, text: Mutex::new(Vec::new()) }
    }

    fn generated(&self) -> Result<&dyn Generated, Errno> {
        match self.inode.content() {
            Content::Generated(generated) => Ok(&**generated),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl File for GeneratedFile {
    fn positions(&self) -> Positions {
        Positions::Offsets
    }

    fn may_be_executed(&self) -> bool {
        false
    }

    fn read(&self, position: &mut u64, to: &mut dyn Destination, _patience: Patience) -> Result<usize, Errno> {
        let mut text = self.text.lock();
        if *position == 0 || text.is_empty() {
            *text = self.generated()?.text()?;
        }
        let start = *position;
        let count = deliver(to, |done, buffer| {
            let from = usize::try_from(start.saturating_add(done)).unwrap_or(usize::MAX).min(text.len());
            let count = buffer.len().min(text.len() - from);
            buffer[..count].copy_from_slice(&text[from..from + count]);
            Ok(count)
        })?;
        *position += count as u64;
        Ok(count)
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        let mut text = vec![0; from.remaining().min(MOST_WRITTEN)];
        let count = from.take(&mut text)?;
        self.generated()?.store(&text[..count])?;
        Ok(count)
    }
}
