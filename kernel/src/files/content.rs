//! The content of regular files, and what reading and writing them does.
//!
//! A file's bytes are a `MemoryObject`, the same pages that `mmap` shows. A file from the initial archive
//! starts as a view of the archive's own memory and takes pages only as they are written or mapped.

use super::file::{File, Patience, Positions};
use super::transfer::{Destination, Source, collect, deliver};
use super::running::Uses;
use super::{Entry, FileSystem, Inode};
use crate::memory::{Backing, Kernel, MemoryObject, available, room};
use crate::process::limits::Resource;
use crate::process::signal::Signal;
use crate::sync::Mutex;
use crate::syscall::Errno;
use ::memory::{BackingError, FrameRef, Identity, PAGE_SIZE};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// The largest file, and the largest offset.
pub(crate) const MOST_SIZE: u64 = i64::MAX as u64;

pub(crate) struct FileContent {
    object: MemoryObject,
    /// Held over each write and change of size, so that an appending write finds the end where it puts it.
    writing: Mutex<()>,
    uses: Uses,
    seals: AtomicU32,
}

bitflags::bitflags! {
    /// What nobody may do with a file any more, with Linux's values.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Seals: u32 {
        /// Add seals.
        const SEAL = 1;
        const SHRINK = 2;
        const GROW = 4;
        const WRITE = 8;
        /// Write in other ways than through the mappings that there are.
        const FUTURE_WRITE = 16;
    }
}

impl Seals {
    pub(crate) const ANY_WRITE: Self = Self::WRITE.union(Self::FUTURE_WRITE);
}

impl FileContent {
    pub(crate) fn empty() -> Self {
        Self::from_bytes(&[])
    }

    /// A file that starts as `bytes`.
    pub(crate) fn from_bytes(bytes: &'static [u8]) -> Self {
        // The object's own identity and name are never shown: mappings go through `Mapping`.
        let object = MemoryObject::from_bytes(&Kernel, Identity { device: 0, inode: 0 }, String::new(), bytes);
        let seals = AtomicU32::new(Seals::SEAL.bits());
        Self { object, writing: Mutex::new(()), uses: Uses::new(), seals }
    }

    /// A file that can be sealed.
    fn unsealed() -> Self {
        Self { seals: AtomicU32::new(0), ..Self::empty() }
    }

    pub(crate) fn seals(&self) -> Seals {
        Seals::from_bits_truncate(self.seals.load(Ordering::Relaxed))
    }

    /// EPERM if one of these seals is on it.
    fn check_seals(&self, forbidding: Seals) -> Result<(), Errno> {
        if self.seals().intersects(forbidding) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Adds seals for good.
    ///
    /// # Errors
    /// EPERM if no more can be added; EBUSY against writing while a program could store to it through a mapping.
    pub(crate) fn seal(&self, more: Seals) -> Result<(), Errno> {
        let _writing = self.writing.lock();
        self.check_seals(Seals::SEAL)?;
        if more.contains(Seals::WRITE) && self.object.may_be_stored_to() {
            return Err(Errno::EBUSY);
        }
        self.seals.fetch_or(more.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps seals away until `work`, which maps it, is done. A file that cannot be sealed needs no lock for that.
    pub(crate) fn with_seals<R>(&self, work: impl FnOnce(Seals) -> R) -> R {
        let _writing = (!self.seals().contains(Seals::SEAL)).then(|| self.writing.lock());
        work(self.seals())
    }

    /// Who writes it or runs from it.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }

    pub(crate) fn size(&self) -> u64 {
        self.object.size()
    }

    /// Storage in use, in units of 512 bytes.
    pub(crate) fn blocks(&self) -> u64 {
        self.object.resident_pages() as u64 * 8
    }

    /// Copies bytes out and says how many; fewer than asked for only at the end.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.object.read_at(offset, buffer)
    }

    fn write(&self, position: &mut u64, append: bool, from: &mut dyn Source) -> Result<usize, Errno> {
        let _writing = self.writing.lock();
        self.check_seals(Seals::ANY_WRITE)?;
        let start = if append { self.size() } else { *position };
        let limit = size_limit();
        if start >= limit {
            return Err(too_large());
        }
        let room = limit - start;
        let count = collect(from, |done, bytes| {
            let fitting = (bytes.len() as u64).min(room - done) as usize;
            if !room::is_there_for(KEPT_FREE) {
                return Err(Errno::ENOSPC);
            }
            if start + done + fitting as u64 > self.size() {
                self.check_seals(Seals::GROW)?;
            }
            self.object.write_at(start + done, &bytes[..fitting]).map_err(|_| Errno::ENOSPC)
        })?;
        *position = start + count as u64;
        Ok(count)
    }

    /// Sets the size; bytes beyond the former end are zero.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), Errno> {
        let _writing = self.writing.lock();
        match size.cmp(&self.size()) {
            core::cmp::Ordering::Greater => self.check_seals(Seals::GROW)?,
            core::cmp::Ordering::Less => self.check_seals(Seals::SHRINK)?,
            core::cmp::Ordering::Equal => {}
        }
        if size > self.size() && size > size_limit() {
            return Err(too_large());
        }
        self.object.truncate(size);
        self.object.forget_mapped(size.div_ceil(PAGE_SIZE));
        Ok(())
    }

    /// Gives `offset..offset + length` storage, so that writing there cannot fail for want of it; with `grows` the file is at least as long
    /// then.
    ///
    /// # Errors
    /// ENOSPC, with nothing taken if it was known before; EFBIG for a size that the program may not have.
    pub(crate) fn allocate(&self, offset: u64, length: u64, grows: bool) -> Result<(), Errno> {
        let end = offset.saturating_add(length);
        let _writing = self.writing.lock();
        if grows && end > self.size() {
            self.check_seals(Seals::GROW)?;
            if end > size_limit() {
                return Err(too_large());
            }
        }
        let pages = offset / PAGE_SIZE..end.div_ceil(PAGE_SIZE);
        let missing = (pages.end - pages.start) - self.object.resident_pages_in(pages.clone());
        if missing > available().saturating_sub(kept_free()) {
            return Err(Errno::ENOSPC);
        }
        for first in pages.clone().step_by(PAGES_AT_ONCE) {
            room::keep();
            let part = first..pages.end.min(first + PAGES_AT_ONCE as u64);
            self.object.allocate(part).map_err(|_| Errno::ENOSPC)?;
        }
        if grows && end > self.size() {
            self.object.truncate(end);
        }
        Ok(())
    }

    /// Makes `offset..offset + length` zero, and gives back the pages that lie wholly inside, in whatever way they are mapped. The size
    /// stays as it is.
    pub(crate) fn punch(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let _writing = self.writing.lock();
        self.check_seals(Seals::ANY_WRITE)?;
        let end = offset.saturating_add(length);
        let whole = offset.div_ceil(PAGE_SIZE)..end / PAGE_SIZE;
        if whole.is_empty() {
            return self.clear(offset, end);
        }
        self.clear(offset, whole.start * PAGE_SIZE)?;
        self.object.punch(whole.clone()).map_err(|_| Errno::ENOSPC)?;
        self.clear(whole.end * PAGE_SIZE, end)
    }

    /// Makes the bytes `start..end` zero, of at most two pages.
    fn clear(&self, start: u64, end: u64) -> Result<(), Errno> {
        const ZEROES: [u8; PAGE_SIZE as usize] = [0; PAGE_SIZE as usize];
        let end = end.min(self.size());
        let mut at = start;
        while at < end {
            let piece = (PAGE_SIZE - at % PAGE_SIZE).min(end - at);
            // A page that nobody has touched is zero already.
            if self.object.next_page(at / PAGE_SIZE) == Some(at / PAGE_SIZE) {
                self.object.write_at(at, &ZEROES[..piece as usize]).map_err(|_| Errno::ENOSPC)?;
            }
            at += piece;
        }
        Ok(())
    }

    /// The first byte at or behind `offset` that counts as data: ENXIO if there is none.
    pub(crate) fn next_data(&self, offset: u64) -> Result<u64, Errno> {
        let page = self.object.next_page(offset / PAGE_SIZE).ok_or(Errno::ENXIO)?;
        let found = offset.max(page.saturating_mul(PAGE_SIZE));
        if found < self.size() { Ok(found) } else { Err(Errno::ENXIO) }
    }

    /// The first byte at or behind `offset` that counts as a hole; at the latest that is the file's end. ENXIO if
    /// `offset` lies behind that.
    pub(crate) fn next_hole(&self, offset: u64) -> Result<u64, Errno> {
        let size = self.size();
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let mut page = offset / PAGE_SIZE;
        while self.object.next_page(page) == Some(page) && page * PAGE_SIZE < size {
            page += 1;
        }
        Ok(offset.max(page * PAGE_SIZE).min(size))
    }
}

/// The largest size to which the running program may have a file grow.
fn size_limit() -> u64 {
    crate::process::current().process().limit(Resource::FSIZE).soft.min(MOST_SIZE)
}

/// What a program hears that would have made a file too large: EFBIG, and SIGXFSZ if only its limit says so.
fn too_large() -> Errno {
    if size_limit() < MOST_SIZE {
        crate::process::signal::raise(Signal::SIGXFSZ);
    }
    Errno::EFBIG
}

/// The part of memory that files leave free, or to the pages of disks: ENOSPC once there is only that, as files do not go away by themselves, and programs
/// need memory too.
const KEPT_FREE: u64 = 8;
/// Pages that a file gets before room is made for more.
const PAGES_AT_ONCE: usize = 256;

fn kept_free() -> u64 {
    crate::memory::usage().total_pages / KEPT_FREE
}

/// An opened regular file.
pub(crate) struct RegularFile {
    entry: Arc<Entry>,
    writes: bool,
}

impl RegularFile {
    /// ETXTBSY if it is to be written and a program runs from it.
    pub(crate) fn new(entry: Arc<Entry>, writes: bool) -> Result<Self, Errno> {
        if writes {
            entry.inode().regular()?.uses.add_writer()?;
        }
        Ok(Self { entry, writes })
    }

    fn content(&self) -> Result<&FileContent, Errno> {
        self.entry.inode().regular()
    }
}

impl File for RegularFile {
    fn positions(&self) -> Positions {
        Positions::Offsets
    }

    fn read(&self, position: &mut u64, to: &mut dyn Destination, _patience: Patience) -> Result<usize, Errno> {
        let content = self.content()?;
        let start = *position;
        let count = deliver(to, |done, buffer| Ok(content.read_at(start.saturating_add(done), buffer)))?;
        *position += count as u64;
        self.entry.inode().touch_accessed();
        Ok(count)
    }

    fn write(
        &self,
        position: &mut u64,
        append: bool,
        from: &mut dyn Source,
        _patience: Patience,
    ) -> Result<usize, Errno> {
        if from.remaining() == 0 {
            return Ok(0);
        }
        let count = self.content()?.write(position, append, from)?;
        self.entry.inode().touch_modified();
        Ok(count)
    }

    fn backing(&self, _may_be_stored_to: bool) -> Result<Arc<Backing>, Errno> {
        self.entry.inode().touch_accessed();
        Mapping::of(&self.entry)
    }
}

impl Drop for RegularFile {
    fn drop(&mut self) {
        if self.writes
            && let Ok(content) = self.content()
        {
            content.uses.remove_writer();
        }
    }
}

/// A mapped file: its pages together with the name under which it was opened.
pub(crate) struct Mapping {
    entry: Arc<Entry>,
}

impl Mapping {
    /// ENODEV unless the entry is a regular file with content of its own.
    pub(crate) fn of(entry: &Arc<Entry>) -> Result<Arc<Backing>, Errno> {
        entry.inode().regular().map_err(|_| Errno::ENODEV)?;
        Ok(Arc::new(Self { entry: entry.clone() }))
    }

}

impl ::memory::Backing<Kernel> for Mapping {
    fn frame(&self, page: u64) -> Result<FrameRef<Kernel>, BackingError> {
        let content = self.entry.inode().regular().map_err(|_| BackingError::PastEnd)?;
        // A page more for a full file system is as if it lay behind the end (SIGBUS), except for what a program needs
        // to run: killing others for that helps, for files it would not. No room is made here, as an area lock is held; a fault that finds no
        // frame makes some.
        let grows = !content.object.is_resident(page) && content.uses.check_idle().is_ok();
        if grows && available() < kept_free() {
            return Err(BackingError::PastEnd);
        }
        content.object.frame(page)
    }

    fn with_seals(&self, work: &mut dyn FnMut(bool)) {
        match self.entry.inode().regular() {
            Ok(content) => content.with_seals(|seals| work(seals.intersects(Seals::ANY_WRITE))),
            Err(_) => work(false),
        }
    }

    fn object(&self) -> Option<&MemoryObject> {
        self.entry.inode().regular().ok().map(|content| &content.object)
    }

    fn is_resident(&self, page: u64) -> bool {
        self.object().is_some_and(|object| object.is_resident(page))
    }

    fn size(&self) -> u64 {
        self.object().map_or(0, MemoryObject::size)
    }

    fn identity(&self) -> Identity {
        Identity { device: self.entry.inode().filesystem().device, inode: self.entry.inode().number() }
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.entry.shown_path(super::root())).into_owned()
    }
}

/// A file that is in no directory: what `memfd_create` makes.
pub(crate) fn unnamed_file(
    filesystem: &'static FileSystem,
    name: &[u8],
    can_be_sealed: bool,
    caller: &super::Caller,
) -> Arc<Entry> {
    let content = if can_be_sealed { FileContent::unsealed() } else { FileContent::empty() };
    let inode = Inode::new(filesystem, super::Content::Regular(content), 0o777, caller);
    inode.change(|attributes| attributes.links = 0);
    let entry = Entry::unplaced(name, inode);
    entry.mark_removed();
    entry
}
