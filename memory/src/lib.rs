//! Address spaces, built on `coherence`.
#![no_std]
extern crate alloc;
