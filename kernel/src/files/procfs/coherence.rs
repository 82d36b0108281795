//! What this kernel is about: which interrupts there were and which were avoided.

use crate::cpu;
use crate::interrupt::counters::{self, Kind};
use crate::interrupt::shootdown::COHERENCE;
use alloc::string::String;
use alloc::vec::Vec;
use coherence::CpuId;
use core::fmt::Write;

/// `/proc/interrupts`, in Linux's layout.
pub(crate) fn interrupts() -> Vec<u8> {
    let cpus = 0..cpu::count();
    let mut text = String::from("           ");
    for cpu in cpus.clone() {
        // Writing into a string cannot fail, here and below.
        let _ = write!(text, "CPU{cpu:<8}");
    }
    text.push('\n');
    for kind in Kind::ALL {
        let (label, description) = kind.names();
        let _ = write!(text, "{label:>3}:");
        for cpu in cpus.clone() {
            let _ = write!(text, " {:>10}", counters::of(cpu, kind));
        }
        let _ = writeln!(text, "   {description}");
    }
    text.into_bytes()
}

/// `/proc/ceasefire`: the ledger. One row a line: its name, the sum, and the value of each CPU; rows of zeroes
/// are left out.
pub(crate) fn ledger() -> Vec<u8> {
    let ledger = COHERENCE.ledger();
    let cpus = 0..cpu::count();
    let mut text = String::new();
    let _ = write!(text, "{:<40} {:>12}", "row", "total");
    for cpu in cpus.clone() {
        let _ = write!(text, " {:>10}", alloc::format!("cpu{cpu}"));
    }
    text.push('\n');
    for (row, total) in ledger.totals().filter(|&(_, total)| total > 0) {
        let _ = write!(text, "{:<40} {total:>12}", alloc::format!("{row}"));
        for cpu in cpus.clone() {
            let value = CpuId::new(cpu).map_or(0, |cpu| ledger.on(cpu, row));
            let _ = write!(text, " {value:>10}");
        }
        text.push('\n');
    }
    text.into_bytes()
}
