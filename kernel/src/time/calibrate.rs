//! How fast the time-stamp counter and the interrupt controller's timer run.
//!
//! Under QEMU's own emulation the controller's timer ticks once per nanosecond by construction, so the counter is measured
//! against it. Elsewhere both are measured against the old interval timer, whose frequency never changed.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{SCALE, SECOND};
use crate::arch::registers::{cpuid, time_stamp};
use crate::arch::{apic, port};

/// How long to measure, in nanoseconds: long against the read latencies, short against the boot.
const SPAN: u64 = 1_000_000;
/// Ticks of the interval timer in a second.
const INTERVAL_HERTZ: u64 = 1_193_182;

/// Ticks of the interrupt controller's timer for one nanosecond, times 2^32.
static APIC_SCALE: AtomicU64 = AtomicU64::new(1 << 32);

/// Converts a duration to ticks of the interrupt controller's timer, at most what its register holds.
pub(crate) fn apic_ticks(nanoseconds: u64) -> u32 {
    let ticks = (u128::from(nanoseconds) * u128::from(APIC_SCALE.load(Ordering::Relaxed))) >> 32;
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Measures both clocks. Called once by the boot CPU, with its interrupt controller enabled.
pub(crate) fn calibrate() {
    if under_emulation() {
        let (stamps, ticks) = measure(|elapsed| elapsed >= SPAN as u32);
        SCALE.store(scale(ticks, stamps), Ordering::Relaxed);
        return;
    }
    let count = (INTERVAL_HERTZ * SPAN / SECOND) as u16;
    start_interval(count);
    let (stamps, ticks) = measure(|_| port::read_u8(0x61) & 1 << 5 != 0);
    let nanoseconds = u64::from(count) * SECOND / INTERVAL_HERTZ;
    SCALE.store(scale(nanoseconds, stamps), Ordering::Relaxed);
    APIC_SCALE.store(scale(ticks, nanoseconds), Ordering::Relaxed);
}

fn under_emulation() -> bool {
    let signature = cpuid(0x4000_0000, 0);
    [signature.ebx, signature.ecx, signature.edx].map(u32::to_le_bytes).concat() == *b"TCGTCGTCGTCG"
}

fn scale(numerator: u64, denominator: u64) -> u64 {
    ((u128::from(numerator) << 32) / u128::from(denominator.max(1))) as u64
}

/// Time stamps and controller ticks that pass until `done(ticks)`. Each end is the tightest of a few readings, because
/// the host may take the CPU away between the two reads.
fn measure(done: impl Fn(u32) -> bool) -> (u64, u64) {
    apic::start_silent_timer();
    let begin = simultaneous();
    while !done(begin.1 - apic::timer_left()) {
        core::hint::spin_loop();
    }
    let end = simultaneous();
    (end.0 - begin.0, u64::from(begin.1 - end.1))
}

fn simultaneous() -> (u64, u32) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..5 {
        let before = time_stamp();
        let left = apic::timer_left();
        let width = time_stamp() - before;
        if width < best.0 {
            best = (width, before + width / 2, left);
        }
    }
    (best.1, best.2)
}

/// Starts channel 2 of the interval timer, gate on, speaker off; bit 5 of port 0x61 rises when `count` has run down.
fn start_interval(count: u16) {
    port::write_u8(0x61, port::read_u8(0x61) & !2 | 1);
    port::write_u8(0x43, 0b1011_0000);
    port::write_u8(0x42, count as u8);
    port::write_u8(0x42, (count >> 8) as u8);
}
