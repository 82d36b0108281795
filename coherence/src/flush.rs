//! What to invalidate: pages of one size in a range, or everything; and whether page tables are freed with it.

/// The invalidation that a change of the tables calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    pub(crate) extent: Extent,
    pub(crate) tables_freed: bool,
}

/// Which addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Range(PageRange),
    All,
}

/// Pages of `stride` bytes from `start` up to `end`: not empty, and both are multiples of the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) stride: u64,
}

impl PageRange {
    pub(crate) fn pages(&self) -> u64 {
        (self.end - self.start) / self.stride
    }

    /// The smallest range that holds both. The smaller stride: an invalidation drops a large page by any address in it,
    /// and steps of the large size would jump over small ones.
    fn hull(&self, other: &Self) -> Self {
        PageRange {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            stride: self.stride.min(other.stride),
        }
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let PageRange { start, stride, .. } = *self;
        (0..self.pages()).map(move |page| start + page * stride)
    }
}

impl Flush {
    /// Up to how many pages a flush goes page by page, unless [`set_ceiling`](crate::Coherence::set_ceiling) says otherwise.
    /// Beyond it, dropping everything and walking again is cheaper.
    pub const DEFAULT_CEILING: u64 = 33;

    /// The whole address space.
    pub const fn all() -> Self {
        Flush { extent: Extent::All, tables_freed: false }
    }

    /// The page of `size` bytes that holds the address.
    ///
    /// # Panics
    /// If the size is not a power of two.
    #[inline]
    pub const fn page(address: u64, size: u64) -> Self {
        Self::range(address, address + 1, size)
    }

    /// The pages from `start` up to `end`, the smallest of which has `stride` bytes. Rounded outwards to that size.
    ///
    /// # Panics
    /// If the range is empty, the stride is not a power of two, or rounding up passes the end of the address space.
    pub const fn range(start: u64, end: u64, stride: u64) -> Self {
        assert!(stride.is_power_of_two(), "a stride must be a power of two");
        assert!(start < end, "a range to flush must not be empty");
        let range = PageRange { start: start & !(stride - 1), end: end.next_multiple_of(stride), stride };
        Flush { extent: Extent::Range(range), tables_freed: false }
    }

    /// The same, where page tables that mapped these addresses are freed: CPUs that borrow the space must hear of it too.
    #[must_use]
    pub const fn freeing_tables(self) -> Self {
        Flush { tables_freed: true, ..self }
    }

    /// One flush that covers both.
    #[must_use]
    #[inline]
    pub fn merge(&self, other: &Self) -> Self {
        let extent = match (self.extent, other.extent) {
            (Extent::Range(one), Extent::Range(two)) => Extent::Range(one.hull(&two)),
            _ => Extent::All,
        };
        Flush { extent, tables_freed: self.tables_freed || other.tables_freed }
    }

    /// `merge` with the larger stride: wrong, and kept so that the explorer shows that it can tell.
    #[cfg(simulated)]
    pub(crate) fn merge_with_largest_stride(&self, other: &Self) -> Self {
        let merged = self.merge(other);
        match (self.extent, other.extent) {
            (Extent::Range(one), Extent::Range(two)) => {
                let range = one.hull(&two);
                let range = Flush::range(range.start, range.end, one.stride.max(two.stride));
                Flush { tables_freed: merged.tables_freed, ..range }
            }
            _ => merged,
        }
    }

    /// How many pages it goes through, or `None` for all there are.
    pub fn pages(&self) -> Option<u64> {
        match self.extent {
            Extent::Range(range) => Some(range.pages()),
            Extent::All => None,
        }
    }

    /// The address of the first page, how many there are, and how far they are apart; `None` for everything. A page that is
    /// larger than that distance is dropped by any address in it.
    pub fn span(&self) -> Option<(u64, u64, u64)> {
        match self.extent {
            Extent::Range(range) => Some((range.start, range.pages(), range.stride)),
            Extent::All => None,
        }
    }

    /// Whether page tables are freed with it.
    pub const fn frees_tables(&self) -> bool {
        self.tables_freed
    }

    /// The same flush, of everything if it has more pages than the ceiling.
    #[must_use]
    #[inline]
    pub(crate) fn limited_to(&self, ceiling: u64) -> Self {
        match self.extent {
            Extent::Range(range) if range.pages() > ceiling => Flush { extent: Extent::All, ..*self },
            _ => *self,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const SMALL: u64 = 0x1000;
    const LARGE: u64 = 0x20_0000;

    fn range(flush: Flush) -> PageRange {
        match flush.extent {
            Extent::Range(range) => range,
            Extent::All => panic!("a range was expected"),
        }
    }

    /// The addresses, in units of the small page, whose entries a flush drops at any page size up to its stride.
    fn dropped(flush: Flush) -> BTreeSet<u64> {
        let range = range(flush);
        range.addresses().flat_map(|start| (start..start + range.stride).step_by(SMALL as usize)).collect()
    }

    #[test]
    fn ranges_are_rounded_outwards() {
        let expected = PageRange { start: 0x1000, end: 0x3000, stride: SMALL };
        assert_eq!(range(Flush::range(0x1001, 0x2001, SMALL)), expected);
        assert_eq!(range(Flush::range(0x1000, 0x3000, SMALL)), expected);
        assert_eq!(
            range(Flush::page(LARGE + 5, LARGE)),
            PageRange { start: LARGE, end: 2 * LARGE, stride: LARGE }
        );
        assert_eq!(Flush::range(0, 3 * LARGE, LARGE).pages(), Some(3));
        assert_eq!(Flush::all().pages(), None);
    }

    #[test]
    #[should_panic(expected = "must not be empty")]
    fn an_empty_range_is_refused() {
        let _ = Flush::range(0x1000, 0x1000, SMALL);
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn an_odd_stride_is_refused() {
        let _ = Flush::range(0x1000, 0x2000, 0x1800);
    }

    #[test]
    fn addresses_step_by_the_stride() {
        let addresses: Vec<u64> = range(Flush::range(LARGE, 4 * LARGE, LARGE)).addresses().collect();
        assert_eq!(addresses, [LARGE, 2 * LARGE, 3 * LARGE]);
    }

    #[test]
    fn a_merged_flush_drops_what_either_drops() {
        let flushes: Vec<Flush> = [SMALL, 2 * SMALL, 4 * SMALL]
            .into_iter()
            .flat_map(|stride| (0..8).map(move |page| (stride, page)))
            .flat_map(|(stride, page)| {
                (1..4).map(move |pages| (page * SMALL, (page + pages) * SMALL, stride))
            })
            .map(|(start, end, stride)| Flush::range(start, end, stride))
            .collect();
        for one in &flushes {
            for two in &flushes {
                let merged = one.merge(two);
                assert!(dropped(merged).is_superset(&dropped(*one)), "{one:?} {two:?}");
                assert!(dropped(merged).is_superset(&dropped(*two)), "{one:?} {two:?}");
                assert_eq!(range(merged).stride, range(*one).stride.min(range(*two).stride));
                assert_eq!(merged, two.merge(one));
            }
        }
    }

    #[test]
    fn everything_and_freed_tables_survive_a_merge() {
        let page = Flush::page(0, SMALL);
        assert_eq!(page.merge(&Flush::all()), Flush::all());
        assert_eq!(Flush::all().merge(&page), Flush::all());
        assert!(page.merge(&page.freeing_tables()).frees_tables());
        assert!(page.freeing_tables().merge(&page).frees_tables());
        assert!(!page.merge(&page).frees_tables());
    }

    #[test]
    fn more_pages_than_the_ceiling_are_everything() {
        let pages = |count| Flush::range(0, count * LARGE, LARGE);
        assert_eq!(pages(33).limited_to(33), pages(33));
        assert_eq!(pages(34).limited_to(33), Flush::all());
        assert_eq!(pages(34).freeing_tables().limited_to(33), Flush::all().freeing_tables());
        assert_eq!(pages(1).limited_to(0), Flush::all());
        assert_eq!(Flush::all().limited_to(33), Flush::all());
    }
}
