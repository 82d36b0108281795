//! What kind of system this is.

use super::super::filesystem;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use coherence::{Cause, Mechanism, Switches};
use core::fmt::Write;

pub(crate) fn cmdline() -> Vec<u8> {
    let line = crate::boot::command_line();
    let mut words = Vec::new();
    for (word, on) in [("without", false), ("with", true)] {
        let changed = |&one: &Mechanism| line.switches.has(one) == on && Switches::DEFAULT.has(one) != on;
        let names: Vec<&str> = Mechanism::ALL.into_iter().filter(changed).map(Mechanism::name).collect();
        if !names.is_empty() {
            words.push(format!("{word}={}", names.join(",")));
        }
    }
    words.extend(line.seed.map(|seed| format!("seed={seed}")));
    words.extend(line.deterministic.then(|| String::from("deterministic")));
    let suppressed: Vec<&str> = line.suppressed().map(Cause::name).collect();
    if !suppressed.is_empty() {
        words.push(format!("suppress={}", suppressed.join(",")));
    }
    words.extend(line.self_check.then(|| String::from("selfcheck")));
    format!("{}\n", words.join(" ")).into_bytes()
}

pub(crate) fn version() -> Vec<u8> {
    let name = crate::syscall::system_name();
    format!("{} version {} {}\n", name.system, name.release, name.version).into_bytes()
}

pub(crate) fn filesystems() -> Vec<u8> {
    b"nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tdevtmpfs\nnodev\tpipefs\nnodev\tsockfs\n".to_vec()
}

pub(crate) fn mounts() -> Vec<u8> {
    let mut text = String::new();
    for mount in filesystem::mounts() {
        let name = mount.filesystem.name;
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{name} {} {name} rw,relatime 0 0", mount.path);
    }
    text.into_bytes()
}

pub(crate) fn partitions() -> Vec<u8> {
    b"major minor  #blocks  name\n\n".to_vec()
}

pub(crate) fn devices() -> Vec<u8> {
    b"Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n\nBlock devices:\n".to_vec()
}
