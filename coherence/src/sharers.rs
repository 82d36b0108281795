//! Who may hold an entry is known for each table, and not only for the whole space.
//!
//! Where all CPUs walk the same upper tables, every one that has the space loaded may hold any of its entries. A memory manager that gives
//! each CPU upper tables of its own knows better: a CPU finds a leaf table only after it has *linked* it, in a page fault, into its own. Each leaf
//! table has its [`Sharers`], the CPUs that have linked it; and a change of its entries concerns nobody else.
//!
//! ```text
//!  who changes an entry of table T                  CPU C, in a page fault at T's addresses
//!  change the entry                                 join T's sharers
//!  FENCE  <---------------------------------------> FENCE
//!  read T's sharers                                 link T into C's own upper table; from now on C walks it
//! ```
//!
//! Either the change's fence comes first, and what C's walker finds in T is the changed entry; or C's does, and C is found among the sharers. The
//! operation tells the sharers that are active in the space, and no other CPU.
//!
//! **What is not known concerns everyone.** A gather takes each change to concern all CPUs unless the caller says under which table it was
//! made, with [`Gather::within`], after it was made. So a caller that never says so loses nothing but the saving.
//!
//! **A CPU that is not told stays behind** in its generation, as if it had been away. The next request that does reach it finds a gap and drops everything
//! (`decision.rs`), and so does its next switch to the space. That is once for any number of operations of others.
//!
//! **A change that only this CPU's tables lead to** is flushed here and nowhere else, and has no generation: nobody else ever has to catch up
//! with it, neither those that are away (they have linked nothing), nor this one.
//!
//! **What other operations and batches owe concerns everyone**: an operation that meets one does not know under which tables that worked.
//!
//! **A CPU leaves the sharers of a table** when it has dropped everything it has cached of the space, and its upper tables lead there no more.

use crate::fault::Fault;
use crate::flush::Extent;
use crate::shootdown::Executor;
use crate::sync::{AtomicU64, Ordering, constructor, fence};
use crate::{Cause, Coherence, CpuId, CpuSet, Executed, Flush, Gather, Platform, Reason, Row, Space};

/// The CPUs that may hold entries of one table. All from number 63 on stand for each other.
#[derive(Debug)]
pub struct Sharers(AtomicU64);

/// What was read of [`Sharers`], of one table or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharerSet(u64);

/// The bit of all CPUs that have none of their own.
const REST: usize = 63;

const fn bit(cpu: CpuId) -> u64 {
    1 << if cpu.index() < REST { cpu.index() } else { REST }
}

impl SharerSet {
    /// None.
    pub const NOBODY: Self = SharerSet(0);
    /// All CPUs: it is not known who.
    pub const EVERYONE: Self = SharerSet(u64::MAX);

    /// Those in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        SharerSet(self.0 | other.0)
    }

    /// Whether that CPU may be one.
    pub const fn contains(self, cpu: CpuId) -> bool {
        self.0 & bit(cpu) != 0
    }

    /// Whether it is known that nobody else is one.
    pub(crate) const fn is_at_most(self, cpu: CpuId) -> bool {
        self.0 & !bit(cpu) == 0 && cpu.index() < REST
    }

    fn among(self, cpus: &CpuSet) -> CpuSet {
        cpus.iter().filter(|cpu| self.contains(*cpu)).collect()
    }
}

impl Sharers {
    constructor! {
        /// Of a table that no CPU finds.
        pub fn new() -> Self {
            Sharers(AtomicU64::new(0))
        }
    }

    /// The table has a new use. To be called before any CPU finds it.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the CPU is among them. Exact for that CPU itself.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.load().contains(cpu)
    }

    /// Release: this CPU has dropped all that it had cached by way of the table, and will not find it again.
    pub fn leave(&self, me: CpuId) {
        self.0.fetch_and(!bit(me), Ordering::Release);
    }

    /// Acquire: pairs with `leave`. Who misses a CPU finds what it did through old entries done.
    #[inline]
    fn load(&self) -> SharerSet {
        SharerSet(self.0.load(Ordering::Acquire))
    }
}

impl Default for Sharers {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Coherence<P> {
    /// This CPU is about to find a table: to be called before it is linked, and before the CPU's walker could find it.
    #[inline]
    pub fn join_sharers(&self, me: CpuId, sharers: &Sharers) {
        sharers.0.fetch_or(bit(me), Ordering::Relaxed);
        // Full fence, between joining and the first walk through the table. It pairs with the one in `Gather::within`, between the change of an
        // entry and reading the sharers. Without either, both could read the old: the operation sharers without this CPU, and this CPU the
        // entry as it was. Then nobody would flush it here.
        if !self.has_fault(Fault::NoFenceSharing) {
            fence(Ordering::SeqCst);
        }
    }

    /// As [`flush`](Self::flush), of what only these CPUs may hold.
    pub(crate) fn flush_among(&self, space: &Space, flush: Flush, cause: Cause, sharers: SharerSet) {
        let me = self.platform.current_cpu();
        let is_own = sharers.is_at_most(me) && self.uses(me, space);
        if !is_own || self.is_suppressed(cause) {
            self.flush_for(space, flush, cause, sharers);
            return;
        }
        let flush = self.limit(me, flush);
        self.count(me, Row::Requested(cause));
        let others = space.active.load(Ordering::Relaxed).len().saturating_sub(1);
        self.cpu(me).counters.add(Row::Skipped(Reason::NotSharing), others as u64);
        self.platform.without_interrupts(|| self.drop_own(me, flush));
        self.tell_devices(me, space, flush);
    }

    /// Drops what only this CPU has cached of the space that it uses. Interrupts are off.
    fn drop_own(&self, me: CpuId, flush: Flush) {
        match flush.extent {
            Extent::Range(range) => self.invalidate_range(me, &range, Executor::Initiator { remote: false }),
            Extent::All => {
                self.platform.invalidate_all();
                self.count(me, Row::Executed(Executed::LocalFull));
            }
        }
    }

    /// Of those who have the space loaded, those that may hold what was changed.
    pub(crate) fn sharing(&self, me: CpuId, sharers: SharerSet, cpus: CpuSet) -> CpuSet {
        if sharers == SharerSet::EVERYONE {
            return cpus;
        }
        let sharing = sharers.among(&cpus);
        self.cpu(me).counters.add(Row::Skipped(Reason::NotSharing), (cpus.len() - sharing.len()) as u64);
        sharing
    }
}

impl<P: Platform, L> Gather<'_, P, L> {
    /// What was changed or added since the last call of this is in tables that only these CPUs can have found: the sharers of a leaf
    /// table, say, and those who find every table. To be called under the lock of the table, after its entries were changed.
    #[inline]
    pub fn within(&mut self, all_of: &[&Sharers]) {
        if !self.coherence.switches().sharers {
            return;
        }
        if !self.coherence.has_fault(Fault::NoFenceBeforeSharers) {
            fence(Ordering::SeqCst);
        }
        let sharers = all_of.iter().fold(SharerSet::NOBODY, |sharers, those| sharers.union(those.load()));
        self.concern(sharers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(numbers: &[usize]) -> SharerSet {
        numbers.iter().fold(SharerSet::NOBODY, |set, number| set.union(SharerSet(bit(cpu(*number)))))
    }

    fn cpu(number: usize) -> CpuId {
        CpuId::new(number).expect("there are 70 in unit tests")
    }

    #[test]
    fn cpus_without_a_bit_of_their_own_stand_for_each_other() {
        let set = set_of(&[62]);
        assert!(set.contains(cpu(62)) && set.is_at_most(cpu(62)));
        assert!(!set.contains(cpu(61)) && !set.contains(cpu(63)) && !set.is_at_most(cpu(61)));
        let rest = set_of(&[63]);
        assert!(
            [63, 64, 69].iter().all(|number| rest.contains(cpu(*number)) && !rest.is_at_most(cpu(*number)))
        );
        assert!(!rest.contains(cpu(62)) && !rest.is_at_most(cpu(62)));
        assert_eq!(set_of(&[69]), rest);
        assert!(SharerSet::NOBODY.is_at_most(cpu(0)) && !SharerSet::EVERYONE.is_at_most(cpu(0)));
    }
}
