//! Linux's calls of this family, with the numbers that programs pass.
//!
//! Each checks its numbers in Linux's order, because a program that makes two mistakes at once is told of the first; what is left is a
//! typed range, and the other modules' business. The kernel and the simulated machine call these, so that what programs can get
//! wrong is checked where it is run. What is mapped of files is the kernel's business.

use linux_raw_sys::general as abi;

use alloc::vec::Vec;

use crate::address_space::AddressSpace;
use crate::advise::Advice;
use crate::area::AreaFlags;
use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::error::Error;
use crate::map::{MapRequest, Place};
use crate::range::{PAGE_SIZE, PageRange, USER_END, is_aligned, round_up};
use crate::remap::{MoveTo, RemapRequest};
use crate::rights::Rights;

/// Protections that `mprotect` knows (`PROT_SEM` means nothing on x86).
const KNOWN_PROTECTION: u64 = 0xf;
const MAP_TYPE: u32 = 0xf;

/// Where `mmap`'s flags want a mapping.
pub fn place(flags: u32, address: u64) -> Place {
    if flags & abi::MAP_FIXED_NOREPLACE != 0 {
        Place::FixedIfFree(address)
    } else if flags & abi::MAP_FIXED != 0 {
        Place::Fixed(address)
    } else if flags & abi::MAP_32BIT != 0 {
        Place::Low { hint: address }
    } else {
        Place::Anywhere { hint: address }
    }
}

/// What `mmap`'s flags say of the area.
pub fn area_flags(flags: u32, is_shared: bool) -> AreaFlags {
    let mut area = AreaFlags::empty();
    area.set(AreaFlags::SHARED, is_shared);
    area.set(AreaFlags::GROWS_DOWN, flags & abi::MAP_GROWSDOWN != 0);
    area.set(AreaFlags::NO_RESERVE, flags & abi::MAP_NORESERVE != 0);
    area.set(AreaFlags::LOCKED, flags & abi::MAP_LOCKED != 0);
    area
}

/// Whether `mmap`'s flags want the pages at once.
pub fn populates(flags: u32) -> bool {
    flags & abi::MAP_LOCKED != 0 || flags & (abi::MAP_POPULATE | abi::MAP_NONBLOCK) == abi::MAP_POPULATE
}

/// The rights of a protection's bits.
pub fn rights(protection: u64) -> Rights {
    Rights::from_bits_truncate(protection as u8)
}

/// The pages of `mmap`'s length.
///
/// # Errors
/// [`Error::Invalid`] for an offset that is no page's or a length of 0, [`Error::OutOfMemory`] for one that does not fit,
/// [`Error::Overflow`] if the last page has no number.
pub fn mapped_length(length: u64, offset: u64) -> Result<u64, Error> {
    if !is_aligned(offset) || length == 0 {
        return Err(Error::Invalid);
    }
    let length = round_up(length).ok_or(Error::OutOfMemory)?;
    match (offset / PAGE_SIZE).checked_add(length / PAGE_SIZE) {
        Some(_) => Ok(length),
        None => Err(Error::Overflow),
    }
}

impl<E: Environment> AddressSpace<E> {
    /// `mmap` with `MAP_ANONYMOUS`; says where the mapping is. `zeroes` makes an object of so many bytes that are zero.
    ///
    /// # Errors
    /// As the call's.
    pub fn mmap_anonymous(
        &self,
        [address, length, protection, flags, offset]: [u64; 5],
        zeroes: impl FnOnce(u64) -> BackingRef<E>,
    ) -> Result<u64, Error> {
        let flags = flags as u32;
        let length = mapped_length(length, offset)?;
        let place = place(flags, address);
        // A bad place is told before a bad kind.
        self.check_place(place, length)?;
        let (object, is_shared) = match flags & MAP_TYPE {
            abi::MAP_PRIVATE => (None, false),
            abi::MAP_SHARED if flags & abi::MAP_GROWSDOWN == 0 => (Some((zeroes(length), 0)), true),
            _ => return Err(Error::Invalid),
        };
        let range = self.map(MapRequest {
            place,
            length,
            rights: rights(protection),
            may: Rights::all(),
            flags: area_flags(flags, is_shared),
            object,
            populate: populates(flags),
        })?;
        Ok(range.start())
    }

    /// `munmap`.
    ///
    /// # Errors
    /// As the call's.
    pub fn munmap(&self, address: u64, length: u64) -> Result<(), Error> {
        self.unmap(PageRange::new(address, length).map_err(|_| Error::Invalid)?)
    }

    /// `mprotect`, and `pkey_mprotect` with another key than -1, on a CPU that has no protection keys.
    ///
    /// # Errors
    /// As the call's.
    pub fn mprotect(&self, address: u64, length: u64, protection: u64, key: i32) -> Result<(), Error> {
        let grows_down = protection & u64::from(abi::PROT_GROWSDOWN) != 0;
        let grows_up = protection & u64::from(abi::PROT_GROWSUP) != 0;
        let protection = protection & !u64::from(abi::PROT_GROWSDOWN | abi::PROT_GROWSUP);
        if (grows_down && grows_up) || !is_aligned(address) {
            return Err(Error::Invalid);
        }
        if length == 0 {
            return Ok(());
        }
        let end =
            round_up(length).and_then(|length| address.checked_add(length)).ok_or(Error::OutOfMemory)?;
        // No key is ever allocated.
        if protection & !KNOWN_PROTECTION != 0 || key != -1 {
            return Err(Error::Invalid);
        }
        // What lies beyond user space is a hole.
        let range = PageRange::new(address, end.min(USER_END).saturating_sub(address))
            .map_err(|_| Error::OutOfMemory)?;
        if grows_up {
            // No mapping grows up on x86.
            let is_mapped = self.shared().areas.find(address).is_some();
            return Err(if is_mapped { Error::Invalid } else { Error::OutOfMemory });
        }
        self.protect(range, rights(protection), grows_down)?;
        if end > USER_END { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    /// `mremap`; says where the mapping is then.
    ///
    /// # Errors
    /// As the call's.
    pub fn mremap(
        &self,
        [address, old_length, new_length, flags, new_address]: [u64; 5],
    ) -> Result<u64, Error> {
        let has = |flag: u32| flags & u64::from(flag) != 0;
        let known = abi::MREMAP_MAYMOVE | abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP;
        let may_move = has(abi::MREMAP_MAYMOVE);
        let keep_source = has(abi::MREMAP_DONTUNMAP);
        let is_fixed = has(abi::MREMAP_FIXED);
        if flags & !u64::from(known) != 0
            || (is_fixed && !may_move)
            || (keep_source && (!may_move || old_length != new_length))
        {
            return Err(Error::Invalid);
        }
        let to = if is_fixed { MoveTo::Fixed(new_address) } else { MoveTo::Hint(new_address) };
        self.remap(RemapRequest { address, old_length, new_length, may_move, to, keep_source })
    }

    /// `madvise`.
    ///
    /// # Errors
    /// As the call's.
    pub fn madvise(&self, address: u64, length: u64, advice: u64) -> Result<(), Error> {
        let advice = advice_of(advice as u32)?;
        match advised_range(address, length)? {
            None => Ok(()),
            Some((range, reaches_beyond)) => {
                self.advise(range, advice)?;
                if reaches_beyond { Err(Error::OutOfMemory) } else { Ok(()) }
            }
        }
    }

    /// `process_madvise` of this space: advice about any number of stretches, each an address and a length, up to the first that has an
    /// error; says about how many bytes. Whatever their number, it is one round of interrupts.
    ///
    /// # Errors
    /// As the call's; those of a stretch only if it is the first.
    pub fn process_madvise(&self, stretches: &[(u64, u64)], advice: u64) -> Result<u64, Error> {
        let advice = remote_advice(advice)?;
        let mut ranges = Vec::new();
        let mut verdict = Ok(());
        // How many bytes are advised about when so many ranges are done.
        let mut totals = alloc::vec![0];
        let mut total = 0_u64;
        for &(address, length) in stretches {
            match advised_range(address, length) {
                Ok(Some((range, false))) => {
                    total = total.saturating_add(length);
                    ranges.push(range);
                    totals.push(total);
                }
                Ok(Some((_, true))) => verdict = Err(Error::OutOfMemory),
                Ok(None) => {}
                Err(error) => verdict = Err(error),
            }
            if verdict.is_err() {
                break;
            }
        }
        let (done, refused) = self.advise_each(&ranges, advice);
        match refused.and(verdict) {
            Err(error) if totals[done] == 0 => Err(error),
            _ => Ok(totals[done]),
        }
    }
}

/// The advice of that number, if it may be given about another program's memory.
///
/// # Errors
/// [`Error::Invalid`] if it may not.
pub fn remote_advice(number: u64) -> Result<Advice, Error> {
    match number as u32 {
        abi::MADV_COLD | abi::MADV_PAGEOUT | abi::MADV_WILLNEED | abi::MADV_COLLAPSE => {
            advice_of(number as u32)
        }
        _ => Err(Error::Invalid),
    }
}

/// The pages that advice is about, and whether it was meant for more, beyond user space, where all is a hole; `None` for an
/// empty range.
fn advised_range(address: u64, length: u64) -> Result<Option<(PageRange, bool)>, Error> {
    if !is_aligned(address) {
        return Err(Error::Invalid);
    }
    let end = round_up(length).and_then(|length| address.checked_add(length)).ok_or(Error::Invalid)?;
    if end == address {
        return Ok(None);
    }
    let range = PageRange::new(address, end.min(USER_END).saturating_sub(address));
    Ok(Some((range.map_err(|_| Error::OutOfMemory)?, end > USER_END)))
}

fn advice_of(number: u32) -> Result<Advice, Error> {
    let mark = |flag, set| Advice::Mark { flag, set };
    Ok(match number {
        abi::MADV_DONTNEED => Advice::DontNeed,
        abi::MADV_DONTNEED_LOCKED => Advice::DontNeedLocked,
        abi::MADV_FREE => Advice::Free,
        abi::MADV_POPULATE_READ => Advice::Populate { write: false },
        abi::MADV_POPULATE_WRITE => Advice::Populate { write: true },
        abi::MADV_DONTFORK => mark(AreaFlags::NOT_FORKED, true),
        abi::MADV_DOFORK => mark(AreaFlags::NOT_FORKED, false),
        abi::MADV_WIPEONFORK => mark(AreaFlags::WIPED_ON_FORK, true),
        abi::MADV_KEEPONFORK => mark(AreaFlags::WIPED_ON_FORK, false),
        abi::MADV_DONTDUMP => mark(AreaFlags::NOT_DUMPED, true),
        abi::MADV_DODUMP => mark(AreaFlags::NOT_DUMPED, false),
        // What there is of an object is in memory: nothing need be read ahead.
        abi::MADV_WILLNEED
        | abi::MADV_NORMAL
        | abi::MADV_RANDOM
        | abi::MADV_SEQUENTIAL
        | abi::MADV_MERGEABLE
        | abi::MADV_UNMERGEABLE => Advice::Hint,
        abi::MADV_HUGEPAGE => Advice::Pages { large: true },
        abi::MADV_NOHUGEPAGE => Advice::Pages { large: false },
        abi::MADV_COLD => Advice::Retire { at_once: false },
        abi::MADV_PAGEOUT => Advice::Retire { at_once: true },
        abi::MADV_REMOVE => Advice::Remove,
        abi::MADV_COLLAPSE => Advice::Collapse,
        _ => return Err(Error::Invalid),
    })
}
