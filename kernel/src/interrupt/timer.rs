//! The one-shot timer of each CPU: always set for the earliest thing that the CPU waits for, or off.
//!
//! It is set again only for something earlier; what has been cancelled leaves an interrupt that finds nothing to do. With
//! a seed (`boot::command_line`), a CPU that runs a program is also interrupted at pseudo-random short intervals and
//! preempted there: on the emulator's instruction clock each seed is one replayable schedule.
//!
//! In a deterministic run without a seed such a CPU is interrupted every `TURN`, and not preempted, and so it is, less often,
//! when the emulator runs all CPUs on one host thread by the host's clock. It then runs one CPU at a time until the next
//! timer of any; without this a program that spins without a pause, as Go's runtime does,
//! would keep the CPU it waits for from running for a hundred million instructions.

use core::sync::atomic::{AtomicU64, Ordering};

use super::counters::{self, Kind};
use crate::arch::apic;
use crate::boot::command_line;
use crate::cpu::{self, Aligned, MAX_CPUS, PerCpu};
use crate::{task, time};

/// Nothing to wait for.
const NEVER: u64 = u64::MAX;
/// The shortest and longest seeded interval, in nanoseconds.
const SEEDED: core::ops::Range<u64> = 500..50_000;
/// Nanoseconds, and on the instruction clock instructions, after which the emulator shall turn to the next CPU.
const TURN: u64 = 100_000;
/// The same by the host's clock, where an interrupt costs about a hundredth of this.
const HOST_TURN: u64 = 1_000_000;
/// After how long a CPU that runs a program looks into the kernel in any case, where there are others who may wait for that
/// (`syscall::barrier`).
const HEARTBEAT: u64 = 10_000_000;

struct State {
    /// When the running timer will interrupt.
    set_for: AtomicU64,
    /// State of the generator of seeded intervals; 0 without a seed.
    random: AtomicU64,
}

// Only the CPU itself uses its state, with interrupts off; atomics make that safe code.
static STATES: PerCpu<State> =
    PerCpu::new([const { Aligned(State { set_for: AtomicU64::new(NEVER), random: AtomicU64::new(0) }) }; MAX_CPUS]);

/// Makes the timer interrupt at `deadline` (nanoseconds since boot) or earlier. Interrupts are off.
pub(crate) fn no_later_than(deadline: u64) {
    let state = STATES.here();
    if deadline < state.set_for.load(Ordering::Relaxed) {
        state.set_for.store(deadline, Ordering::Relaxed);
        // A wait longer than the register holds ends early and is set again.
        apic::start_timer(super::TIMER, time::apic_ticks(deadline.saturating_sub(time::now())));
    }
}

/// The timer's interrupt.
pub(super) fn on_interrupt() {
    counters::count(Kind::Timer);
    let state = STATES.here();
    state.set_for.store(NEVER, Ordering::Relaxed);
    let now = time::now();
    time::expire_due(now);
    task::tick(now);
    if state.random.load(Ordering::Relaxed) != 0 {
        task::preempt_here();
    }
    disturb();
    if let Some(deadline) = time::first_deadline() {
        no_later_than(deadline);
    }
}

/// Starts seeded intervals on every CPU. During boot.
pub(crate) fn set_seed(seed: u64) {
    for cpu in 0..MAX_CPUS {
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (cpu as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        STATES.of(cpu).random.store(mixed | 1, Ordering::Relaxed);
    }
}

/// How long a CPU may run a program without a look into the kernel.
fn turn() -> Option<u64> {
    if command_line().deterministic {
        Some(TURN)
    } else if command_line().turns {
        Some(HOST_TURN)
    } else {
        (cpu::count() > 1).then_some(HEARTBEAT)
    }
}

/// Sets the timer for the next disturbance or the end of the CPU's turn, unless the CPU is idle.
/// Interrupts are off.
pub(crate) fn disturb() {
    let random = &STATES.here().random;
    let mut value = random.load(Ordering::Relaxed);
    if task::is_idle(cpu::index()) {
        return;
    }
    if value == 0 {
        if let Some(turn) = turn() {
            no_later_than(time::now() + turn);
        }
        return;
    }
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    random.store(value, Ordering::Relaxed);
    no_later_than(time::now() + SEEDED.start + value % (SEEDED.end - SEEDED.start));
}
