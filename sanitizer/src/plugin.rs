//! What is watched, and what happens then.
//!
//! Arguments, as `NAME=NUMBER` (hexadecimal, without prefix):
//!
//! | name | number |
//! |---|---|
//! | `declaration` | physical address of the kernel's `protocol::sanitizer::Declaration` |
//! | `ram`, `low` | bytes of RAM, and how many of them lie below the hole under 4 GiB |
//! | `report` | the inherited descriptor that takes the messages |
//!
//! QEMU does not say where the guest's RAM lies in this process. It does say where an instruction lies, so the first
//! instruction of the kernel's image, whose physical address is known, gives it away; the declaration's first word confirms it.
//!
//! After a violation nothing must go on. The thread of the CPU that made it, and of each CPU that comes by here later, stays in
//! its callback for ever; the host looks at the machine and ends it.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use protocol::sanitizer::{AccessKind, IMAGE_BASE, MAX_CPUS, Message, PAGE_BYTES, Summary, USER_END};

use crate::declared::Declared;
use crate::emulator::{self, Block, Identity, Plugin};
use crate::guest_memory::GuestMemory;
use crate::judge::{Access, Verdict, is_watched, judge};

/// Bits of a note about a block that hold a frame's number; the others hold a page's.
const FRAME_BITS: u32 = 28;

#[derive(Debug)]
struct Arguments {
    declaration: u64,
    ram: u64,
    low: u64,
}

/// What one CPU has been checked for. On lines of its own, so that CPUs do not wait for each other.
#[derive(Debug)]
#[repr(align(128))]
struct Counters {
    accesses: AtomicU64,
    fetches: AtomicU64,
    during_changes: AtomicU64,
}

static ARGUMENTS: OnceLock<Arguments> = OnceLock::new();
/// The kernel, once it runs; a sentence if it is not one that declares.
static GUEST: OnceLock<Result<Declared, String>> = OnceLock::new();
/// Where messages go; `None` after the last one.
static REPORT: Mutex<Option<File>> = Mutex::new(None);
/// A violation was found.
static STOPPED: AtomicBool = AtomicBool::new(false);
static COUNTERS: [Counters; MAX_CPUS] = [const {
    Counters { accesses: AtomicU64::new(0), fetches: AtomicU64::new(0), during_changes: AtomicU64::new(0) }
}; MAX_CPUS];

/// Begins to watch.
///
/// # Errors
/// A sentence about an argument.
pub(crate) fn install(identity: Identity, texts: &[String]) -> Result<(), String> {
    let number = |name: &str| {
        let value = texts.iter().find_map(|text| text.strip_prefix(name)?.strip_prefix('='));
        let value = value.ok_or_else(|| format!("the argument {name}=NUMBER is missing"))?;
        u64::from_str_radix(value, 16).map_err(|_| format!("{name}={value} is no hexadecimal number"))
    };
    let report = format!("/dev/fd/{}", number("report")?);
    let report = File::options()
        .write(true)
        .open(&report)
        .map_err(|error| format!("cannot write {report}: {error}"))?;
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    let arguments =
        Arguments { declaration: number("declaration")?, ram: number("ram")?, low: number("low")? };
    if ARGUMENTS.set(arguments).is_err() {
        return Err("it is loaded twice".into());
    }
    emulator::register::<Sanitizer>(identity);
    Ok(())
}

struct Sanitizer;

impl Plugin for Sanitizer {
    fn translate(block: &Block<'_>) {
        let mut pages = [None, None];
        for instruction in block.instructions() {
            instruction.watch_accesses();
            let (address, host) = (instruction.address(), instruction.host());
            if host.is_null() {
                continue;
            }
            if address >= IMAGE_BASE {
                GUEST.get_or_init(|| find_guest(address, host));
            } else if address < USER_END {
                // A block may reach into a second page.
                pages = [pages[0].or(Some((address, host))), Some((address, host))];
            }
        }
        let Some(Ok(guest)) = GUEST.get() else { return };
        let [first, last] = pages.map(|page| {
            let (address, host) = page?;
            let frame = guest.memory().physical(guest.memory().offset_of_host(host)?)? / PAGE_BYTES;
            Some((address / PAGE_BYTES) << FRAME_BITS | frame)
        });
        first.into_iter().for_each(|note| block.watch_entry(note));
        last.filter(|_| last != first).into_iter().for_each(|note| block.watch_entry(note));
    }

    fn accessed(cpu: u32, instruction: u64, address: u64, is_store: bool, ram: impl FnOnce() -> Option<u64>) {
        if !is_watched(address) {
            return;
        }
        let Some(Ok(guest)) = GUEST.get() else { return };
        let Some(physical) = ram().and_then(|offset| guest.memory().physical(offset)) else { return };
        let kind = if is_store { AccessKind::Store } else { AccessKind::Load };
        check(guest, &Access { cpu, instruction, address, kind, physical }, |counters| &counters.accesses);
    }

    fn entered(cpu: u32, note: u64) {
        let Some(Ok(guest)) = GUEST.get() else { return };
        let address = (note >> FRAME_BITS) * PAGE_BYTES;
        let physical = (note & ((1 << FRAME_BITS) - 1)) * PAGE_BYTES;
        let kind = AccessKind::Fetch;
        check(guest, &Access { cpu, instruction: address, address, kind, physical }, |counters| {
            &counters.fetches
        });
    }

    fn end() {
        if STOPPED.load(Relaxed) {
            return;
        }
        match GUEST.get() {
            Some(Ok(_)) => say(&Message::Summary(summary())),
            Some(Err(why)) => eprintln!("sanitizer: {why}"),
            None => eprintln!("sanitizer: the guest ran no kernel of ours"),
        }
    }
}

/// The kernel that an instruction belongs to.
fn find_guest(address: u64, host: *const u8) -> Result<Declared, String> {
    let arguments = ARGUMENTS.get().ok_or("it has no arguments")?;
    let physical = address - IMAGE_BASE;
    let base = host.with_addr(host.addr().wrapping_sub(physical as usize));
    declared_at(base, arguments)
}

#[allow(unsafe_code)]
fn declared_at(base: *const u8, arguments: &Arguments) -> Result<Declared, String> {
    // SAFETY: QEMU maps the RAM of these boards in one piece, `ram` bytes long as it was told itself, and keeps it to its end. The
    // image's code lies at its physical address in it, below the hole, so this is where it begins. The kernel and its programs
    // write it through emulated CPUs.
    let memory = unsafe { GuestMemory::new(base, arguments.ram, arguments.low) };
    Declared::find(memory, arguments.declaration)
}

fn check(guest: &Declared, access: &Access, counter: impl FnOnce(&Counters) -> &AtomicU64) {
    if STOPPED.load(Relaxed) {
        stay();
    }
    let verdict = judge(guest, access);
    let Some(counters) = COUNTERS.get(access.cpu as usize) else { return };
    match verdict {
        Verdict::Unknown => return,
        Verdict::Right => {}
        Verdict::DuringChange => count(&counters.during_changes),
        Verdict::Stale(violation) => {
            if !STOPPED.swap(true, Relaxed) {
                say(&Message::Violation(*violation));
            }
            stay();
        }
    }
    count(counter(counters));
}

/// One more. Only the CPU's own thread writes, so it need not be one step.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

fn summary() -> Summary {
    let total = |counter: fn(&Counters) -> &AtomicU64| {
        COUNTERS.iter().map(|counters| counter(counters).load(Relaxed)).sum()
    };
    Summary {
        accesses: total(|counters| &counters.accesses),
        fetches: total(|counters| &counters.fetches),
        during_changes: total(|counters| &counters.during_changes),
    }
}

/// Sends the one message.
fn say(message: &Message) {
    let Some(mut report) = REPORT.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let sent = serde_json::to_string(message).map_err(std::io::Error::other);
    if let Err(error) = sent.and_then(|line| writeln!(report, "{line}")) {
        eprintln!("sanitizer: cannot report: {error}");
    }
}

/// Keeps this CPU where it is until the process ends.
fn stay() -> ! {
    loop {
        std::thread::park();
    }
}
