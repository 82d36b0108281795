//! Disks that are swapped to: taking them into use and out of it, and which pages go there.
//!
//! A disk is swapped to past its pages in memory (`cache`), which are written and forgotten first. The header is what `mkswap` writes:
//! in the first page, from byte 1024 on, the version (1), the last page, the number of bad ones (32 bits each), and the bad ones after 125 words more;
//! `SWAPSPACE2` in its last ten bytes.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use ::memory::{Fault, PAGE_SIZE, Scanned, Swap, swap_out};

use super::{AddressSpace, Kernel, room};
use crate::files::SwapFile;
use crate::process;
use crate::sync::{Mutex, WaitQueue};
use crate::syscall::Errno;
use crate::time;

/// Where private pages of this machine go.
pub(crate) static SWAP: Swap<Kernel> = Swap::new();

const PAGE: usize = PAGE_SIZE as usize;
const SIGNATURE: &[u8] = b"SWAPSPACE2";
/// Where in the header the version is, and the bad pages.
const VERSION: usize = 1024;
const BAD_PAGES: usize = 1536;
/// How long `swapoff` waits for those who are about to give up slots, in nanoseconds.
const REST: u64 = 1_000_000;

/// A disk in use.
struct InUse {
    file: SwapFile,
    /// Its number in `SWAP`.
    number: usize,
    pages: u32,
}

static IN_USE: Mutex<Vec<InUse>> = Mutex::new(Vec::new());

/// Takes a disk into use, with a priority or behind the others. EBUSY if it is, EINVAL if it was not made for this.
pub(crate) fn begin(file: SwapFile, priority: Option<i32>) -> Result<(), Errno> {
    let mut in_use = IN_USE.lock();
    if in_use.iter().any(|used| used.file == file) {
        return Err(Errno::EBUSY);
    }
    let mut first = vec![0; PAGE];
    file.read_first(&mut first)?;
    let (pages, bad) = header(&first).ok_or(Errno::EINVAL)?;
    if u64::from(pages) > file.size() / PAGE_SIZE {
        return Err(Errno::EINVAL);
    }
    let number = SWAP.add(file.prepare()?, pages, &bad, priority).map_err(|_| Errno::ENOMEM)?;
    in_use.push(InUse { file, number, pages });
    room::watch();
    Ok(())
}

/// How many pages a header says there are, its own too, and which are bad; `None` if it is none.
fn header(first: &[u8]) -> Option<(u32, Vec<u32>)> {
    let word = |at: usize| Some(u32::from_le_bytes(first.get(at..at + 4)?.try_into().ok()?));
    let (version, last, bad) = (word(VERSION)?, word(VERSION + 4)?, word(VERSION + 8)? as usize);
    let most_bad = (PAGE - SIGNATURE.len() - BAD_PAGES) / 4;
    if !first.ends_with(SIGNATURE) || version != 1 || last == 0 || bad > most_bad {
        return None;
    }
    let bad: Vec<u32> = (0..bad).filter_map(|index| word(BAD_PAGES + 4 * index)).collect();
    let is_inside = |page: &u32| (1..=last).contains(page);
    bad.iter().all(is_inside).then_some((last.checked_add(1)?, bad))
}

/// Brings all that is on a disk back, and takes it out of use. EINVAL if it is not in use, ENOMEM if what is on it does not fit into memory.
pub(crate) fn end(file: &SwapFile) -> Result<(), Errno> {
    let mut in_use = IN_USE.lock();
    let index = in_use.iter().position(|used| used.file == *file).ok_or(Errno::EINVAL)?;
    let number = in_use[index].number;
    SWAP.set_open(number, false);
    let outcome = empty(number);
    if outcome.is_ok() {
        in_use.remove(index);
    } else {
        SWAP.set_open(number, true);
    }
    outcome
}

fn empty(number: usize) -> Result<(), Errno> {
    let pause = WaitQueue::new();
    while !SWAP.remove(number) {
        for space in spaces() {
            loop {
                match space.bring_back(number) {
                    Ok(()) => break,
                    Err(Fault::OutOfMemory) if room::make() => {}
                    Err(Fault::OutOfMemory) => return Err(Errno::ENOMEM),
                    Err(_) => return Err(Errno::EIO),
                }
            }
        }
        // Some slots may be a child's that is being made, or a process's that ends. Nobody wakes this queue: it is a sleep that signals end.
        if let Err(crate::sync::Wake::Interrupted) =
            pause.wait_interruptible::<()>(Some(time::now() + REST), || None)
        {
            return Err(Errno::EINTR);
        }
    }
    Ok(())
}

/// The address spaces of all processes.
fn spaces() -> Vec<Arc<AddressSpace>> {
    let processes = process::process_ids().into_iter().filter_map(process::find_process);
    processes.filter_map(|process| Some(process.memory()?.space().clone())).collect()
}

/// Has private pages go that have not been used for long.
pub(super) fn go_out(wanted: usize) -> Scanned {
    // Full or not: what is in a slot and in memory can go.
    if SWAP.disks().is_empty() {
        return Scanned::default();
    }
    let failed = SWAP.counts().failed;
    let scanned = swap_out(&Kernel, &spaces(), wanted);
    let failed = SWAP.counts().failed - failed;
    if failed > 0 {
        log::error!("swap: {failed} pages could not be written, and stay in memory");
    }
    scanned
}

/// `/proc/swaps`.
pub(crate) fn table() -> Vec<u8> {
    let mut text = String::from("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    let counts = SWAP.disks();
    for used in IN_USE.lock().iter() {
        let Some(disk) = counts.iter().find(|disk| disk.number == used.number) else { continue };
        let (size, taken) = (u64::from(used.pages - 1) * 4, disk.used * 4);
        // Small numbers are followed by one tab more, so that the columns stay below each other.
        let [after_size, after_taken] = [size, taken].map(|number| if number < 10_000_000 { "\t" } else { "" });
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{:<40}partition\t{size}\t{after_size}{taken}\t{after_taken}{}",
            used.file.name(),
            disk.priority
        );
    }
    text.into_bytes()
}
