//! Runs the real code of several CPUs under a schedule that is chosen step by step, with x86's store buffers between them.
//!
//! `coherence` and `memory` take their atomics from here when they are built for the checkers (`--cfg simulated`), as they take
//! them from `core` in the kernel. Each simulated CPU is a coroutine; one runs at a time. Before each access to memory that CPUs
//! share, and before each thing it asks of its hardware, a CPU stops and says what it is about to do ([`Step`]). Then it is decided
//! what happens next ([`Choice`]): this step, a step of another CPU, an interrupt, a store that leaves its buffer, or something
//! that [`Hardware`] does by itself. So a schedule is a list of choices, and whoever makes the same ones gets the same run.
//!
//! * **Memory** is x86's (TSO): a plain store may wait in its CPU's buffer while the CPU goes on loading; a locked operation, a full
//!   fence, and whatever else serialises wait until it is empty. The orderings that Rust's weaker ones stand for change nothing
//!   here: that is loom's business (`docs/design/0010-checkers.md`).
//! * **The choice of a bored scheduler is free**: the CPU that ran goes on until it waits, stores go through at once, an interrupt is
//!   taken as soon as it can be. Each deviation has a price, and [`Exhaustive`] explores every schedule up to a total.
//! * **Interrupts that cannot be masked** come between any two steps, as many as the set-up allows ([`unmaskable`]), and **threads
//!   change places**, two that allow it ([`preemptible`]): both cost 1.
//! * **States are recognised.** All that a CPU knows is what it has read; so its reads, the memory, the buffers and the hardware
//!   are the state, and a state that was explored with as much money left is not explored again.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod atomic;
mod choice;
mod coroutines;
mod digest;
mod execution;
mod exhaustive;
mod hardware;
mod lock;
mod memory;
mod offers;
mod outcome;
mod priorities;
mod processor;
mod random;
mod schedule;
mod step;
mod strategy;

pub use atomic::{AtomicU32, AtomicU64, fence};
pub use choice::Choice;
pub use digest::Digest;
pub use execution::{Program, explore, run};
pub use exhaustive::Exhaustive;
pub use hardware::{Declaration, Hardware, Store};
pub use lock::{ExclusiveLock, SharedLock};
pub use outcome::{Finding, Outcome};
pub use priorities::Priorities;
pub use processor::{
    as_cpu, attach, current_cpu, declare, fail, is_exploring, is_masked, is_over, load_now, mask, narrate,
    narrate_of, observe, pause, preemptible, region, send_interrupt, serialise, serialise_cpu, step,
    store_now, unmaskable, wait,
};
pub use random::Random;
pub use schedule::{Replay, Schedule};
pub use step::{Access, Step};
pub use strategy::Strategy;
