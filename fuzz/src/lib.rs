//! Programs of memory system calls, made at random, and a model that says which answers are possible.
//!
//! A [`Program`] is rounds of calls by several actors (threads and forked processes). It is run on the simulated machine, on our kernel and on
//! Linux; each prints a [`Trace`] of what the program could observe. [`judge`] asks whether the answers of each round are those of
//! some order of its calls, by a model of its own that shares nothing with the code under test. What cannot be explained is made as
//! small as it can be ([`simpler`]) and kept.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod dice;
mod generator;
mod judge;
mod model;
mod names;
mod program;
mod shrink;
mod text;
mod trace;

pub use dice::Dice;
pub use generator::{Taste, generate};
pub use judge::{Difference, Verdict, is_tame, judge};
pub use model::NOWHERE;
pub use program::{
    ACTORS, Address, BOUNDARY, Call, PAGE, Program, SLOTS, Step, TABLE, USER_END, WINDOW, WINDOW_PAGES,
};
pub use shrink::simpler;
pub use text::{pack, unpack};
pub use trace::{Answer, Final, Look, Trace, read, swept, write_final};
