//! CPU numbers and sets of CPUs.
//!
//! [`CpuSet`] is a plain value. [`AtomicCpuSet`] is shared: CPUs insert and remove *themselves* and others read it. A read of
//! a set of more than one word is not a snapshot of one moment, and need not be: every argument in this crate is about one
//! CPU's bit at a time, and a bit lies in one word.

use core::fmt;

use crate::MAX_CPUS;
use crate::sync::{AtomicU64, Ordering, array_of, constructor};

const WORDS: usize = MAX_CPUS.div_ceil(64);

/// The number of a CPU: below [`MAX_CPUS`], dense, and fixed while the system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(u16);

impl CpuId {
    /// The CPU with this number, or `None` if this build has no room for it.
    pub const fn new(number: usize) -> Option<Self> {
        if number < MAX_CPUS { Some(CpuId(number as u16)) } else { None }
    }

    /// The number, as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    const fn word(self) -> usize {
        self.index() / 64
    }

    const fn bit(self) -> u64 {
        1 << (self.index() % 64)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A set of CPUs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// The set of no CPU.
    pub const EMPTY: Self = CpuSet { words: [0; WORDS] };

    /// Adds a CPU; says whether it was missing.
    #[inline]
    pub const fn insert(&mut self, cpu: CpuId) -> bool {
        let missing = !self.contains(cpu);
        self.words[cpu.word()] |= cpu.bit();
        missing
    }

    /// Takes a CPU out; says whether it was there.
    #[inline]
    pub const fn remove(&mut self, cpu: CpuId) -> bool {
        let present = self.contains(cpu);
        self.words[cpu.word()] &= !cpu.bit();
        present
    }

    /// Whether the CPU is in the set.
    #[inline]
    pub const fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.word()] & cpu.bit() != 0
    }

    /// Whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// How many CPUs are in the set.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The CPUs that are in either set.
    #[must_use]
    #[inline]
    pub fn union(&self, other: &Self) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(word, other)| *word |= other);
        CpuSet { words }
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(word, other)| *word &= other);
        CpuSet { words }
    }

    /// The CPUs of this set that are not in the other.
    #[must_use]
    #[inline]
    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(word, other)| *word &= !other);
        CpuSet { words }
    }

    /// The CPUs, in ascending order.
    #[inline]
    pub fn iter(&self) -> CpuSetIter {
        CpuSetIter { rest: *self }
    }

    /// The set as words of 64 CPUs, CPU 0 in the lowest bit of the first.
    pub fn as_words(&self) -> &[u64] {
        &self.words
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter().map(CpuId::index)).finish()
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut set = CpuSet::EMPTY;
        cpus.into_iter().for_each(|cpu| {
            set.insert(cpu);
        });
        set
    }
}

impl From<CpuId> for CpuSet {
    fn from(cpu: CpuId) -> Self {
        CpuSet::from_iter([cpu])
    }
}

impl IntoIterator for &CpuSet {
    type Item = CpuId;
    type IntoIter = CpuSetIter;

    fn into_iter(self) -> CpuSetIter {
        self.iter()
    }
}

/// The CPUs of a [`CpuSet`], in ascending order.
#[derive(Clone, Debug)]
pub struct CpuSetIter {
    rest: CpuSet,
}

impl Iterator for CpuSetIter {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        let word = self.rest.words.iter().position(|word| *word != 0)?;
        let number = word * 64 + self.rest.words[word].trailing_zeros() as usize;
        // Clears the lowest bit that is set.
        self.rest.words[word] &= self.rest.words[word] - 1;
        CpuId::new(number)
    }
}

/// A set of CPUs that several CPUs change and read.
#[derive(Debug)]
pub struct AtomicCpuSet {
    words: [AtomicU64; WORDS],
}

impl AtomicCpuSet {
    constructor! {
        /// A set of no CPU.
        pub fn new() -> Self {
            AtomicCpuSet { words: array_of!(AtomicU64::new(0)) }
        }
    }

    /// Adds a CPU with the given ordering, and says whether the word that holds its bit was empty before.
    #[inline]
    pub(crate) fn insert(&self, cpu: CpuId, ordering: Ordering) -> bool {
        self.words[cpu.word()].fetch_or(cpu.bit(), ordering) == 0
    }

    /// `insert` as a load and a store: wrong, and kept so that the explorer shows that it can tell.
    #[cfg(simulated)]
    pub(crate) fn insert_by_plain_store(&self, cpu: CpuId) {
        let word = &self.words[cpu.word()];
        word.store(word.load(Ordering::Relaxed) | cpu.bit(), Ordering::Relaxed);
    }

    /// `remove` as a load and a store, as wrong.
    #[cfg(simulated)]
    pub(crate) fn remove_by_plain_store(&self, cpu: CpuId) {
        let word = &self.words[cpu.word()];
        word.store(word.load(Ordering::Relaxed) & !cpu.bit(), Ordering::Relaxed);
    }

    /// Takes a CPU out with the given ordering.
    #[inline]
    pub(crate) fn remove(&self, cpu: CpuId, ordering: Ordering) {
        self.words[cpu.word()].fetch_and(!cpu.bit(), ordering);
    }

    /// Takes every CPU out, and returns those that were in.
    #[inline]
    pub(crate) fn take(&self, ordering: Ordering) -> CpuSet {
        CpuSet { words: core::array::from_fn(|word| self.words[word].swap(0, ordering)) }
    }

    /// The CPUs that are in, read with the given ordering.
    #[inline]
    pub fn load(&self, ordering: Ordering) -> CpuSet {
        CpuSet { words: core::array::from_fn(|word| self.words[word].load(ordering)) }
    }
}

impl Default for AtomicCpuSet {
    fn default() -> Self {
        AtomicCpuSet::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn cpu(number: usize) -> CpuId {
        CpuId::new(number).unwrap()
    }

    fn set(numbers: &BTreeSet<usize>) -> CpuSet {
        numbers.iter().map(|number| cpu(*number)).collect()
    }

    /// Sets that reach both ends of the words.
    fn samples() -> Vec<BTreeSet<usize>> {
        let edges = [0, 1, MAX_CPUS / 2, MAX_CPUS - 1];
        (0..1 << edges.len())
            .map(|chosen: usize| {
                (0..edges.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| edges[bit]).collect()
            })
            .collect()
    }

    #[test]
    fn numbers_end_at_the_room_there_is() {
        assert_eq!(CpuId::new(MAX_CPUS - 1).map(CpuId::index), Some(MAX_CPUS - 1));
        assert_eq!(CpuId::new(MAX_CPUS), None);
        assert_eq!(CpuId::new(usize::MAX), None);
    }

    #[test]
    fn sets_behave_as_sets() {
        for one in samples() {
            assert_eq!(set(&one).iter().map(CpuId::index).collect::<BTreeSet<_>>(), one);
            assert_eq!(set(&one).len(), one.len());
            assert_eq!(set(&one).is_empty(), one.is_empty());
            for two in samples() {
                assert_eq!(set(&one).union(&set(&two)), set(&(&one | &two)));
                assert_eq!(set(&one).intersection(&set(&two)), set(&(&one & &two)));
                assert_eq!(set(&one).difference(&set(&two)), set(&(&one - &two)));
            }
        }
    }

    #[test]
    fn iteration_ascends() {
        let all: CpuSet = (0..MAX_CPUS).rev().map(cpu).collect();
        assert_eq!(all.iter().map(CpuId::index).collect::<Vec<_>>(), (0..MAX_CPUS).collect::<Vec<_>>());
    }

    #[test]
    fn changes_say_what_was_there() {
        let mut set = CpuSet::EMPTY;
        assert!(set.insert(cpu(3)));
        assert!(!set.insert(cpu(3)));
        assert!(set.remove(cpu(3)));
        assert!(!set.remove(cpu(3)));
    }

    #[test]
    fn an_inbox_says_who_came_first() {
        let inbox = AtomicCpuSet::new();
        assert!(inbox.insert(cpu(1), Ordering::Relaxed));
        assert!(!inbox.insert(cpu(2), Ordering::Relaxed));
        assert_eq!(inbox.take(Ordering::Relaxed), [cpu(1), cpu(2)].into_iter().collect());
        assert!(inbox.load(Ordering::Relaxed).is_empty());
        assert!(inbox.insert(cpu(2), Ordering::Relaxed));
        inbox.remove(cpu(2), Ordering::Relaxed);
        assert_eq!(inbox.load(Ordering::Relaxed), CpuSet::EMPTY);
    }
}
