//! Ranges of user addresses that have been checked.
//!
//! A number that comes from a program is an allegation. It becomes a [`PageRange`] here, once, or a [`RangeError`]
//! that says which rule it broke (system calls answer the same mistake with different errnos, so the mapping to an
//! errno is the caller's). Everything behind this point may rely on: page-aligned, not empty, inside user space.

/// Bytes in a page, the only size that user mappings come in.
pub const PAGE_SIZE: u64 = 4096;
/// The first address that user space may not use: the top page of the lower half stays empty so that a `syscall`
/// instruction at its very end cannot return to a non-canonical address.
pub const USER_END: u64 = 0x0000_7fff_ffff_f000;

/// Which rule a pair of numbers broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The start is not a multiple of the page size.
    Unaligned,
    /// The length is zero.
    Empty,
    /// The end lies beyond user space, or does not fit in 64 bits.
    TooHigh,
}

/// A non-empty, page-aligned range of user addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    start: u64,
    end: u64,
}

impl PageRange {
    /// Checks an address and a length in bytes; the length is rounded up to whole pages.
    ///
    /// # Errors
    /// The first broken rule, in the order of [`RangeError`]'s variants.
    pub fn new(address: u64, length: u64) -> Result<Self, RangeError> {
        if !is_aligned(address) {
            return Err(RangeError::Unaligned);
        }
        if length == 0 {
            return Err(RangeError::Empty);
        }
        let length = round_up(length).ok_or(RangeError::TooHigh)?;
        let end = address.checked_add(length).ok_or(RangeError::TooHigh)?;
        if end > USER_END {
            return Err(RangeError::TooHigh);
        }
        Ok(Self { start: address, end })
    }

    /// The range between two aligned addresses, or `None` when it would be empty.
    pub(crate) fn between(start: u64, end: u64) -> Option<Self> {
        debug_assert!(is_aligned(start) && is_aligned(end) && end <= USER_END);
        (start < end).then_some(Self { start, end })
    }

    /// An area's range, which was checked when the area was made.
    pub(crate) const fn of_area(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// All of user space.
    pub(crate) const fn whole() -> Self {
        Self { start: 0, end: USER_END }
    }

    /// First address.
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// First address behind the range.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Length in bytes.
    pub const fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Length in pages.
    pub const fn pages(&self) -> u64 {
        self.length() / PAGE_SIZE
    }

    /// Whether `address` lies inside.
    pub const fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether all of `other` lies inside.
    pub const fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the two share an address.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// What the two share.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        Self::between(self.start.max(other.start), self.end.min(other.end))
    }
}

/// Whether an address or length is a multiple of the page size.
pub const fn is_aligned(value: u64) -> bool {
    value.is_multiple_of(PAGE_SIZE)
}

/// Down to a multiple of the page size.
pub const fn round_down(value: u64) -> u64 {
    value & !(PAGE_SIZE - 1)
}

/// Up to a multiple of the page size; `None` when that does not fit.
pub const fn round_up(value: u64) -> Option<u64> {
    match value.checked_add(PAGE_SIZE - 1) {
        Some(sum) => Some(round_down(sum)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checked_range_is_aligned_non_empty_and_in_user_space() {
        assert_eq!(PageRange::new(1, 1), Err(RangeError::Unaligned));
        assert_eq!(PageRange::new(4096, 0), Err(RangeError::Empty));
        assert_eq!(PageRange::new(4096, u64::MAX), Err(RangeError::TooHigh));
        assert_eq!(PageRange::new(!0xfff, 4096), Err(RangeError::TooHigh));
        assert_eq!(PageRange::new(USER_END, 1), Err(RangeError::TooHigh));
        let last = PageRange::new(USER_END - 4096, 1).unwrap();
        assert_eq!((last.pages(), last.end()), (1, USER_END));
    }

    #[test]
    fn intersections_are_exact() {
        let range = PageRange::new(0x1000, 0x3000).unwrap();
        let other = PageRange::new(0x3000, 0x3000).unwrap();
        assert_eq!(range.intersection(&other), PageRange::between(0x3000, 0x4000));
        assert_eq!(range.intersection(&PageRange::new(0x4000, 1).unwrap()), None);
    }
}
