//! Locks and waiting.
//!
//! - `SpinLock`: short critical sections of task code. Interrupts stay as they are; interrupt handlers never take one.
//! - `InterruptLock`: data that interrupt handlers use too; interrupts are off while it is held. Release in reverse order.
//! - `Mutex`, `RawRwLock`: sleep while they wait. Never with another lock's spin guard held, never in an interrupt handler.
//! - `WaitQueue`: sleep until a condition holds.
//! - `Once`: set once, read often.
//!
//! Every waiting loop calls `relax`, which answers other CPUs' flush requests when this CPU's interrupts are off:
//! the CPU whose lock we want may itself be waiting for our acknowledgement.

mod interrupt_lock;
mod mutex;
mod once;
mod rw_lock;
mod spin_lock;
mod wait_queue;

pub(crate) use interrupt_lock::{InterruptLock, RawInterruptLock};
pub(crate) use mutex::Mutex;
pub(crate) use once::Once;
pub(crate) use rw_lock::RawRwLock;
pub(crate) use spin_lock::{RawSpinLock, SpinLock, SpinLockGuard, assert_none_held};
pub(crate) use wait_queue::{WaitQueue, Wake};

/// One turn of a waiting loop.
pub(crate) fn relax() {
    core::hint::spin_loop();
    if !crate::arch::registers::interrupts_enabled() {
        crate::interrupt::shootdown::answer();
    }
}
