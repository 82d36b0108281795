//! The walker and the caches of a CPU: what an access reaches, what hardware may cache meanwhile, and whether all that is cached is
//! still allowed.
//!
//! A small page's translation is cached by its address; a large page's by its first address, made odd. An access that may go through
//! a cached translation does, as on a CPU that never forgets.

use std::sync::Arc;

use coherence::Platform;
use memory::{Access, Environment, Fault, FrameNumber, PAGE_SIZE};

use super::{KERNEL_ROOT, PRESENT, TurnEnvironment, TurnSpace};

const WRITABLE: u64 = 2;
const USER: u64 = 4;
const ACCESSED: u64 = 32;
const DIRTY: u64 = 64;
const LARGE: u64 = 128;
/// Bytes in a large page.
const LARGE_PAGE: u64 = 2 << 20;
const NO_EXECUTE: u64 = 1 << 63;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// What the large page around an address is cached by: no small page's address is odd.
pub(super) fn large_key(address: u64) -> u64 {
    address & !(LARGE_PAGE - 1) | 1
}

/// What a large page's entry says of the small page at an address.
fn piece(entry: u64, address: u64) -> u64 {
    (entry & !LARGE) + (address & (LARGE_PAGE - 1) & !(PAGE_SIZE - 1))
}

impl TurnEnvironment {
    fn word(&self, table: u64, index: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.frames.read(FrameNumber::containing(table).unwrap(), index as usize * 8, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// The table of a level that maps an address, as the tables in memory say.
    fn walk_to(&self, root: u64, address: u64, lowest: u64) -> Option<u64> {
        (lowest + 1..=3).rev().try_fold(root, |table, level| {
            let entry = self.word(table, address >> (12 + 9 * level) & 511);
            (entry & (PRESENT | LARGE) == PRESENT).then_some(entry & FRAME)
        })
    }

    /// The leaf table of an address.
    fn walk_to_leaf(&self, root: u64, address: u64) -> Option<u64> {
        self.walk_to(root, address, 0)
    }

    /// The large page's entry around an address, and where it lies, if there is one.
    fn walk_to_large(&self, root: u64, address: u64) -> Option<(u64, u64, u64)> {
        let (table, index) = (self.walk_to(root, address, 1)?, address >> 21 & 511);
        let entry = self.word(table, index);
        (entry & (PRESENT | LARGE) == PRESENT | LARGE).then_some((table, index, entry))
    }

    /// An access by user code on this CPU: the physical address it reaches, through this CPU's caches, taking faults
    /// as they come.
    ///
    /// # Errors
    /// The fault that the address space could not resolve.
    ///
    /// # Panics
    /// If the access faults again and again.
    pub fn access(&self, space: &Arc<TurnSpace>, address: u64, access: Access) -> Result<u64, Fault> {
        for _ in 0..8 {
            match self.try_access(address, access) {
                Ok(physical) => return Ok(physical),
                Err(present) => space.handle_fault(address, access, present)?,
            }
        }
        panic!("the access to {address:#x} faults for ever");
    }

    /// One attempt. `Err` is the fault's "present" bit.
    fn try_access(&self, address: u64, access: Access) -> Result<u64, bool> {
        let page = address & !(PAGE_SIZE - 1);
        let permits = |entry: u64| {
            entry & (PRESENT | USER) == PRESENT | USER
                && (!access.write || entry & WRITABLE != 0)
                && (!access.execute || entry & NO_EXECUTE == 0)
        };
        let number = self.current_cpu().index();
        let cached = {
            let cpus = self.0.coherence.platform().cpus.lock().unwrap();
            let large = cpus[number].translations.get(&large_key(page)).map(|entry| piece(*entry, page));
            cpus[number].translations.get(&page).copied().or(large)
        };
        if let Some(entry) = cached {
            // A store through a clean entry must set the dirty bit in memory, and so walks.
            if permits(entry) && (!access.write || entry & DIRTY != 0) {
                return Ok((entry & FRAME) + address % PAGE_SIZE);
            }
            if !permits(entry) {
                self.0.coherence.platform().invalidate_page(page);
                return Err(true);
            }
        }
        let entry = self.fill(page, access.write);
        if entry.is_some_and(permits) {
            return Ok((entry.unwrap_or(0) & FRAME) + address % PAGE_SIZE);
        }
        // A fault drops the translation of its address, and the upper levels.
        self.0.coherence.platform().invalidate_page(page);
        Err(entry.is_some())
    }

    /// Walks and caches, as hardware may at any time, for a store only what allows one; the entry, if it is present.
    pub fn fill(&self, page: u64, write: bool) -> Option<u64> {
        let number = self.current_cpu().index();
        let (root, upper) = {
            let cpus = self.0.coherence.platform().cpus.lock().unwrap();
            (cpus[number].root, cpus[number].upper_levels.get(&(page >> 21)).copied())
        };
        if root == KERNEL_ROOT {
            return None;
        }
        if upper.is_none()
            && let Some((table, index, mut entry)) = self.walk_to_large(root, page)
        {
            if write && entry & WRITABLE == 0 {
                return Some(piece(entry, page));
            }
            entry |= if write { ACCESSED | DIRTY } else { ACCESSED };
            let frame = FrameNumber::containing(table).unwrap();
            self.0.frames.write(frame, index as usize * 8, &entry.to_ne_bytes());
            let mut cpus = self.0.coherence.platform().cpus.lock().unwrap();
            cpus[number].translations.insert(large_key(page), entry);
            return Some(piece(entry, page));
        }
        let leaf = upper.or_else(|| self.walk_to_leaf(root, page))?;
        let index = page >> 12 & 511;
        let mut entry = self.word(leaf, index);
        let mut cpus = self.0.coherence.platform().cpus.lock().unwrap();
        cpus[number].upper_levels.insert(page >> 21, leaf);
        if entry & PRESENT == 0 {
            return None;
        }
        if write && entry & WRITABLE == 0 {
            return Some(entry);
        }
        entry |= if write { ACCESSED | DIRTY } else { ACCESSED };
        let frame = FrameNumber::containing(leaf).unwrap();
        self.0.frames.write(frame, index as usize * 8, &entry.to_ne_bytes());
        cpus[number].translations.insert(page, entry);
        Some(entry)
    }

    /// Whether this CPU has a translation of a small page cached.
    pub fn has_cached(&self, page: u64) -> bool {
        let number = self.current_cpu().index();
        self.0.coherence.platform().cpus.lock().unwrap()[number].translations.contains_key(&page)
    }

    /// Asserts that no CPU has anything cached which the tables do not allow any more: translations of spaces in use,
    /// and upper levels also of spaces that are only borrowed.
    pub fn check_caches(&self) {
        let cpus = self.0.coherence.platform().cpus.lock().unwrap();
        let loaded = self.0.loaded.lock().unwrap();
        for (number, cpu) in cpus.iter().enumerate().filter(|(_, cpu)| cpu.root != KERNEL_ROOT) {
            assert!(loaded[number].as_ref().is_some_and(|space| space.is_loaded_by(cpu.root)));
            for (region, leaf) in &cpu.upper_levels {
                let now = self.walk_to_leaf(cpu.root, region << 21);
                assert_eq!(
                    now,
                    Some(*leaf),
                    "CPU {number} walks a table of {:#x} that was freed",
                    region << 21
                );
            }
            if cpu.is_lazy {
                continue;
            }
            for (page, cached) in &cpu.translations {
                // Two sizes of one address never contradict each other, but must not be there together either.
                let now = if page & 1 == 1 {
                    self.walk_to_large(cpu.root, *page).map_or(0, |(_, _, entry)| entry)
                } else {
                    let leaf = self.walk_to_leaf(cpu.root, *page);
                    leaf.map_or(0, |leaf| self.word(leaf, page >> 12 & 511))
                };
                let is_allowed = now & PRESENT != 0
                    && now & FRAME == cached & FRAME
                    && (cached & WRITABLE == 0 || now & WRITABLE != 0)
                    && (cached & NO_EXECUTE != 0 || now & NO_EXECUTE == 0);
                assert!(is_allowed, "CPU {number} holds {cached:#x} for {page:#x}, which now has {now:#x}");
            }
        }
    }
}
