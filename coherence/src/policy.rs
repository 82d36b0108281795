//! Must this change of an entry be flushed? Every "no" carries its reason.
//!
//! The question is what a conforming TLB may hold of the *old* entry, and whether using that after the change would do
//! something which the *new* entry forbids. A cached entry that allows less than the new one does no harm: the access faults,
//! the handler finds that the entry in memory allows it, and retries (a *spurious* fault, which it must count with
//! [`spurious_fault`](crate::Coherence::spurious_fault) and must not answer with a signal or a copy).
//!
//! **Write taken from an entry that is not dirty.** A CPU that has cached such an entry must mark it dirty before its first store
//! goes through. Where it does so in one locked step that looks at the entry again, it finds the right gone and faults, and nothing need be
//! flushed: either its step came before the exchange, which then returned a dirty entry, or it comes after it, and the store is not made.
//! No CPU has a dirty copy of an entry that is not dirty, since `DirtyCleared` is always flushed. But not every processor takes that step
//! as one, and some mark an entry dirty, and store, that has just lost the right (`docs/design/0021-clean-entries.md`). So the mechanism
//! `clean` is off by default, and `needed.clean_write_removed` counts what it would skip.
//!
//! **An entry that no CPU has used.** Hardware marks an entry as used, in one step with its look at it, before it caches anything of it. So
//! of an entry without the mark no CPU has a copy, unless the mark was taken away and its copies were not flushed. Whoever keeps entries says
//! which are [`unused`](Translation::unused) in this strict sense; to make an entry unused is a change that must be flushed (`CountsAsUnused`),
//! and to change one that is unused needs no flush, whatever the change. (`docs/design/0026-unused-entries.md`; `performance.md`, B2 and M5.)
//!
//! `old` must be the value that an atomic exchange returned: hardware sets accessed and dirty bits until that very moment.

use crate::Switches;
use crate::names::names;

/// An entry of a page table that maps a page, as far as the decision depends on it.
///
/// If `present` is false, hardware looks at nothing else, and neither does [`decide`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Hardware may use (and cache) it.
    pub present: bool,
    /// The frame's number or address; only compared.
    pub frame: u64,
    /// Writes are allowed.
    pub writable: bool,
    /// User mode may use it. To the kernel it is then closed (SMEP, SMAP), so this right goes to one side or the other.
    pub user: bool,
    /// Instructions may be fetched.
    pub executable: bool,
    /// It has been used.
    pub accessed: bool,
    /// No CPU has anything of it in its caches: it has not been marked as used since its copies were last flushed, or since it was made. One
    /// whose mark was taken away without a flush is not unused, though it is not `accessed` either.
    pub unused: bool,
    /// It has been written through.
    pub dirty: bool,
    /// It outlives a switch of the address space.
    pub global: bool,
    /// It maps a page larger than the smallest.
    pub huge: bool,
    /// All other bits that hardware reads: cache attributes, protection key. Only compared.
    pub other: u64,
    /// Bits that hardware ignores.
    pub software: u64,
}

/// What [`decide`] decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// CPUs may hold something that is no longer allowed: invalidate before anyone relies on the change.
    Flush(Why),
    /// Nothing that a CPU may hold does harm.
    Skip(Reason),
}

/// Decides whether the change from `old` to `new` must be flushed. The first rule that applies gives the answer.
#[inline]
pub fn decide(old: &Translation, new: &Translation, switches: &Switches) -> Decision {
    if !old.present {
        return Decision::Skip(Reason::NotPresentBefore);
    }
    let decision = decide_for_copies(old, new, switches);
    // There are no copies.
    if old.unused && switches.unused && matches!(decision, Decision::Flush(_)) {
        return Decision::Skip(Reason::Unused);
    }
    decision
}

/// As [`decide`], where CPUs may hold copies of the old entry.
#[inline]
fn decide_for_copies(old: &Translation, new: &Translation, switches: &Switches) -> Decision {
    if let Some(why) = demotion(old, new) {
        return Decision::Flush(why);
    }
    // From an entry that is not dirty, or it had been a demotion.
    let write_is_taken = old.writable && !new.writable;
    let adds = (!old.writable && new.writable) || (!old.executable && new.executable);
    if write_is_taken && !switches.clean {
        return Decision::Flush(Why::CleanWriteRemoved);
    }
    if adds && !switches.promotion {
        return Decision::Flush(Why::PermissionAdded);
    }
    Decision::Skip(if write_is_taken {
        Reason::CleanWriteRemoved
    } else if adds {
        Reason::Promotion
    } else if (new.accessed, new.dirty) != (old.accessed, old.dirty) {
        Reason::AccessedOrDirtyOnly
    } else if new.software != old.software {
        Reason::SoftwareBitsOnly
    } else {
        Reason::Unchanged
    })
}

/// What is taken away from, or changed under, whoever has cached `old`.
#[inline]
fn demotion(old: &Translation, new: &Translation) -> Option<Why> {
    let rules = [
        (!new.present, Why::Removed),
        (new.frame != old.frame, Why::FrameChanged),
        (new.huge != old.huge, Why::SizeChanged),
        // Whoever has cached an entry that is not dirty walks to it again before the first store: that is decided last.
        (old.writable && !new.writable && old.dirty, Why::WriteRemoved),
        // A store through a cached dirty entry would leave no mark in an entry that says clean.
        (old.dirty && !new.dirty, Why::DirtyCleared),
        (old.executable && !new.executable, Why::ExecuteRemoved),
        (new.user != old.user, Why::ModeChanged),
        (new.global != old.global || new.other != old.other, Why::AttributesChanged),
        // Whoever has a copy does not mark the entry again.
        (new.unused && !old.unused, Why::CountsAsUnused),
    ];
    rules.into_iter().find_map(|(applies, why)| applies.then_some(why))
}

names! {
    /// Why a change must be flushed.
    pub enum Why {
        Removed "removed": "The entry was taken out.",
        FrameChanged "frame_changed": "The entry maps another frame.",
        SizeChanged "size_changed": "The entry maps a page of another size.",
        WriteRemoved "write_removed": "Writes are no longer allowed.",
        CleanWriteRemoved "clean_write_removed": "Writes are no longer allowed, by an entry that was not dirty: the mechanism clean, which \
            is off, would not flush that.",
        DirtyCleared "dirty_cleared": "The page counts as clean again, and the next write must be noticed.",
        ExecuteRemoved "execute_removed": "Instruction fetches are no longer allowed.",
        ModeChanged "mode_changed": "The page was opened to one of user mode and kernel, and closed to the other.",
        AttributesChanged "attributes_changed": "A cache attribute, protection key or other bit that hardware reads has changed.",
        CountsAsUnused "counts_as_unused": "The entry counts as one that no CPU has used, from here on.",
        PermissionAdded "permission_added": "Permission was only added, which needs a flush only because the mechanism promotion is off.",
    }
}

names! {
    /// Why somebody need not be told, or nothing need be flushed.
    pub enum Reason {
        NotPresentBefore "not_present_before": "The entry was not present, so no CPU can have cached it.",
        Promotion "promotion": "Permission was only added; a CPU that cached the old entry faults once and retries.",
        CleanWriteRemoved "clean_write_removed": "Write was taken from an entry that was not dirty; a CPU that cached it looks at the entry \
            again before it stores, and faults.",
        Unused "unused": "No CPU has used the entry since it was last flushed, so none has cached it.",
        SoftwareBitsOnly "software_bits_only": "Only bits that hardware ignores have changed.",
        AccessedOrDirtyOnly "accessed_or_dirty_only": "Only the accessed bit changed, which is a hint, or the dirty bit was set.",
        Unchanged "unchanged": "The entry is what it was.",
        NothingToFlush "nothing_to_flush": "The operation ended without any change that had to be flushed.",
        NoOtherCpu "no_other_cpu": "No CPU but the initiator uses the address space.",
        LazyCpu "lazy_cpu": "The CPU only borrows the address space; it compares generations before it uses it again.",
        InterruptPending "interrupt_pending": "The CPU had an interrupt on its way that serves this request as well.",
        EpochReached "epoch_reached": "The CPU had flushed since, for another reason, when a frame of a deferred batch was needed.",
        NotSharing "not_sharing": "The CPU uses the address space, and has never found the table in which something changed.",
        InKernel "in_kernel": "The CPU was in the kernel; it passes a memory barrier, and flushes what it has missed, before it runs user code again.",
        ReachedRemotely "reached_remotely": "The machine dropped it on the CPU without an interrupt.",
        FlushedBeforeRunning "flushed_before_running": "The virtual CPU did not run, and its hypervisor flushes it before it does.",
        SharedRound "shared_round": "A barrier that another thread asked for later served this request as well.",
    }
}
