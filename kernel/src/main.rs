//! The Ceasefire kernel: x86-64, SMP, with Linux's system calls, built around `coherence` and `memory`.
//!
//! Start reading at `boot` (how it comes up), `arch::entry` (how programs get in and out), `task` (what runs),
//! `interrupt::shootdown` (where it meets `coherence`). `docs/design/0003-kernel-core.md` has the drawings.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the kernel is built for x86_64-unknown-none; use ./ceasefire run");
    std::process::exit(2);
}

#[cfg(target_os = "none")]
extern crate alloc;

/// Declares modules that exist on the bare machine only.
macro_rules! kernel_modules {
    ($($name:ident)*) => { $(#[cfg(target_os = "none")] mod $name;)* };
}

kernel_modules! {
    arch block boot console cpu declaration files frames heap interrupt ipc memory network panic power process report self_check sync syscall task time
}
