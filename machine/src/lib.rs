//! Simulated machines for the checkers, and one for predictions: physical memory, and CPUs whose translation caches keep all they may.
//!
//! What runs on them is the real `memory` on the real `coherence`; only the hardware is played.
//!
//! * [`in_turn`]: one host thread plays every CPU in turn and an interrupt is taken the moment it is sent, so that a run repeats
//!   exactly. Each CPU keeps every translation and every upper level it ever walked until it is told to drop them, and an oracle
//!   compares all that is cached with what the tables say. For exact counts and random histories.
//! * [`threads`]: each CPU is a host thread, which polls for interrupts. For races between operations.
//! * [`cost`]: no code runs on it but decisions of `coherence`; it predicts what they cost on up to 512 CPUs. `./ceasefire predict` runs it.
//! * `simulated`, in the checkers' build (`--cfg simulated`): every step of every CPU, walker and store buffer is chosen by the crate
//!   `explorer`. For every schedule of a small race; `./ceasefire check` runs it.

#![deny(unsafe_code)]

#[cfg(not(simulated))]
pub mod cost;
#[cfg(not(simulated))]
pub mod in_turn;
#[cfg(simulated)]
pub mod simulated;
#[cfg(not(simulated))]
pub mod threads;
