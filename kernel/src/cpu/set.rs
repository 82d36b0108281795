//! A set of CPUs, as affinity and placement use it.

use core::fmt;

use super::MAX_CPUS;

const _: () = assert!(MAX_CPUS == u64::BITS as usize);

/// A set of CPU indices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuSet(u64);

impl CpuSet {
    pub(crate) const ALL: Self = Self(u64::MAX);

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn single(cpu: usize) -> Self {
        Self(1 << cpu)
    }

    pub(crate) const fn contains(self, cpu: usize) -> bool {
        self.0 & 1 << cpu != 0
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, cpu: usize) -> Self {
        Self(self.0 & !(1 << cpu))
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The lowest member.
    pub(crate) const fn first(self) -> Option<usize> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros() as usize) }
    }

    /// The members in rising order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let next = CpuSet(rest).first()?;
            rest &= rest - 1;
            Some(next)
        })
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}
