//! Simulated machines for the checkers: physical memory, and CPUs whose translation caches keep all they may.
//!
//! What runs on them is the real `memory` on the real `coherence`; only the hardware is played.
//!
//! * [`in_turn`]: one host thread plays every CPU in turn and an interrupt is taken the moment it is sent, so that a run repeats
//!   exactly. Each CPU keeps every translation and every upper level it ever walked until it is told to drop them, and an oracle
//!   compares all that is cached with what the tables say. For exact counts and random histories.
//! * [`threads`]: each CPU is a host thread, which polls for interrupts. For races between operations.
//!
//! Neither has store buffers, tags or a schedule that is explored: `coherence`'s own loom and shuttle models cover the orderings.

#![deny(unsafe_code)]

pub mod in_turn;
pub mod threads;
