//! Who must be told when a translation changes, and when it is safe to go on.
//!
//! A CPU keeps copies of page-table entries (its TLB, and the upper levels it walked through), and hardware does not keep them
//! up to date. A kernel that takes a page away must see to it that no CPU uses an old copy, before the page's frame gets a new
//! owner and before the program is told. The blunt way is to interrupt all CPUs each time. This crate is the precise way: it
//! knows which CPUs use an address space, lets those that only borrow one find out by themselves, flushes no change that can do
//! no harm, lets one flush serve many changes, and counts what it did and what it avoided, by reason.
//!
//! It knows no architecture, allocates nothing, has no statics and no dependencies. What it needs from the machine is the trait
//! [`Platform`].
//!
//! # What is promised
//!
//! When [`Coherence::flush`] or [`Gather::finish`] has returned, for the addresses and the changes it covered:
//!
//! * **D1, frame safety.** No access goes through an old copy, so frames may have new owners; page-table frames too, if the
//!   flush said that tables are freed: no walker is in them.
//! * **D2, write integrity.** No store lands through a copy that was writable, or dirty, before.
//! * **D3, returns mean something.** Whatever a CPU accesses after it has seen a sign of the return goes by the new tables.
//! * **D4, one order.** A frame that replaces another and is mapped after the return is never seen together with the old one.
//!
//! # The machine that is assumed
//!
//! * A CPU may copy any entry that its loaded root leads to, at any moment, also speculatively, and keeps it until it is told
//!   to drop it or drops it on a whim. It never copies an entry that is not present.
//! * Before a CPU has such a copy, the entry in memory is marked as accessed: it sets the mark in one atomic step with a look at the entry, and copies only what it found there
//!   with the mark. This is for what a caller calls [unused](policy::Translation::unused) alone; devices need not do it.
//! * A copy that allows less than the entry in memory costs a fault at most; [`policy`] builds on this.
//! * A CPU in its kernel, or lazy, uses no copy of a user translation by the kernel's intention, but its walker runs on.
//! * Memory is ordered as weakly as Rust's memory model allows.
//!
//! # How it works
//!
//! Each [`Space`] has a generation, which every request advances, and two sets of CPUs: `active` ones must be told of every
//! change, by an interrupt or, if they are in the kernel, on their way back to user mode (`crossings.rs`); `lazy` ones only of freed tables. Each CPU remembers up to which generation it has flushed. An initiator advances
//! the generation and *then* reads the sets; a CPU enters a set and *then* reads the generation. So whoever is not seen sees.
//! The files tell the rest: `space.rs` the sets, `switch.rs` and `shootdown.rs` the two sides of the handshake and why
//! each fence is there, `decision.rs` what a CPU does about a request, `gather.rs` how operations flush, `batch.rs` how reclaim does, `epochs.rs` how its flushes wait, [`policy`] what need not
//! be flushed, `barrier.rs` who must pass a memory barrier, `ledger.rs` what is counted.
//!
//! # Where to begin
//!
//! | to | look at |
//! |---|---|
//! | say how your machine does things | [`Platform`], an unsafe trait: its page lists what you owe |
//! | have one for your machine, as a `static` | [`Coherence::new`] |
//! | make an address space, and let it end | [`Coherence::new_space`], [`Space`] |
//! | switch threads, go idle, take a CPU offline | [`Coherence::activate`], [`Coherence::go_lazy`], [`Coherence::leave`] |
//! | answer the interrupt | [`Coherence::handle_requests`]; in loops with interrupts off [`Coherence::answer_requests`] |
//! | unmap, protect, move, copy on write | [`Coherence::gather`], [`Gather::change`], [`Gather::finish`]; in a fault [`Coherence::gather_under_lock`] |
//! | take pages back, cut them off or clean them, many with one flush | [`Coherence::batch`], [`Batch::change`], [`Batch::finish`]; in every other operation [`Gather::settle`] or [`Coherence::settle`] |
//! | let that flush wait until a frame is needed | [`Batch::deferring`], [`Batch::defer`], [`Coherence::retire`]; whoever takes a page from its object then says so with [`Batch::concluding_absence`] |
//! | flush what you have decided on yourself | [`Coherence::flush`], [`Flush`] |
//! | know why something was flushed or was not | [`policy`], [`Gather::change`] |
//! | make barriers on other CPUs (`membarrier`) | [`Coherence::barrier`], [`Coherence::register`], [`Coherence::begin_grace_period`] |
//! | reach CPUs by better means than interrupts | [`Platform::flush_remotely`], [`Platform::flush_before_running`] |
//! | let devices walk a space's tables | [`Coherence::attach_device`], [`Platform::invalidate_devices`] |
//! | count and explain | [`Coherence::ledger`], [`Row`] |
//! | measure without a mechanism, or break it for a test | [`Switches`], [`Coherence::suppress`] |
//!
//! Addresses are virtual, of the user half, and like all sizes in bytes. Nothing here allocates, and nothing sleeps: what waits for
//! other CPUs spins, with interrupts on, and calls [`Platform::relax`].
//!
//! `examples/port` is a complete port in two short files, with threads as CPUs, and `docs/guide/porting.md` walks through it.
//!
//! # The smallest port
//!
//! ```
//! use coherence::{Cause, Coherence, CpuId, CpuSet, Platform, Row, Switches, Tag, Translation};
//! # use std::cell::Cell;
//!
//! /// One CPU, which answers no interrupts because nobody else is there to send any.
//! struct Machine;
//! # thread_local! { static OFF: Cell<bool> = const { Cell::new(false) }; }
//!
//! // SAFETY: nothing is accessed through translations in this example.
//! unsafe impl Platform for Machine {
//!     fn current_cpu(&self) -> CpuId { CpuId::new(0).unwrap() }
//!     fn interrupt(&self, targets: &CpuSet) { unreachable!("{targets:?} do not exist") }
//! #   fn interrupts_enabled(&self) -> bool { !OFF.get() }
//! #   fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R {
//! #       let before = OFF.replace(true);
//! #       let result = work();
//! #       OFF.set(before);
//! #       result
//! #   }
//!     // On x86: invlpg, and three ways to write CR3.
//!     fn invalidate_page(&self, address: u64) { println!("drop {address:#x}") }
//!     fn invalidate_all(&self) { println!("drop everything") }
//!     fn load_root(&self, root: u64, _tag: Tag, _keep: bool) { println!("load {root:#x}") }
//!     fn load_kernel_root(&self) { println!("load the kernel root") }
//!     fn relax(&self) { std::hint::spin_loop() }
//!     // … and interrupts_enabled, without_interrupts.
//! }
//!
//! static COHERENCE: Coherence<Machine> = Coherence::new(Machine, Switches::DEFAULT);
//!
//! // A process is made, and its thread scheduled. Interrupts are off in a switch.
//! let space = COHERENCE.new_space(0x1000);
//! COHERENCE.platform().without_interrupts(|| COHERENCE.activate(None, &space));
//!
//! // munmap takes an entry out of the tables, and flushes before it frees the frame.
//! let old = Translation { present: true, frame: 7, writable: true, user: true, accessed: true, ..Default::default() };
//! let mut gather = COHERENCE.gather(&space, Cause::Munmap, Vec::new());
//! gather.change(0x40_0000, 0x1000, &old, &Translation::default());
//! gather.list_mut().push(7);
//! let frames = gather.finish().into_inner();
//! assert_eq!(frames, [7]);
//!
//! // The CPU goes idle and borrows the space. When the process ends, it lets go of it.
//! COHERENCE.platform().without_interrupts(|| COHERENCE.go_lazy(&space));
//! COHERENCE.platform().without_interrupts(|| COHERENCE.leave(&space));
//! assert_eq!(COHERENCE.ledger().total(Row::Requested(Cause::Munmap)), 1);
//! assert_eq!(COHERENCE.ledger().group("sent"), 0);
//! ```
//!
//! # How it is checked
//!
//! `tests/loom` explores every weakly ordered execution of each race; `tests/shuttle` runs whole histories in random schedules
//! against an oracle; both must catch each line of the protocol that is left out on purpose. `README.md` has the commands.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod barrier;
mod barrier_flags;
mod batch;
mod coherence;
mod cpu;
mod cpu_set;
mod crossings;
mod decision;
mod devices;
mod epochs;
mod errand;
mod fault;
mod flush;
mod gather;
mod generation;
mod grace;
mod ledger;
mod mechanism;
mod names;
mod platform;
pub mod policy;
mod registration;
mod remote;
mod rounds;
mod shared_tags;
mod sharers;
mod shootdown;
mod space;
mod switch;
mod sync;
mod tags;

/// How many CPUs a build has room for. The checkers' builds have little, to keep what they explore small, and the unit tests have
/// sets of two words.
pub const MAX_CPUS: usize = if cfg!(loom) {
    3
} else if cfg!(any(shuttle, simulated)) {
    8
} else if cfg!(test) {
    70
} else {
    64
};

pub use barrier_flags::{BarrierFlags, RefusedFlags};
pub use batch::{Batch, Recorded};
pub use coherence::Coherence;
pub use cpu_set::{AtomicCpuSet, CpuId, CpuSet, CpuSetIter};
pub use crossings::Crossings;
pub use epochs::Deferred;
pub use errand::Asked;
#[cfg(any(loom, shuttle, simulated))]
pub use fault::Fault;
pub use flush::Flush;
pub use gather::{Flushed, Gather};
pub use generation::Generation;
pub use grace::GracePeriod;
pub use ledger::{Cause, Event, Executed, Ledger, Mode, Outcome, Row, Switched};
pub use mechanism::{Mechanism, Switches, UnknownMechanism};
pub use platform::Platform;
pub use policy::{Decision, Reason, Translation, Why};
pub use registration::Registration;
pub use remote::RemoteFlush;
pub use sharers::{SharerSet, Sharers};
pub use shootdown::FlushedGeneration;
pub use space::{Space, SpaceId};
pub use tags::Tag;
