//! The machine as `coherence` sees it: this CPU's translations, and the interrupt that asks others to drop theirs or to pass a memory
//! barrier.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use coherence::{Asked, Coherence, CpuId, CpuSet, Crossings, Mode, Platform, Space, Switches, Tag};

use super::counters::{self, Kind};
use crate::arch::registers::{self, disable_interrupts, enable_interrupts, interrupts_enabled, time_stamp};
use crate::arch::{TrapFrame, apic};
use crate::cpu::{self, Aligned, MAX_CPUS, PerCpu};
use crate::task;

const _: () = assert!(MAX_CPUS == coherence::MAX_CPUS);

/// x86-64 as a platform.
#[derive(Debug)]
pub(crate) struct Machine;

/// The coherence of this machine.
pub(crate) static COHERENCE: Coherence<Machine> = Coherence::new(Machine, Switches::DEFAULT);

/// A CPU that does not answer for so long never will.
const LOCKUP_SECONDS: u64 = 20;
/// Two turns of a waiting loop that are further apart belong to different waits. (A host may stop this CPU for long.)
const SAME_WAIT_SECONDS: u64 = 5;

struct Waiting {
    since: AtomicU64,
    last_turn: AtomicU64,
    asked: AtomicU64,
}

/// When this CPU's current wait for acknowledgements began, and whom it asked.
static WAITING: PerCpu<Waiting> = PerCpu::new(
    [const { Aligned(Waiting { since: AtomicU64::new(0), last_turn: AtomicU64::new(0), asked: AtomicU64::new(0) }) }; MAX_CPUS],
);

// SAFETY: the promises of `Platform`: roots change only through `task::loaded`, which calls `coherence` with interrupts off
// and keeps the loaded space alive; the kernel never uses a translation of the user half; the interrupt's handler below
// answers; locks that are waited for with interrupts off call `answer` (sync::relax); entries are stored by `memory` before it flushes;
// the entry code counts crossings, and calls `catch_up`.
unsafe impl Platform for Machine {
    fn current_cpu(&self) -> CpuId {
        CpuId::new(cpu::index()).expect("a CPU's index is below the capacity")
    }

    fn interrupt(&self, targets: &CpuSet) {
        let waiting = WAITING.here();
        waiting.since.store(time_stamp(), Ordering::Relaxed);
        waiting.asked.store(targets.as_words()[0], Ordering::Relaxed);
        apic::send_to(targets.into_iter().map(|target| cpu::apic_name(target.index())), super::SHOOTDOWN);
    }

    fn interrupts_enabled(&self) -> bool {
        interrupts_enabled()
    }

    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
        let enabled = interrupts_enabled();
        disable_interrupts();
        let result = work();
        if enabled {
            enable_interrupts();
        }
        result
    }

    fn invalidate_page(&self, address: u64) {
        registers::invalidate_page(address);
    }

    fn invalidate_all(&self) {
        // SAFETY: the same root again; only translations of the user half are dropped, as the kernel's are global.
        unsafe { registers::set_root(registers::root()) }
    }

    fn load_root(&self, root: u64, _tag: Tag, _keep: bool) {
        // SAFETY: `memory` makes every root with the kernel's half in it, and keeps it until `coherence` has left it.
        unsafe { registers::set_root(root) }
    }

    fn load_kernel_root(&self) {
        // SAFETY: the kernel's own root lives for ever.
        unsafe { registers::set_root(crate::boot::map::kernel_root()) }
    }

    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        Some(cpu::crossings(cpu.index()))
    }

    fn note_interrupt(&self, asked: Asked) {
        counters::count(Kind::Call);
        // An interrupt that came too late was one for a flush far more often than not.
        if asked.flushes > 0 || asked.barriers == 0 {
            counters::count(Kind::Shootdown);
        }
    }

    fn serialise(&self) {
        registers::serialise();
    }

    fn restart_sequence(&self) {
        task::current().restart_sequence();
    }

    fn relax(&self) {
        core::hint::spin_loop();
        detect_lockup();
    }
}

/// Begins a new wait of this CPU's. For whoever may wait without sending an interrupt of its own: a caller that is served by
/// others' rounds again and again is not locked up.
pub(crate) fn begin_wait() {
    WAITING.here().since.store(time_stamp(), Ordering::Relaxed);
}

/// Panics if this CPU has been waiting for an acknowledgement too long to be honest.
fn detect_lockup() {
    let now = time_stamp();
    let second = crate::time::time_stamp_hertz();
    let waiting = WAITING.here();
    let last = waiting.last_turn.swap(now, Ordering::Relaxed);
    let since = waiting.since.load(Ordering::Relaxed);
    if now.saturating_sub(last) > SAME_WAIT_SECONDS * second {
        waiting.since.store(now, Ordering::Relaxed);
    } else if now.saturating_sub(since) > LOCKUP_SECONDS * second {
        let asked = cpu::CpuSet::from_bits(waiting.asked.load(Ordering::Relaxed));
        panic!("no acknowledgement of a flush for {LOCKUP_SECONDS} s; asked last: CPUs {asked:?}");
    }
}

/// The shootdown interrupt.
pub(super) fn on_interrupt(frame: &TrapFrame) {
    let mode = if frame.is_from_user() {
        Mode::User
    } else if task::is_idle(cpu::index()) {
        Mode::Idle
    } else {
        Mode::Kernel
    };
    task::with_loaded(|loaded| COHERENCE.handle_requests(loaded, mode));
}

/// Flushes what this CPU was spared in the kernel: on the way back to user mode, interrupts off.
pub(crate) extern "C" fn catch_up() {
    task::with_loaded(|loaded| COHERENCE.catch_up_in_user_mode(loaded));
}

/// Answers other CPUs' requests while this CPU waits with interrupts off.
pub(crate) fn answer() {
    if task::is_switching() {
        return;
    }
    task::with_loaded(|loaded: Option<&Space>| COHERENCE.answer_requests(loaded));
}
