//! Core files: what the memory and the registers of a program were when a signal ended it that asks for that.
//!
//! As Linux does by default, the file is `core` in the working directory, an ELF file of type ET_CORE: notes, then the program's memory. Of shared memory and
//! of mapped files that were not changed it has the addresses only. Pages that nobody has touched are holes in the file. It has the registers of the
//! thread that ends the process; the others may go on for as long as it is written.

use super::limits::Resource;
use super::signal::Signal;
use super::{Process, Thread, relations};
use crate::arch::TrapFrame;
use crate::files::{self, Description, Walk};
use crate::memory::AddressSpace;
use crate::syscall::Errno;
use crate::task;
use ::memory::{AreaFlags, AreaSnapshot, PAGE_SIZE, PageRange, Rights, round_up};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux_raw_sys::general as abi;
use zerocopy::{Immutable, IntoBytes};

const PAGE: usize = PAGE_SIZE as usize;
const NAME: &[u8] = b"core";
/// Of program headers.
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// Of notes: registers, and whose they are.
const STATUS: u32 = 1;
const INFORMATION: u32 = 3;

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Header {
    identification: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    program_headers: u64,
    section_headers: u64,
    flags: u32,
    size: u16,
    program_header_size: u16,
    program_header_count: u16,
    section_header_size: u16,
    section_header_count: u16,
    section_names: u16,
}

#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

/// `struct elf_prstatus`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Status {
    signal: i32,
    code_and_error: [i32; 2],
    current_signal: u32,
    pending: u64,
    held: u64,
    ids: [u32; 4],
    times: [u64; 8],
    registers: [u64; 27],
    floating_point: u64,
}

/// `struct elf_prpsinfo`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Information {
    state: [u8; 8],
    flags: u64,
    user: u32,
    group: u32,
    ids: [u32; 4],
    name: [u8; 16],
    arguments: [u8; 80],
}

/// Writes the file of the current thread's process, if RLIMIT_CORE and `prctl` allow one; says whether there is one.
pub(super) fn write(trap: &TrapFrame, thread: &Thread, signal: Signal) -> bool {
    let process = thread.process();
    let most = process.limit(Resource::CORE).soft;
    if most < PAGE_SIZE || process.dumpable.load(Ordering::Relaxed) != 1 {
        return false;
    }
    let Some(memory) = process.memory() else { return false };
    open(process, thread).and_then(|file| fill(&file, most, memory.space(), &notes(trap, thread, signal))).is_ok()
}

fn open(process: &Arc<Process>, thread: &Thread) -> Result<Arc<Description>, Errno> {
    let context = thread.context().ok_or(Errno::ENOENT)?;
    let walk = Walk::new(&context, super::caller_of(process));
    let file = files::open(&walk, NAME, abi::O_CREAT | abi::O_WRONLY | abi::O_NOFOLLOW | abi::O_TRUNC, 0o600)?;
    file.inode().regular()?;
    Ok(file)
}

fn notes(trap: &TrapFrame, thread: &Thread, signal: Signal) -> Vec<u8> {
    let process = thread.process();
    let credentials = process.credentials();
    let relations = relations(process.id());
    let (group, session) = relations.map_or((0, 0), |relations| (relations.group, relations.session));
    let number = u32::from(signal.number());
    let ids = |id| [id, process.parent(), group, session];
    let status = Status {
        signal: number as i32,
        code_and_error: [0; 2],
        current_signal: number,
        pending: 0,
        held: thread.blocked().bits(),
        ids: ids(thread.id()),
        times: [0; 8],
        registers: registers(trap),
        floating_point: 0,
    };
    let information = Information {
        state: [0, b'R', 0, 0, 0, 0, 0, 0],
        flags: 0,
        user: credentials.user.real,
        group: credentials.group.real,
        ids: ids(process.id()),
        name: thread.name(),
        arguments: [0; 80],
    };
    let mut notes = Vec::new();
    for (kind, bytes) in [(STATUS, status.as_bytes()), (INFORMATION, information.as_bytes())] {
        for word in [NAME.len() as u32 + 1, bytes.len() as u32, kind] {
            notes.extend_from_slice(&word.to_le_bytes());
        }
        notes.extend_from_slice(b"CORE\0\0\0\0");
        notes.extend_from_slice(bytes);
    }
    notes
}

fn registers(trap: &TrapFrame) -> [u64; 27] {
    let task = task::current();
    let (fs, gs) = (task.fs_base(), task.gs_base());
    [
        trap.r15, trap.r14, trap.r13, trap.r12, trap.rbp, trap.rbx, trap.r11, trap.r10, trap.r9, trap.r8, trap.rax,
        trap.rcx, trap.rdx, trap.rsi, trap.rdi, trap.error, trap.rip, trap.cs, trap.rflags, trap.rsp, trap.ss, fs, gs, 0, 0,
        0, 0,
    ]
}

/// Whether the file has the bytes of an area, and not only where it was.
fn is_shown(area: &AreaSnapshot) -> bool {
    let is_own = area.object.is_none() || !area.flags.contains(AreaFlags::SHARED) && area.rights.contains(Rights::WRITE);
    is_own && area.rights.contains(Rights::READ) && !area.flags.contains(AreaFlags::NOT_DUMPED)
}

fn fill(file: &Description, most: u64, space: &AddressSpace, notes: &[u8]) -> Result<(), Errno> {
    let areas = space.snapshot();
    let headers = size_of::<Header>() + (areas.len() + 1) * size_of::<ProgramHeader>();
    let count = u16::try_from(areas.len() + 1).map_err(|_| Errno::EFBIG)?;
    let mut start = header(count).as_bytes().to_vec();
    let note = |kind, offset: usize, size: usize| ProgramHeader {
        kind,
        flags: 0,
        offset: offset as u64,
        address: 0,
        physical: 0,
        file_size: size as u64,
        memory_size: 0,
        alignment: 4,
    };
    start.extend_from_slice(note(NOTE, headers, notes.len()).as_bytes());
    let first = round_up((headers + notes.len()) as u64).ok_or(Errno::EFBIG)?;
    let mut offset = first;
    for area in &areas {
        let file_size = if is_shown(area) { area.range.length() } else { 0 };
        let flags = [(Rights::READ, 4), (Rights::WRITE, 2), (Rights::EXECUTE, 1)];
        let flags = flags.iter().filter(|(right, _)| area.rights.contains(*right)).map(|(_, bit)| bit).sum();
        let (address, memory_size) = (area.range.start(), area.range.length());
        let load = ProgramHeader { kind: LOAD, flags, offset, address, physical: 0, file_size, memory_size, alignment: PAGE_SIZE };
        start.extend_from_slice(load.as_bytes());
        offset += file_size;
    }
    start.extend_from_slice(notes);
    store(file, 0, &start)?;
    let mut at = first;
    for area in areas.iter().filter(|area| is_shown(area)) {
        store_area(file, at, most, space, area.range)?;
        at += area.range.length();
    }
    file.inode().regular()?.set_size(offset.min(most))
}

fn header(count: u16) -> Header {
    const CORE: u16 = 4;
    const X86_64: u16 = 62;
    let mut identification = [0; 16];
    // 64 bits, least byte first, version 1.
    identification[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    Header {
        identification,
        kind: CORE,
        machine: X86_64,
        version: 1,
        entry: 0,
        program_headers: size_of::<Header>() as u64,
        section_headers: 0,
        flags: 0,
        size: size_of::<Header>() as u16,
        program_header_size: size_of::<ProgramHeader>() as u16,
        program_header_count: count,
        section_header_size: 0,
        section_header_count: 0,
        section_names: 0,
    }
}

/// The pages of a range that are in memory, as far as the file may have them.
fn store_area(file: &Description, at: u64, most: u64, space: &AddressSpace, range: PageRange) -> Result<(), Errno> {
    /// Pages that are looked for at a time.
    const CHUNK: u64 = 512;
    let mut page = vec![0; PAGE];
    let mut done = 0;
    while done < range.length() && at + done < most {
        let part = PageRange::new(range.start() + done, (range.length() - done).min(CHUNK * PAGE_SIZE));
        let part = part.map_err(|_| Errno::EFAULT)?;
        let mut present = vec![false; part.pages() as usize];
        // Another thread may have unmapped it meanwhile: then it is a hole.
        let _ = space.incore(part, &mut present);
        for (index, _) in present.iter().enumerate().filter(|(_, present)| **present) {
            let distance = index as u64 * PAGE_SIZE;
            if at + done + distance + PAGE_SIZE <= most && space.read_user(part.start() + distance, &mut page).is_ok() {
                store(file, at + done + distance, &page)?;
            }
        }
        done += part.length();
    }
    Ok(())
}

fn store(file: &Description, offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
    file.write_at(offset, &mut bytes)?;
    if bytes.is_empty() { Ok(()) } else { Err(Errno::ENOSPC) }
}

const _: () = assert!(size_of::<Status>() == 336 && size_of::<Information>() == 136);
const _: () = assert!(size_of::<Header>() == 64 && size_of::<ProgramHeader>() == 56);
