//! How memory is used: `/proc/meminfo` and `/proc/vmstat`.

use crate::interrupt::shootdown::COHERENCE;
use crate::memory::{FRAMES, cache};
use alloc::string::String;
use alloc::vec::Vec;
use coherence::{Executed, Row};
use core::fmt::Write;

/// KiB in a page.
const PAGE: usize = 4;

pub(crate) fn meminfo() -> Vec<u8> {
    let frames = FRAMES.statistics();
    let total = frames.total * PAGE;
    let free = frames.free * PAGE;
    let disks = cache::resident_pages() as usize * PAGE;
    let rows = [
        ("MemTotal", total),
        ("MemFree", free),
        // Pages of disks can be given up, and nothing else.
        ("MemAvailable", free + disks),
        ("Buffers", disks),
        ("Cached", 0),
        ("SwapCached", 0),
        ("Active", 0),
        ("Inactive", 0),
        ("Mlocked", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", (total - free).saturating_sub(disks)),
        ("Mapped", 0),
        ("Shmem", 0),
        ("CommitLimit", total),
        ("Committed_AS", (total - free).saturating_sub(disks)),
        ("AnonHugePages", FRAMES.large_pages().counts().mapped as usize * 512 * PAGE),
        ("HugePages_Total", 0),
        ("HugePages_Free", 0),
        ("Hugepagesize", 2048),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        let unit = if name.starts_with("HugePages_") { "" } else { " kB" };
        // Writing into a string cannot fail, here and below.
        let _ = writeln!(text, "{:<15} {value:>8}{unit}", alloc::format!("{name}:"));
    }
    text.into_bytes()
}

/// The rows of Linux's file that this kernel can fill, the translation rows from the ledger.
pub(crate) fn vmstat() -> Vec<u8> {
    let frames = FRAMES.statistics();
    let ledger = COHERENCE.ledger();
    let disks = cache::resident_pages();
    let large = FRAMES.large_pages().counts();
    let executed = |row| ledger.total(Row::Executed(row));
    let all_local = executed(Executed::LocalFull) + executed(Executed::SwitchFull) + executed(Executed::LazyFull);
    let rows = [
        ("nr_free_pages", frames.free as u64),
        ("nr_anon_pages", ((frames.total - frames.free) as u64).saturating_sub(disks)),
        ("nr_mapped", 0),
        ("nr_file_pages", disks),
        ("nr_dirty", 0),
        ("nr_writeback", 0),
        ("nr_shmem", 0),
        ("pgfault", crate::memory::fault_count()),
        ("pgmajfault", 0),
        ("pgsteal_kswapd", 0),
        ("pgsteal_direct", cache::taken_pages()),
        ("pswpin", 0),
        ("pswpout", 0),
        ("nr_tlb_remote_flush", ledger.group("requested")),
        ("nr_tlb_remote_flush_received", ledger.group("received")),
        ("nr_tlb_local_flush_all", all_local),
        ("nr_tlb_local_flush_one", executed(Executed::LocalPages)),
        ("thp_fault_alloc", large.faults),
        ("thp_fault_fallback", large.fallbacks),
        ("thp_collapse_alloc", large.collapses),
        ("thp_collapse_alloc_failed", large.failed_collapses),
        ("thp_split_pmd", large.splits),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{name} {value}");
    }
    text.into_bytes()
}
