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

use ::memory::{Fault, MOST_SWAP_DISKS, PAGE_SIZE, Scanned, Swap, SwapRefused, swap_out};

use super::{AddressSpace, Kernel, room};
use crate::arch::registers;
use crate::files::SwapFile;
use crate::sync::{Mutex, WaitQueue, Wake};
use crate::syscall::Errno;
use crate::{process, task, time};

/// Where private pages of this machine go.
pub(crate) static SWAP: Swap<Kernel> = Swap::new();

const PAGE: usize = PAGE_SIZE as usize;
const SIGNATURE: &[u8] = b"SWAPSPACE2";
/// Where in the header the version is, and the bad pages.
const VERSION: usize = 1024;
const BAD_PAGES: usize = 1536;
/// How long `swapoff` waits for those who are about to give up slots, in nanoseconds.
const REST: u64 = 1_000_000;

/// A disk that is used, or on its way into use or out of it.
struct Used {
    file: SwapFile,
    state: State,
    /// Its number in `SWAP`, once it is in use.
    number: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its header is being read.
    Begins,
    InUse,
    /// That process brings back what is on it.
    Ends(u32),
}

/// Not held over anything that takes long: others take other disks into use, and look which there are, meanwhile.
static USED: Mutex<Vec<Used>> = Mutex::new(Vec::new());

/// EPERM if no disk more can be taken into use, whichever that is.
pub(crate) fn check_count() -> Result<(), Errno> {
    if USED.lock().len() < MOST_SWAP_DISKS { Ok(()) } else { Err(Errno::EPERM) }
}

/// Takes a disk into use, with a priority or behind the others. EBUSY if it is, EINVAL if it was not made for this.
pub(crate) fn begin(file: SwapFile, priority: Option<i32>) -> Result<(), Errno> {
    let mut used = USED.lock();
    if used.iter().any(|used| used.file == file) {
        return Err(Errno::EBUSY);
    }
    used.push(Used { file, state: State::Begins, number: 0 });
    drop(used);
    let added = add(file, priority);
    let mut used = USED.lock();
    match added {
        Ok(number) => {
            let its = used.iter_mut().filter(|used| used.file == file);
            its.for_each(|its| *its = Used { file, state: State::InUse, number });
        }
        Err(_) => used.retain(|used| used.file != file),
    }
    drop(used);
    added.map(|_| room::watch())
}

/// Its number in `SWAP`.
fn add(file: SwapFile, priority: Option<i32>) -> Result<usize, Errno> {
    let mut first = vec![0; PAGE];
    file.read_first(&mut first)?;
    let (told, bad) = header(&first).ok_or(Errno::EINVAL)?;
    let pages = told.min(Swap::most_pages(&Kernel, registers::physical_address_bits()));
    if u64::from(pages) > file.size() / PAGE_SIZE {
        return Err(Errno::EINVAL);
    }
    if pages < told {
        log::warn!("swap: of {told} pages of {} {pages} are used", file.name());
    }
    let added = SWAP.add(&Kernel, file.prepare()?, pages, &bad, priority);
    added.map_err(|refused| match refused {
        SwapRefused::TooMany => Errno::EPERM,
        SwapRefused::Empty => Errno::EINVAL,
        SwapRefused::OutOfMemory => Errno::ENOMEM,
    })
}

/// How many pages a header says there are, its own too, and which are bad; `None` if it is none. It may have been written on a machine that has
/// the other order of bytes.
fn header(first: &[u8]) -> Option<(u32, Vec<u32>)> {
    let bytes = |at: usize| first.get(at..at + 4)?.try_into().ok();
    let is_ours = u32::from_le_bytes(bytes(VERSION)?) == 1;
    let read = if is_ours { u32::from_le_bytes } else { u32::from_be_bytes };
    let word = |at: usize| bytes(at).map(read);
    let (version, last, bad) = (word(VERSION)?, word(VERSION + 4)?, word(VERSION + 8)? as usize);
    let most_bad = (PAGE - SIGNATURE.len() - BAD_PAGES) / 4;
    if !first.ends_with(SIGNATURE) || version != 1 || last == 0 || bad > most_bad {
        return None;
    }
    let bad: Vec<u32> = (0..bad).filter_map(|index| word(BAD_PAGES + 4 * index)).collect();
    let is_inside = |page: &u32| (1..=last).contains(page);
    bad.iter().all(is_inside).then_some((last.checked_add(1)?, bad))
}

/// Brings all that is on a disk back, and takes it out of use. EINVAL if it is not in use, or somebody does this already, ENOMEM if what is on it does not
/// fit into memory, EINTR if a signal comes first.
pub(crate) fn end(file: &SwapFile) -> Result<(), Errno> {
    let mut used = USED.lock();
    let its = used.iter_mut().find(|used| used.file == *file && used.state == State::InUse);
    let its = its.ok_or(Errno::EINVAL)?;
    its.state = State::Ends(process::current().process().id());
    let number = its.number;
    SWAP.set_open(number, false);
    drop(used);
    let outcome = empty(number);
    if outcome.is_err() {
        let mut used = USED.lock();
        used.iter_mut().filter(|used| used.file == *file).for_each(|its| its.state = State::InUse);
        SWAP.set_open(number, true);
    }
    outcome
}

/// Whether a process brings back what is on a disk.
pub(super) fn is_being_emptied_by(process: u32) -> bool {
    USED.lock().iter().any(|used| used.state == State::Ends(process))
}

/// Forgets a disk that is taken out of use, if nothing is on it any more; says whether that is so.
fn forget(number: usize) -> bool {
    // In one step for those who look: else another disk may have its number.
    let mut used = USED.lock();
    let is_gone = SWAP.remove(&Kernel, number);
    if is_gone {
        used.retain(|used| used.state == State::Begins || used.number != number);
    }
    is_gone
}

fn empty(number: usize) -> Result<(), Errno> {
    let goes_on = || !task::current().interrupted();
    let pause = WaitQueue::new();
    loop {
        for space in spaces() {
            bring_back(&space, number, &goes_on)?;
        }
        if forget(number) {
            return Ok(());
        }
        // Some slots may be a child's that is being made, or a process's that ends. Nobody wakes this queue: it is a sleep that signals end.
        if !goes_on() || pause.wait_interruptible::<()>(Some(time::now() + REST), || None) == Err(Wake::Interrupted) {
            return Err(Errno::EINTR);
        }
    }
}

fn bring_back(space: &AddressSpace, number: usize, goes_on: &dyn Fn() -> bool) -> Result<(), Errno> {
    loop {
        match space.bring_back(number, goes_on) {
            Ok(()) => return Ok(()),
            Err(Fault::OutOfMemory) if goes_on() && room::make() => {}
            Err(Fault::OutOfMemory) if goes_on() => return Err(Errno::ENOMEM),
            Err(Fault::OutOfMemory) => return Err(Errno::EINTR),
            Err(_) => return Err(Errno::EIO),
        }
    }
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
    let used = USED.lock();
    let counts = SWAP.disks();
    for used in used.iter().filter(|used| used.state != State::Begins) {
        let Some(disk) = counts.iter().find(|disk| disk.number == used.number) else { continue };
        let (size, taken) = (disk.total * 4, disk.used * 4);
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
