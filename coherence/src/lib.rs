//! Who must be told when a translation changes, and when it is safe to go on.
#![no_std]
#![deny(unsafe_code)]
