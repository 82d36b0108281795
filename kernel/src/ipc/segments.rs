//! All segments of shared memory, by number.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::permission::Permission;
use super::segment::Segment;
use super::{PLACES, PRIVATE};
use crate::sync::Mutex;
use crate::syscall::Errno;
use ::memory::PAGE_SIZE;

/// The bounds of `/proc/sys/kernel`, which a program with the right to may change.
pub(crate) struct Bounds {
    /// `shmmax`: bytes of one segment.
    pub(crate) size: AtomicU64,
    /// `shmall`: pages of all together.
    pub(crate) pages: AtomicU64,
    /// `shmmni`: segments.
    pub(crate) segments: AtomicU64,
}

/// The bounds in force, at first Linux's.
pub(crate) static BOUNDS: Bounds = Bounds {
    size: AtomicU64::new(u64::MAX - (1 << 24)),
    pages: AtomicU64::new(u64::MAX - (1 << 24)),
    segments: AtomicU64::new(4096),
};

/// All segments of this machine.
pub(crate) static SEGMENTS: Mutex<Segments> = Mutex::new(Segments::new());

/// What all of them use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) segments: usize,
    pub(crate) pages: u64,
    pub(crate) resident_pages: u64,
}

pub(crate) struct Segments {
    by_place: BTreeMap<i32, (i32, Segment)>,
    /// Of the next to be made; part of its number.
    sequence: u16,
}

impl Segments {
    const fn new() -> Self {
        Self { by_place: BTreeMap::new(), sequence: 0 }
    }

    /// The segment with this key, or a new one if `creates`; `exclusive` wants a new one. Its number.
    ///
    /// # Errors
    /// As `shmget`'s.
    pub(crate) fn get(&mut self, key: i32, size: u64, mode: u32, creates: bool, exclusive: bool) -> Result<i32, Errno> {
        self.forget_gone();
        let known = self.by_place.values().find(|(_, segment)| key != PRIVATE && segment.permission.key() == key);
        match known {
            Some(_) if creates && exclusive => Err(Errno::EEXIST),
            Some((_, segment)) if size > segment.size => Err(Errno::EINVAL),
            Some((number, segment)) => segment.permission.check(mode).map(|()| *number),
            None if creates || key == PRIVATE => self.make(key, size, mode),
            None => Err(Errno::ENOENT),
        }
    }

    fn make(&mut self, key: i32, size: u64, mode: u32) -> Result<i32, Errno> {
        if size == 0 || size > BOUNDS.size.load(Ordering::Relaxed) {
            return Err(Errno::EINVAL);
        }
        let pages = self.totals().pages.saturating_add(size.div_ceil(PAGE_SIZE));
        if pages > BOUNDS.pages.load(Ordering::Relaxed) {
            return Err(Errno::ENOSPC);
        }
        let usage = crate::memory::usage();
        if size.div_ceil(PAGE_SIZE) > usage.total_pages {
            return Err(Errno::ENOMEM);
        }
        if self.by_place.len() as u64 >= BOUNDS.segments.load(Ordering::Relaxed) {
            return Err(Errno::ENOSPC);
        }
        let place = (0..PLACES).find(|place| !self.by_place.contains_key(place)).ok_or(Errno::ENOSPC)?;
        let number = i32::from(self.sequence) * PLACES + place;
        let segment = Segment::new(number, size, Permission::new(key, mode, self.sequence));
        self.sequence = self.sequence.wrapping_add(1);
        self.by_place.insert(place, (number, segment));
        Ok(number)
    }

    /// The segment of that number.
    ///
    /// # Errors
    /// EINVAL if there is none, EIDRM if its place has another by now.
    pub(crate) fn find(&mut self, number: i32) -> Result<&mut Segment, Errno> {
        self.forget_gone();
        if number < 0 {
            return Err(Errno::EINVAL);
        }
        let (present, segment) = self.by_place.get_mut(&(number % PLACES)).ok_or(Errno::EINVAL)?;
        if *present == number { Ok(segment) } else { Err(Errno::EIDRM) }
    }

    /// The segment at a place, with its number.
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub(crate) fn at(&mut self, place: i32) -> Result<(i32, &Segment), Errno> {
        self.forget_gone();
        let (number, segment) = self.by_place.get(&place).ok_or(Errno::EINVAL)?;
        Ok((*number, segment))
    }

    /// Removes a segment, at once or with its last attachment.
    ///
    /// # Errors
    /// As [`Segments::find`]; EPERM if the caller may not.
    pub(crate) fn remove(&mut self, number: i32) -> Result<(), Errno> {
        let segment = self.find(number)?;
        segment.permission.check_owner()?;
        segment.remove();
        self.forget_gone();
        Ok(())
    }

    /// The highest place in use, or 0.
    pub(crate) fn highest_place(&mut self) -> i32 {
        self.forget_gone();
        self.by_place.keys().next_back().copied().unwrap_or(0)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals { segments: self.by_place.len(), ..Totals::default() };
        for (_, segment) in self.by_place.values() {
            totals.pages += segment.size.div_ceil(PAGE_SIZE);
            totals.resident_pages += segment.resident_pages();
        }
        totals
    }

    fn forget_gone(&mut self) {
        self.by_place.retain(|_, (_, segment)| !segment.is_gone());
    }

    /// `/proc/sysvipc/shm`.
    pub(crate) fn text(&mut self) -> Vec<u8> {
        self.forget_gone();
        let head = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
                    atime      dtime      ctime                   rss                  swap\n";
        let lines = self.by_place.values().map(|(number, segment)| {
            let now = segment.statistics();
            format!(
                "{} {:21} {:5} {:5}  {:5} {} {:10} {:10} {:10} {:21} {:21}\n",
                now.permission.columns(*number),
                now.size,
                now.creator,
                now.last,
                now.attachments,
                now.permission.owners(),
                now.attached,
                now.detached,
                now.changed,
                segment.resident_pages() * PAGE_SIZE,
                0
            )
        });
        core::iter::once(String::from(head)).chain(lines).collect::<String>().into_bytes()
    }
}
