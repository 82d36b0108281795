//! What a range shows that others see too: for `msync`.

use alloc::vec::Vec;
use core::ops::Range;

use crate::address_space::AddressSpace;
use crate::area::AreaFlags;
use crate::backing::BackingRef;
use crate::environment::Environment;
use crate::range::{PAGE_SIZE, PageRange};

impl<E: Environment> AddressSpace<E> {
    /// Whether a range has locked pages, which must not be given up: what `MS_INVALIDATE` asks.
    pub fn has_locked(&self, range: PageRange) -> bool {
        self.shared().areas.overlapping(range).any(|area| area.has_flag(AreaFlags::LOCKED))
    }

    /// The objects of which areas in a range show pages that they share, and which.
    pub fn shared_pages(&self, range: PageRange) -> Vec<(BackingRef<E>, Range<u64>)> {
        let layout = self.shared();
        let shared = layout.areas.overlapping(range).filter(|area| area.is_shared());
        let shown = shared.filter_map(|area| {
            let (start, end) = (area.start().max(range.start()), area.end().min(range.end()));
            let (backing, first) = area.shown(start)?;
            Some((backing.clone(), first..first + (end - start) / PAGE_SIZE))
        });
        shown.collect()
    }
}
