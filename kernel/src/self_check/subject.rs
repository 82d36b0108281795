//! The CPU that is experimented with: a kernel task bound to it, which waits for orders and carries them out.
//!
//! An order is a number and an address in shared words; raising `ISSUED` releases it, `DONE` reaching the same number says
//! that its outcome is there. One conductor issues one order at a time.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arch::{TrapFrame, registers};
use crate::cpu::CpuSet;
use crate::task;

/// What the subject is told to do with an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Load,
    Store(u64),
    Invalidate,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The value loaded or stored; 0 for an invalidation.
    Value(u64),
    Fault,
}

const LOAD: u64 = 0;
const STORE: u64 = 1;
const INVALIDATE: u64 = 2;
const END: u64 = 3;

/// The subject is on its CPU.
static STARTED: AtomicBool = AtomicBool::new(false);
static ISSUED: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static KIND: AtomicU64 = AtomicU64::new(0);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static VALUE: AtomicU64 = AtomicU64::new(0);
static FAULTED: AtomicU64 = AtomicU64::new(0);

// Each has one instruction that may fault, the first; the handler goes on at the label, which gives 1 instead of 0.
global_asm!(
    ".global self_check_load",
    "self_check_load:",
    "mov rax, [rdi]",
    "mov [rsi], rax",
    "xor eax, eax",
    "ret",
    ".global self_check_store",
    "self_check_store:",
    "mov [rdi], rsi",
    "xor eax, eax",
    "ret",
    ".global self_check_faulted",
    "self_check_faulted:",
    "mov eax, 1",
    "ret",
);

unsafe extern "C" {
    fn self_check_load(address: u64, value: *mut u64) -> u64;
    fn self_check_store(address: u64, value: u64) -> u64;
    fn self_check_faulted();
}

/// If the faulting instruction is one of the subject's accesses, lets it go on behind it.
pub(crate) fn recover(frame: &mut TrapFrame) -> bool {
    let accesses = [self_check_load as *const () as u64, self_check_store as *const () as u64];
    let ours = accesses.contains(&frame.rip);
    if ours {
        frame.rip = self_check_faulted as *const () as u64;
    }
    ours
}

/// The conductor's hold on the subject.
pub(super) struct Subject(());

impl Subject {
    /// Makes CPU `index` the subject. There can be only one in a boot.
    pub(super) fn start_on(index: usize) -> Self {
        let task = task::spawn_kernel("self-check", move || {
            // It may have begun on another CPU than the one it was sent to since; from here on it does not sleep, and so stays.
            assert!(task::set_affinity(&task::current(), CpuSet::single(index)), "CPU {index} is not online");
            STARTED.store(true, Ordering::Release);
            wait_for_orders();
        });
        // It may wait in the queue of the conductor's CPU, which will not come to it.
        assert!(task::set_affinity(&task, CpuSet::single(index)), "CPU {index} is not online");
        while !STARTED.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
        Self(())
    }

    /// Has an order carried out.
    pub(super) fn obey(&self, order: Order, address: u64) -> Outcome {
        let (kind, value) = match order {
            Order::Load => (LOAD, 0),
            Order::Store(value) => (STORE, value),
            Order::Invalidate => (INVALIDATE, 0),
        };
        issue(kind, address, value);
        match FAULTED.load(Ordering::Relaxed) {
            0 => Outcome::Value(VALUE.load(Ordering::Relaxed)),
            _ => Outcome::Fault,
        }
    }

    /// Lets the subject go back to other work.
    pub(super) fn end(self) {
        issue(END, 0, 0);
    }
}

fn issue(kind: u64, address: u64, value: u64) {
    KIND.store(kind, Ordering::Relaxed);
    ADDRESS.store(address, Ordering::Relaxed);
    VALUE.store(value, Ordering::Relaxed);
    // Release: the subject finds the order, and the entries of the tables as they were changed before it.
    let number = ISSUED.fetch_add(1, Ordering::Release) + 1;
    while DONE.load(Ordering::Acquire) != number {
        core::hint::spin_loop();
    }
}

fn wait_for_orders() {
    let mut number = 0;
    loop {
        number += 1;
        while ISSUED.load(Ordering::Acquire) != number {
            // It may have begun on another CPU than its own, before the conductor said which that is: it must let itself be moved.
            task::yield_if_needed();
            core::hint::spin_loop();
        }
        let kind = KIND.load(Ordering::Relaxed);
        carry_out(kind, ADDRESS.load(Ordering::Relaxed), VALUE.load(Ordering::Relaxed));
        DONE.store(number, Ordering::Release);
        if kind == END {
            return;
        }
    }
}

fn carry_out(kind: u64, address: u64, stored: u64) {
    let mut value = stored;
    // SAFETY: the addresses are the check's own pages; whatever their entries say, they lead to its own frames or to a fault,
    // which `recover` turns into a result.
    let faulted = unsafe {
        match kind {
            LOAD => self_check_load(address, &raw mut value),
            STORE => self_check_store(address, stored),
            INVALIDATE => {
                registers::invalidate_page(address);
                0
            }
            _ => 0,
        }
    };
    VALUE.store(value, Ordering::Relaxed);
    FAULTED.store(faulted, Ordering::Relaxed);
}
