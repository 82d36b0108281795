//! When the last frames are gone.
//!
//! Memory is promised freely, so a page fault may find none left. Then pages of disks are taken back, and private ones written to swap; when there are no more, or no room there, the process that holds the most memory is killed
//! and named in the kernel's log, and whoever needed the frame tries again once there is room. The kernel keeps a
//! reserve of frames (`memory::Frames`), so that killing does not need what it is to free.
//!
//! Before all others goes, as on Linux, who takes a disk out of swap: that is what needs the memory, and the disk can stay. What is on it goes there again then.
//!
//! One caller at a time looks for a victim; the others wait behind it and usually find room afterwards.

use alloc::string::String;
use alloc::sync::Arc;

use super::FRAMES;
use crate::process::signal::{Information, Signal, send_to_process};
use crate::process::{self, Process};
use crate::sync::{Mutex, WaitQueue};
use crate::time;

/// The caller's own process is ending; there is nothing to try again.
pub(super) struct Chosen;

/// Room is made when one frame in this many is free. More than the kernel's reserve, which users never get.
const ROOM_SHARE: usize = 64;
/// How long a victim may take before another is chosen, and how often we look, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
const INTERVAL: u64 = 1_000_000;

static TURN: Mutex<()> = Mutex::new(());
static PAUSE: WaitQueue = WaitQueue::new();

/// Makes room if there is none yet: by taking back what can be had again, else by killing somebody. Returns when the caller may try again. May sleep.
pub(super) fn relieve() -> Result<(), Chosen> {
    let _turn = TURN.lock();
    let caller = process::current();
    loop {
        if caller.process().is_ending() {
            return Err(Chosen);
        }
        if has_room() {
            return Ok(());
        }
        if super::room::make() {
            continue;
        }
        if let Some(victim) = processes().find(is_emptying_swap) {
            kill(&victim, pages_of(&victim).unwrap_or(0));
            // There is room as soon as what it has brought back may go again.
            wait(caller.process(), || is_emptying_swap(&victim));
            continue;
        }
        // Without a victim everybody who could be killed is on the way out.
        if let Some((victim, pages)) = choose() {
            kill(&victim, pages);
        }
        wait(caller.process(), || true);
    }
}

/// The processes that are not on the way out.
fn processes() -> impl Iterator<Item = Arc<Process>> {
    let all = process::process_ids().into_iter().filter_map(process::find_process);
    all.filter(|process| !process.is_ending())
}

/// Its pages in memory and swap.
fn pages_of(process: &Process) -> Option<u64> {
    let sizes = process.memory()?.space().sizes();
    Some(sizes.resident + sizes.swapped)
}

fn is_emptying_swap(process: &Arc<Process>) -> bool {
    super::swap::is_being_emptied_by(process.id())
}

fn has_room() -> bool {
    let statistics = FRAMES.statistics();
    statistics.free > statistics.total / ROOM_SHARE
}

/// The process with the most pages in memory and swap, weighed with `/proc/PID/oom_score_adj` (each point counts as a thousandth
/// of all memory; the lowest value exempts).
fn choose() -> Option<(Arc<Process>, u64)> {
    let total = FRAMES.statistics().total as i64;
    let weigh = |process: Arc<Process>| {
        let adjustment = i64::from(process.out_of_memory_adjustment());
        if adjustment <= -1000 {
            return None;
        }
        let pages = pages_of(&process)?;
        Some((pages as i64 + adjustment * total / 1000, process, pages))
    };
    processes().filter_map(weigh).max_by_key(|(weight, ..)| *weight).map(|(_, process, pages)| (process, pages))
}

fn kill(victim: &Process, pages: u64) {
    let name = victim.leader().map_or(String::new(), |leader| {
        let name = leader.name();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    });
    log::error!(
        "out of memory: killed process {} ({name}), which had {} KiB in memory and swap",
        victim.id(),
        pages * 4
    );
    // SIGKILL is never queued, so there is always room for it.
    let _ = send_to_process(victim, Information::from_kernel(Signal::SIGKILL));
}

/// Waits for room, no longer than `is_worth_it`.
fn wait(caller: &Process, is_worth_it: impl Fn() -> bool) {
    let deadline = time::now() + PATIENCE;
    while time::now() < deadline && !has_room() && !caller.is_ending() && is_worth_it() {
        // Nobody wakes this queue: it is a sleep that signals end.
        let _ = PAUSE.wait_interruptible::<()>(Some(time::now() + INTERVAL), || None);
    }
}
