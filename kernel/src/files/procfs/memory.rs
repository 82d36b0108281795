//! How memory is used: `/proc/meminfo` and `/proc/vmstat`.

use crate::block;
use crate::interrupt::shootdown::COHERENCE;
use crate::memory::swap::SWAP;
use crate::memory::{FRAMES, cache, room};
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
    let pages = FRAMES.page_counts();
    let (dirty, leaving) = cache::dirty_and_leaving_pages();
    let disks = pages.all() * PAGE;
    let swap = SWAP.counts();
    let in_swap = |pages: u64| pages as usize * PAGE;
    let rows = [
        ("MemTotal", total),
        ("MemFree", free),
        // Pages of disks can be given up, and nothing else.
        ("MemAvailable", free + disks),
        ("Buffers", disks),
        ("Cached", 0),
        ("SwapCached", in_swap(swap.cached)),
        ("Active", pages.used * PAGE),
        ("Inactive", (pages.idle + pages.aside) * PAGE),
        ("Active(file)", pages.used * PAGE),
        ("Inactive(file)", (pages.idle + pages.aside) * PAGE),
        ("Mlocked", 0),
        ("SwapTotal", in_swap(swap.total)),
        ("SwapFree", in_swap(swap.free)),
        ("Dirty", dirty * PAGE),
        ("Writeback", leaving * PAGE),
        ("AnonPages", (total - free).saturating_sub(disks)),
        ("Mapped", 0),
        ("Shmem", 0),
        ("CommitLimit", total + in_swap(swap.total)),
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
    let pages = FRAMES.page_counts();
    let (dirty, leaving) = cache::dirty_and_leaving_pages();
    let disks = pages.all() as u64;
    let (carried_in, carried_out) = block::carried();
    let (background, direct) = room::counted();
    let anonymous = room::counted_anonymous();
    let swap = SWAP.counts();
    let large = FRAMES.large_pages().counts();
    let executed = |row| ledger.total(Row::Executed(row));
    let all_local = executed(Executed::LocalFull) + executed(Executed::SwitchFull) + executed(Executed::LazyFull);
    let rows = [
        ("nr_free_pages", frames.free as u64),
        ("nr_anon_pages", ((frames.total - frames.free) as u64).saturating_sub(disks)),
        ("nr_inactive_file", (pages.idle + pages.aside) as u64),
        ("nr_active_file", pages.used as u64),
        ("nr_mapped", 0),
        ("nr_file_pages", disks),
        ("nr_dirty", dirty as u64),
        ("nr_writeback", leaving as u64),
        ("nr_shmem", 0),
        ("pgfault", crate::memory::fault_count()),
        ("pgmajfault", cache::waits() + swap.waits),
        ("pgpgin", carried_in / 1024),
        ("pgpgout", carried_out / 1024),
        ("pgsteal_kswapd", background.taken),
        ("pgsteal_direct", direct.taken),
        ("pgscan_kswapd", background.looked_at),
        ("pgscan_direct", direct.looked_at),
        ("pgsteal_anon", anonymous.taken),
        ("pgscan_anon", anonymous.looked_at),
        ("pgsteal_file", background.taken + direct.taken - anonymous.taken),
        ("pgscan_file", background.looked_at + direct.looked_at - anonymous.looked_at),
        ("pageoutrun", background.begun),
        ("allocstall_normal", direct.begun),
        ("pgactivate", pages.activated),
        ("pgdeactivate", pages.deactivated),
        ("workingset_refault_file", pages.refaulted),
        ("workingset_activate_file", pages.refaulted_in_use),
        ("pswpin", swap.came),
        ("pswpout", swap.went),
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
