//! Who must be told when a translation changes, and when it is safe to go on.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod coherence;
mod cpu;
mod cpu_set;
mod decision;
mod fault;
mod flush;
mod gather;
mod generation;
mod ledger;
mod mechanism;
mod names;
mod platform;
pub mod policy;
mod shootdown;
mod space;
mod switch;
mod sync;
mod tags;

/// How many CPUs a build has room for. The checkers' builds have little, to keep what they explore small.
pub const MAX_CPUS: usize = if cfg!(loom) {
    4
} else if cfg!(shuttle) {
    8
} else {
    64
};

pub use coherence::Coherence;
pub use cpu_set::{AtomicCpuSet, CpuId, CpuSet, CpuSetIter};
#[cfg(any(loom, shuttle))]
pub use fault::Fault;
pub use flush::Flush;
pub use gather::{Flushed, Gather};
pub use generation::Generation;
pub use ledger::{Cause, Event, Executed, Ledger, Mode, Outcome, Row, Switched};
pub use mechanism::{Mechanism, Switches, UnknownMechanism};
pub use platform::Platform;
pub use policy::{Decision, Reason, Translation, Why};
pub use shootdown::FlushedGeneration;
pub use space::{Space, SpaceId};
pub use tags::Tag;
