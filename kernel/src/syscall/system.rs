//! The machine and odds of a process's state: `uname`, `sysinfo`, `getrandom`, `prctl`, `arch_prctl`,
//! `personality`.

use super::{Arguments, Errno};
use crate::memory::user;
use crate::process::credentials::{ALL_CAPABILITIES, CAP_SETPCAP};
use crate::process::signal::Signal;
use crate::process::{NAME_SIZE, USER_END, counts, current, random};
use crate::sync::SpinLock;
use crate::{task, time};
use alloc::string::String;
use alloc::vec;
use core::sync::atomic::Ordering;
use linux_raw_sys::prctl as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Length of each field of `struct utsname`, with its NUL.
const FIELD: usize = 65;
/// What programs that look at the release find: the Linux whose behaviour is kept.
const RELEASE: &str = "6.1.0-ceasefire";
const VERSION: &str = "#1 SMP ceasefire";
const SYSTEM: &str = "Linux";
/// Most bytes that one `getrandom` gives.
const RANDOM_MAX: usize = 33_554_431;
/// Bytes of random data that are made at once.
const PIECE: usize = 4096;

struct Names {
    host: [u8; FIELD],
    domain: [u8; FIELD],
}

static NAMES: SpinLock<Names> = SpinLock::new(Names { host: field(b"ceasefire"), domain: field(b"(none)") });

const fn field(text: &[u8]) -> [u8; FIELD] {
    let mut bytes = [0; FIELD];
    let mut at = 0;
    while at < text.len() {
        bytes[at] = text[at];
        at += 1;
    }
    bytes
}

/// What `uname` says, as text for `/proc`.
pub(crate) struct SystemName {
    /// The system's name.
    pub(crate) system: &'static str,
    /// Whose behaviour it keeps.
    pub(crate) release: &'static str,
    /// Its own name.
    pub(crate) version: &'static str,
    /// The host's name.
    pub(crate) host: String,
}

/// The present names.
pub(crate) fn system_name() -> SystemName {
    let host = NAMES.lock().host;
    let length = host.iter().position(|byte| *byte == 0).unwrap_or(FIELD);
    let host = String::from_utf8_lossy(&host[..length]).into_owned();
    SystemName { system: SYSTEM, release: RELEASE, version: VERSION, host }
}

/// `uname(result)`.
pub(super) fn uname(arguments: &Arguments) -> Result<usize, Errno> {
    let (host, domain) = {
        let names = NAMES.lock();
        (names.host, names.domain)
    };
    let machine = field(b"x86_64");
    let record = [
        field(SYSTEM.as_bytes()),
        host,
        field(RELEASE.as_bytes()),
        field(VERSION.as_bytes()),
        machine,
        domain,
    ];
    user::write_bytes(arguments[0], record.as_bytes())?;
    Ok(0)
}

/// `sethostname(name, length)`.
pub(super) fn sethostname(arguments: &Arguments) -> Result<usize, Errno> {
    NAMES.lock().host = read_name(arguments)?;
    Ok(0)
}

/// `setdomainname(name, length)`.
pub(super) fn setdomainname(arguments: &Arguments) -> Result<usize, Errno> {
    NAMES.lock().domain = read_name(arguments)?;
    Ok(0)
}

fn read_name(arguments: &Arguments) -> Result<[u8; FIELD], Errno> {
    let length = usize::try_from(arguments[1] as i32).map_err(|_| Errno::EINVAL)?;
    let mut name = [0; FIELD];
    user::read_bytes(arguments[0], name.get_mut(..length).filter(|_| length < FIELD).ok_or(Errno::EINVAL)?)?;
    Ok(name)
}

/// `struct sysinfo`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct SystemInformation {
    uptime: u64,
    loads: [u64; 3],
    total: u64,
    free: u64,
    shared: u64,
    buffers: u64,
    total_swap: u64,
    free_swap: u64,
    processes: u16,
    padding: [u16; 3],
    total_high: u64,
    free_high: u64,
    unit: u32,
    end: u32,
}

/// `sysinfo(result)`.
pub(super) fn sysinfo(arguments: &Arguments) -> Result<usize, Errno> {
    let memory = crate::memory::usage();
    let swap = crate::memory::swap::SWAP.counts();
    let information = SystemInformation {
        uptime: time::now() / time::SECOND,
        loads: [0; 3],
        total: memory.total_pages * 4096,
        free: memory.free_pages * 4096,
        shared: 0,
        buffers: 0,
        total_swap: swap.total * 4096,
        free_swap: swap.free * 4096,
        processes: counts().0 as u16,
        padding: [0; 3],
        total_high: 0,
        free_high: 0,
        unit: 1,
        end: 0,
    };
    user::write(arguments[0], &information)?;
    Ok(0)
}

/// `getrandom(buffer, length, flags)`.
pub(super) fn getrandom(arguments: &Arguments) -> Result<usize, Errno> {
    let [buffer, length, flags, ..] = *arguments;
    // GRND_NONBLOCK, GRND_RANDOM, GRND_INSECURE; the last two contradict each other.
    if flags as u32 & !7 != 0 || flags as u32 & 6 == 6 {
        return Err(Errno::EINVAL);
    }
    let length = (length as usize).min(RANDOM_MAX);
    let mut done = 0;
    let mut piece = vec![0; PIECE.min(length)];
    while done < length {
        let part = piece.len().min(length - done);
        random::fill(&mut piece[..part]);
        match user::write_bytes(buffer.wrapping_add(done as u64), &piece[..part]) {
            Ok(()) => done += part,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        task::yield_if_needed();
    }
    Ok(done)
}

const SET_GS: u64 = 0x1001;
const SET_FS: u64 = 0x1002;
const GET_FS: u64 = 0x1003;
const GET_GS: u64 = 0x1004;
const GET_CPUID: u64 = 0x1011;
const SET_CPUID: u64 = 0x1012;

/// `arch_prctl(code, address)`.
pub(super) fn arch_prctl(arguments: &Arguments) -> Result<usize, Errno> {
    let [code, address, ..] = *arguments;
    let task = task::current();
    match code {
        SET_FS | SET_GS if address >= USER_END => return Err(Errno::EPERM),
        SET_FS => task.set_fs_base(address),
        SET_GS => task.set_gs_base(address),
        GET_FS => user::write(address, &task.fs_base())?,
        GET_GS => user::write(address, &task.gs_base())?,
        // CPUID is always allowed and cannot be made to fault.
        GET_CPUID => return Ok(1),
        SET_CPUID => return Err(Errno::ENODEV),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// `personality(value)`: kept and given back; only Linux's own is supported.
pub(super) fn personality(arguments: &Arguments) -> Result<usize, Errno> {
    let thread = current();
    let kept = &thread.process().personality;
    let before = kept.load(Ordering::Relaxed);
    let wanted = arguments[0] as u32;
    if wanted != u32::MAX {
        kept.store(wanted, Ordering::Relaxed);
    }
    Ok(before as usize)
}

/// `prctl(option, ...)`.
pub(super) fn prctl(arguments: &Arguments) -> Result<usize, Errno> {
    let [option, value, ..] = *arguments;
    let thread = current();
    let process = thread.process();
    match option as u32 {
        abi::PR_SET_NAME => {
            thread.set_name(&read_thread_name(value)?);
        }
        abi::PR_GET_NAME => user::write_bytes(value, &thread.name())?,
        abi::PR_SET_PDEATHSIG => {
            if value != 0 && Signal::new(value).is_none() {
                return Err(Errno::EINVAL);
            }
            process.parent_death_signal.store(value as u32, Ordering::Relaxed);
        }
        abi::PR_GET_PDEATHSIG => user::write(value, &process.parent_death_signal.load(Ordering::Relaxed))?,
        abi::PR_GET_DUMPABLE => return Ok(process.dumpable.load(Ordering::Relaxed) as usize),
        abi::PR_SET_DUMPABLE if value > 1 => return Err(Errno::EINVAL),
        abi::PR_SET_DUMPABLE => process.dumpable.store(value as u32, Ordering::Relaxed),
        abi::PR_GET_KEEPCAPS => return Ok(usize::from(process.credentials().keep_capabilities)),
        abi::PR_SET_KEEPCAPS if value > 1 => return Err(Errno::EINVAL),
        abi::PR_SET_KEEPCAPS => {
            process.with_credentials(|credentials| credentials.keep_capabilities = value == 1)
        }
        abi::PR_SET_CHILD_SUBREAPER => process.reaps_orphans.store(value != 0, Ordering::Relaxed),
        abi::PR_GET_CHILD_SUBREAPER => {
            user::write(value, &u32::from(process.reaps_orphans.load(Ordering::Relaxed)))?;
        }
        abi::PR_GET_TID_ADDRESS => user::write(value, &thread.clear_at_exit.load(Ordering::Relaxed))?,
        abi::PR_SET_NO_NEW_PRIVS if value != 1 || arguments[2..5] != [0; 3] => return Err(Errno::EINVAL),
        abi::PR_SET_NO_NEW_PRIVS => thread.no_new_privileges.store(true, Ordering::Relaxed),
        abi::PR_GET_NO_NEW_PRIVS => return Ok(usize::from(thread.no_new_privileges.load(Ordering::Relaxed))),
        abi::PR_SET_TIMERSLACK => {
            let slack = if value == 0 { crate::process::DEFAULT_TIMER_SLACK } else { value };
            thread.timer_slack.store(slack, Ordering::Relaxed);
        }
        abi::PR_GET_TIMERSLACK => return Ok(thread.timer_slack.load(Ordering::Relaxed) as usize),
        abi::PR_CAPBSET_READ | abi::PR_CAPBSET_DROP => return bounding_set(option as u32, value),
        // Huge pages are never used for programs, so switching them off changes nothing.
        abi::PR_SET_THP_DISABLE => {}
        abi::PR_GET_THP_DISABLE | abi::PR_GET_SECCOMP => return Ok(0),
        // Time stamps can always be read: PR_TSC_ENABLE.
        abi::PR_GET_TSC => user::write(value, &1u32)?,
        abi::PR_SET_TSC if value == 1 => {}
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// A thread's name, cut to what is kept. It need not be readable beyond its NUL.
fn read_thread_name(pointer: u64) -> Result<[u8; NAME_SIZE], Errno> {
    let mut name = [0; NAME_SIZE];
    for (at, place) in name.iter_mut().take(NAME_SIZE - 1).enumerate() {
        *place = user::read(pointer.wrapping_add(at as u64))?;
        if *place == 0 {
            break;
        }
    }
    Ok(name)
}

fn bounding_set(option: u32, number: u64) -> Result<usize, Errno> {
    if number >= 64 || ALL_CAPABILITIES & (1 << number) == 0 {
        return Err(Errno::EINVAL);
    }
    current().process().with_credentials(|credentials| {
        if option == abi::PR_CAPBSET_READ {
            return Ok((credentials.capabilities.bounding >> number & 1) as usize);
        }
        if !credentials.has(CAP_SETPCAP) {
            return Err(Errno::EPERM);
        }
        credentials.capabilities.bounding &= !(1 << number);
        Ok(0)
    })
}
