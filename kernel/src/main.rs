//! The Ceasefire kernel.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the kernel is built for x86_64-unknown-none; use ./ceasefire run");
    std::process::exit(2);
}

#[cfg(target_os = "none")]
mod syscall;
