//! The ledger: what was asked for, sent, received, done and avoided, per CPU.
//!
//! Each CPU counts what it does itself, so a row's per-CPU values say who did it and their sum is the system's. Counters only
//! grow; a reader takes differences. While other CPUs run, rows read one after the other are of slightly different moments.

use core::fmt;

use crate::cpu::Cpu;
use crate::names::names;
use crate::sync::Counter;
use crate::{CpuId, MAX_CPUS, Reason, Why};

names! {
    /// The operation on whose behalf a flush, or a barrier, is requested.
    pub enum Cause {
        Munmap "munmap": "A mapping was removed.",
        Mmap "mmap": "A new mapping replaced what was there.",
        Mprotect "mprotect": "Permissions were changed.",
        Dontneed "dontneed": "madvise(MADV_DONTNEED) dropped pages.",
        Free "free": "madvise(MADV_FREE) gave pages up.",
        Madvise "madvise": "madvise() with other advice.",
        Mremap "mremap": "Pages were moved to another address.",
        Brk "brk": "The heap shrank.",
        Fork "fork": "fork() took write permission away to copy later.",
        CopyOnWrite "copy_on_write": "A shared page was replaced by a private copy.",
        Truncate "truncate": "A mapped file became shorter.",
        Reclaim "reclaim": "Pages were taken back while nobody asked, or are about to be.",
        Writeback "writeback": "Pages counted as clean from here on.",
        Merge "merge": "Pages with equal contents became one.",
        Userfault "userfaultfd": "A monitor took the right to write from pages that it watches.",
        Exec "exec": "A new program replaced the address space.",
        Exit "exit": "The address space ended.",
        Membarrier "membarrier": "membarrier() asked for a memory barrier on other CPUs.",
    }
}

names! {
    /// What an interrupt interrupted.
    pub enum Mode {
        User "user": "The CPU ran user code.",
        Kernel "kernel": "The CPU ran kernel code.",
        Idle "idle": "The CPU had nothing to do.",
    }
}

names! {
    /// What a CPU does about a request: the rows of the handler's decision table.
    pub enum Outcome {
        KernelRoot "kernel_root": "The CPU had no address space loaded; nothing to do.",
        NotLoaded "not_loaded": "The CPU had another address space loaded; it compares generations when it comes back.",
        LeftLazy "left_lazy": "The CPU only borrowed the address space and let go of it.",
        Covered "covered": "An earlier flush on this CPU covered the request.",
        Ranged "ranged": "Exactly this request was missing: its pages were invalidated one by one.",
        FullRequested "full_requested": "Exactly this request was missing and was for everything.",
        FullBehind "full_behind": "More than this request was missing: everything was invalidated.",
        StayedLazy "stayed_lazy": "The CPU only borrowed its address space, and compares generations before it uses it again.",
        Barrier "barrier": "Only a memory barrier was asked for.",
    }
}

names! {
    /// Invalidations executed.
    pub enum Executed {
        LocalFull "local_full": "Whole address spaces flushed by the CPU that asked.",
        LocalRanged "local_ranged": "Ranges flushed page by page by the CPU that asked.",
        LocalPages "local_pages": "Pages in those ranges.",
        RemoteFull "remote_full": "Whole address spaces flushed on request of another CPU.",
        RemoteRanged "remote_ranged": "Ranges flushed page by page on request of another CPU.",
        RemotePages "remote_pages": "Pages in those ranges.",
        SwitchFull "switch_full": "Whole address spaces flushed when they were switched to.",
        LazyFull "lazy_full": "Whole address spaces flushed on return from borrowing them, because something was missed.",
        ReturnFull "return_full": "Whole address spaces flushed on return to user mode, because something was missed in the kernel.",
    }
}

names! {
    /// Changes of what a CPU has loaded.
    pub enum Switched {
        Entered "entered": "Another address space was loaded.",
        Kept "kept": "The next thread uses the same address space; nothing to do.",
        WentLazy "went_lazy": "The CPU went on to borrow the address space it had loaded.",
        CameBack "came_back": "The CPU came back from borrowing and flushed first if it had missed something; `executed.lazy_full` counts those.",
        Left "left": "The kernel root was loaded.",
    }
}

names! {
    /// Everything else.
    pub enum Event {
        SpuriousFault "spurious_fault": "Faults on an access which the entry already allowed.",
        Gather "gather": "Operations that gathered their changes.",
        NestedGather "nested_gather": "Of those, how many flushed all that they promised because another one was in progress.",
        CleanFlush "clean_flush": "Flushes of operations that the mechanism clean, which is off, would have left out.",
        BatchRecorded "batch_recorded": "Changes whose flush waits for the end of a batch.",
        BatchSettled "batch_settled": "Operations that flushed everything because they came before the end of a batch.",
        BatchMet "batch_met": "Batches that took part in the flush of an operation that was not over.",
        EpochDeferred "epoch_deferred": "Batches that ended without a flush: it waits until their frames are needed.",
        EpochFree "epoch_free": "Of those, how many needed none at last, as every CPU had flushed meanwhile for another reason.",
        EpochFlush "epoch_flush": "Rounds for deferred batches whose frames were needed while some CPU had not flushed.",
        TablesFreed "tables_freed": "Requests that freed page tables, which CPUs that borrow must hear of.",
        RemoteFlush "remote_flush": "Requests that the machine carried out on other CPUs by itself, without interrupts.",
        DeviceFlush "device_flush": "Requests that had devices drop what they had cached.",
        OverCeiling "over_ceiling": "Requests for more pages than are flushed one by one.",
        EmptyInterrupt "empty_interrupt": "Interrupts that found their requests already answered.",
        AnsweredWaiting "answered_waiting": "Requests answered while waiting for a lock with interrupts off.",
        Suppressed "suppressed": "Flushes left out on a test's demand: this system is deliberately broken.",
    }
}

/// A row of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    /// Flushes and barriers requested, by cause.
    Requested(Cause),
    /// Interrupts sent, one for each target, by cause.
    Sent(Cause),
    /// Interrupts received, by what they interrupted.
    Received(Mode),
    /// What the CPUs interrupted did about each request.
    Handled(Outcome),
    /// Invalidations, by where.
    Executed(Executed),
    /// Changes of entries that had to be flushed, by why.
    Needed(Why),
    /// Interrupts and flushes avoided, by reason.
    Skipped(Reason),
    /// Address space switches.
    Switched(Switched),
    /// Everything else.
    Event(Event),
}

const SENT: usize = Cause::ALL.len();
const RECEIVED: usize = SENT + Cause::ALL.len();
const HANDLED: usize = RECEIVED + Mode::ALL.len();
const EXECUTED: usize = HANDLED + Outcome::ALL.len();
const NEEDED: usize = EXECUTED + Executed::ALL.len();
const SKIPPED: usize = NEEDED + Why::ALL.len();
const SWITCHED: usize = SKIPPED + Reason::ALL.len();
const EVENT: usize = SWITCHED + Switched::ALL.len();

impl Row {
    /// How many rows there are.
    pub const COUNT: usize = EVENT + Event::ALL.len();

    /// Every row, always in the same order.
    pub fn all() -> impl Iterator<Item = Row> {
        let requested = Cause::ALL.into_iter().map(Row::Requested);
        requested
            .chain(Cause::ALL.into_iter().map(Row::Sent))
            .chain(Mode::ALL.into_iter().map(Row::Received))
            .chain(Outcome::ALL.into_iter().map(Row::Handled))
            .chain(Executed::ALL.into_iter().map(Row::Executed))
            .chain(Why::ALL.into_iter().map(Row::Needed))
            .chain(Reason::ALL.into_iter().map(Row::Skipped))
            .chain(Switched::ALL.into_iter().map(Row::Switched))
            .chain(Event::ALL.into_iter().map(Row::Event))
    }

    const fn index(self) -> usize {
        match self {
            Row::Requested(cause) => cause as usize,
            Row::Sent(cause) => SENT + cause as usize,
            Row::Received(mode) => RECEIVED + mode as usize,
            Row::Handled(outcome) => HANDLED + outcome as usize,
            Row::Executed(executed) => EXECUTED + executed as usize,
            Row::Needed(why) => NEEDED + why as usize,
            Row::Skipped(reason) => SKIPPED + reason as usize,
            Row::Switched(switched) => SWITCHED + switched as usize,
            Row::Event(event) => EVENT + event as usize,
        }
    }

    /// The group, such as `sent`, and the row's name in it, such as `munmap`.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Row::Requested(cause) => ("requested", cause.name()),
            Row::Sent(cause) => ("sent", cause.name()),
            Row::Received(mode) => ("received", mode.name()),
            Row::Handled(outcome) => ("handled", outcome.name()),
            Row::Executed(executed) => ("executed", executed.name()),
            Row::Needed(why) => ("needed", why.name()),
            Row::Skipped(reason) => ("skipped", reason.name()),
            Row::Switched(switched) => ("switched", switched.name()),
            Row::Event(event) => ("event", event.name()),
        }
    }

    /// What the row's name means, in a sentence.
    pub const fn explanation(self) -> &'static str {
        match self {
            Row::Requested(cause) | Row::Sent(cause) => cause.explanation(),
            Row::Received(mode) => mode.explanation(),
            Row::Handled(outcome) => outcome.explanation(),
            Row::Executed(executed) => executed.explanation(),
            Row::Needed(why) => why.explanation(),
            Row::Skipped(reason) => reason.explanation(),
            Row::Switched(switched) => switched.explanation(),
            Row::Event(event) => event.explanation(),
        }
    }
}

/// The full name, such as `sent.munmap`.
impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, name) = self.names();
        write!(formatter, "{group}.{name}")
    }
}

/// One CPU's counters.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Counters([Counter; Row::COUNT]);

impl Counters {
    pub(crate) const fn new() -> Self {
        Counters([const { Counter::new() }; Row::COUNT])
    }

    /// Adds. Nothing is the usual amount in some rows, and is not worth a locked instruction.
    #[inline]
    pub(crate) fn add(&self, row: Row, amount: u64) {
        if amount > 0 {
            self.0[row.index()].add(amount);
        }
    }

    #[inline]
    pub(crate) fn count(&self, row: Row) {
        self.add(row, 1);
    }
}

/// A view of the counters of all CPUs: `for (row, total) in coherence.ledger().totals()`.
#[derive(Clone, Copy, Debug)]
pub struct Ledger<'a> {
    pub(crate) cpus: &'a [Cpu; MAX_CPUS],
}

impl<'a> Ledger<'a> {
    /// Every row with its sum over all CPUs, always in the same order.
    pub fn totals(self) -> impl Iterator<Item = (Row, u64)> + use<'a> {
        Row::all().map(move |row| (row, self.total(row)))
    }

    /// A row's sum over all CPUs.
    pub fn total(self, row: Row) -> u64 {
        self.cpus.iter().map(|cpu| cpu.counters.0[row.index()].get()).sum()
    }

    /// A row's value on one CPU.
    pub fn on(self, cpu: CpuId, row: Row) -> u64 {
        self.cpus[cpu.index()].counters.0[row.index()].get()
    }

    /// The sum of a group of rows over all CPUs: `group("sent")` is how many interrupts were sent.
    pub fn group(self, group: &str) -> u64 {
        self.totals().filter(|(row, _)| row.names().0 == group).map(|(_, total)| total).sum()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn every_row_has_a_counter_of_its_own() {
        assert_eq!(Row::all().map(Row::index).collect::<Vec<_>>(), (0..Row::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn every_row_has_a_name_of_its_own_and_says_what_it_is() {
        let names: BTreeSet<_> = Row::all().map(|row| row.to_string()).collect();
        assert_eq!(names.len(), Row::COUNT);
        assert!(Row::all().all(|row| row.explanation().ends_with(['.', ')'])));
        assert_eq!(Row::Sent(Cause::CopyOnWrite).to_string(), "sent.copy_on_write");
    }
}
