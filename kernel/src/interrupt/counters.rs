//! How many interrupts of each kind each CPU took: the rows of `/proc/interrupts`.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::cpu::{Aligned, MAX_CPUS, PerCpu};

/// Kinds of interrupts, named as Linux names their rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Serial,
    Disk,
    Timer,
    Reschedule,
    /// Whatever one CPU has another do: flushes, which `Shootdown` counts by themselves, and memory barriers.
    Call,
    Shootdown,
    Spurious,
    Nmi,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] =
        [Self::Serial, Self::Disk, Self::Nmi, Self::Timer, Self::Spurious, Self::Reschedule, Self::Call, Self::Shootdown];

    /// The row's label and description.
    pub(crate) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Serial => ("4", "IO-APIC   4-edge      ttyS0"),
            Self::Disk => ("DSK", "Disk interrupts"),
            Self::Timer => ("LOC", "Local timer interrupts"),
            Self::Reschedule => ("RES", "Rescheduling interrupts"),
            Self::Call => ("CAL", "Function call interrupts"),
            Self::Shootdown => ("TLB", "TLB shootdowns"),
            Self::Spurious => ("SPU", "Spurious interrupts"),
            Self::Nmi => ("NMI", "Non-maskable interrupts"),
        }
    }
}

static COUNTERS: PerCpu<[AtomicU64; 8]> = PerCpu::new([const { Aligned([const { AtomicU64::new(0) }; 8]) }; MAX_CPUS]);

/// Counts one on this CPU. Called with interrupts off; only this CPU writes its counters.
pub(crate) fn count(kind: Kind) {
    let counter = &COUNTERS.here()[kind as usize];
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// How many a CPU took.
pub(crate) fn of(cpu: usize, kind: Kind) -> u64 {
    COUNTERS.of(cpu)[kind as usize].load(Ordering::Relaxed)
}
