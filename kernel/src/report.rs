//! The end of a run: what happened, as JSON for the host, and the machine off.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use coherence::{CpuId, Mechanism, Row};
use protocol::report::{self, Clock, Exit, Memory, Report, UnknownCall};

use crate::arch::layout::PAGE_BYTES;
use crate::console::{self, Channel};
use crate::frames::FRAMES;
use crate::interrupt::shootdown::COHERENCE;
use crate::syscall::unknown_calls;
use crate::{boot, cpu, heap, power, process, time};

static PROGRAM_START: AtomicU64 = AtomicU64::new(0);
static FREE_AT_START: AtomicU64 = AtomicU64::new(0);

/// Notes that the program's first instruction comes next.
pub(crate) fn program_starts() {
    FREE_AT_START.store(free_bytes(), Ordering::Relaxed);
    PROGRAM_START.store(time::now(), Ordering::Relaxed);
}

/// Reports how the program ended, and switches the machine off.
pub(crate) fn finish(exit: Exit) -> ! {
    let report = compose(exit);
    // Numbers and names only: there is nothing in it that JSON could not say.
    let text = serde_json::to_vec(&report).expect("a report can be written as JSON");
    console::write(Channel::Report, &text);
    power::exit(power::ORDERLY)
}

fn compose(exit: Exit) -> Report {
    let program_end = time::now();
    let spent = process::time_of_all();
    let cpus = cpu::count();
    let switches = COHERENCE.switches();
    let mechanism = |mechanism: Mechanism| report::Mechanism {
        name: mechanism.name().to_owned(),
        on: switches.has(mechanism),
    };
    Report {
        schema: report::SCHEMA.to_owned(),
        exit,
        cpus: cpus as u32,
        mechanisms: Mechanism::ALL.into_iter().map(mechanism).collect(),
        ledger: ledger(cpus),
        unknown_system_calls: unknown_calls().into_iter().map(|(number, calls)| UnknownCall { number, calls }).collect(),
        clock: Clock { program_start: PROGRAM_START.load(Ordering::Relaxed), program_end },
        memory: memory(),
        processor_time: Some(report::ProcessorTime { user: spent.user, system: spent.system }),
    }
}

fn ledger(cpus: usize) -> Vec<report::Row> {
    let ledger = COHERENCE.ledger();
    let row = |row: Row| {
        let (group, name) = row.names();
        let per_cpu = (0..cpus).filter_map(CpuId::new).map(|cpu| ledger.on(cpu, row)).collect();
        report::Row { group: group.to_owned(), name: name.to_owned(), per_cpu }
    };
    Row::all().map(row).collect()
}

fn memory() -> Memory {
    let frames = FRAMES.statistics();
    let (heap_in_use, heap) = heap::statistics();
    Memory {
        total: frames.total as u64 * PAGE_BYTES,
        free_at_start: FREE_AT_START.load(Ordering::Relaxed),
        free_at_end: free_bytes(),
        kernel_image: boot::map::image_bytes(),
        frame_metadata: frames.metadata as u64 * PAGE_BYTES,
        heap: heap as u64,
        heap_in_use: heap_in_use as u64,
        initramfs: boot::initramfs().len() as u64,
    }
}

fn free_bytes() -> u64 {
    FRAMES.statistics().free as u64 * PAGE_BYTES
}
