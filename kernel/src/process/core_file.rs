//! Core files: what the memory and the registers of a program were when a signal ended it that asks for that.
//!
//! As Linux does by default, the file is `core` in the working directory, always a new one; an ELF file of type ET_CORE: notes, then the program's memory. Of shared memory and
//! of mapped files that were not changed it has the addresses only. Pages that nobody has touched are holes in the file. It has the registers of the
//! thread that ends the process; the others may go on for as long as it is written.

use super::limits::Resource;
use super::signal::Signal;
use super::{Process, Thread, relations};
use crate::arch::TrapFrame;
use crate::files::{self, Description, Walk, tree};
use crate::memory::AddressSpace;
use crate::syscall::Errno;
use crate::task;
use ::memory::{AreaFlags, AreaSnapshot, PAGE_SIZE, PageRange, Rights, round_down, round_up};
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
    let written = open(process, thread).and_then(|file| {
        let writer = Writer { file: &file, process, space: memory.space(), most };
        writer.fill(&notes(trap, thread, signal))
    });
    written.is_ok()
}

/// A new file, in the place of whatever had its name: that may be something that one would wait for, or another's, or have further names.
fn open(process: &Arc<Process>, thread: &Thread) -> Result<Arc<Description>, Errno> {
    let context = thread.context().ok_or(Errno::ENOENT)?;
    let caller = super::caller_of(process);
    let walk = Walk::new(&context, caller.clone());
    // What cannot be removed has the file refused below.
    let _ = walk.clone().follow_last(false).place(NAME).and_then(|place| tree::unlink(&place, &caller));
    let file = files::open(&walk, NAME, abi::O_CREAT | abi::O_EXCL | abi::O_RDWR | abi::O_NOFOLLOW, 0o600 & !context.umask())?;
    file.inode().regular()?;
    // Nothing that its owner could not look at.
    if file.inode().attributes().permissions & 0o677 == 0o600 { Ok(file) } else { Err(Errno::EACCES) }
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

/// An area in the file.
struct Part {
    range: PageRange,
    rights: Rights,
    /// Whether the file has its bytes, and not only where it was: private memory of which the program has used something.
    is_shown: bool,
    is_anonymous: bool,
}

impl Part {
    fn of(area: &AreaSnapshot) -> Self {
        let is_left_out = area.flags.intersects(AreaFlags::SHARED | AreaFlags::NOT_DUMPED);
        Self {
            range: area.range,
            rights: area.rights,
            is_shown: area.has_private_pages && area.rights.contains(Rights::READ) && !is_left_out,
            is_anonymous: area.object.is_none(),
        }
    }

    /// Its bytes in the file.
    fn size(&self) -> u64 {
        if self.is_shown { self.range.length() } else { 0 }
    }

    fn header(&self, offset: u64) -> ProgramHeader {
        let flags = [(Rights::READ, 4), (Rights::WRITE, 2), (Rights::EXECUTE, 1)];
        let flags = flags.iter().filter(|(right, _)| self.rights.contains(*right)).map(|(_, bit)| bit).sum();
        ProgramHeader {
            kind: LOAD,
            flags,
            offset,
            address: self.range.start(),
            physical: 0,
            file_size: self.size(),
            memory_size: self.range.length(),
            alignment: PAGE_SIZE,
        }
    }
}

/// A core file that is being written.
struct Writer<'a> {
    file: &'a Description,
    process: &'a Process,
    space: &'a AddressSpace,
    /// RLIMIT_CORE.
    most: u64,
}

impl Writer<'_> {
    fn fill(&self, notes: &[u8]) -> Result<(), Errno> {
        /// Headers that are stored at a time.
        const CHUNK: usize = 256;
        let parts: Vec<Part> = self.space.areas().map(|area| Part::of(&area)).collect();
        let headers = size_of::<Header>() + (parts.len() + 1) * size_of::<ProgramHeader>();
        let count = u16::try_from(parts.len() + 1).map_err(|_| Errno::EFBIG)?;
        let first = round_up((headers + notes.len()) as u64).ok_or(Errno::EFBIG)?;
        let mut start = header(count).as_bytes().to_vec();
        start.extend_from_slice(note_header(headers as u64, notes.len() as u64).as_bytes());
        self.store(0, &start)?;
        let (mut stored, mut offset) = (start.len() as u64, first);
        for parts in parts.chunks(CHUNK) {
            start.clear();
            for part in parts {
                start.extend_from_slice(part.header(offset).as_bytes());
                offset = offset.checked_add(part.size()).ok_or(Errno::EFBIG)?;
            }
            self.store(stored, &start)?;
            stored += start.len() as u64;
        }
        self.store(stored, notes)?;
        let mut at = first;
        for part in parts.iter().filter(|part| part.is_shown) {
            self.store_part(at, part)?;
            at += part.size();
        }
        self.file.inode().regular()?.set_size(offset.min(self.most))
    }

    /// The pages of a part that are in memory, as far as the file may have them.
    fn store_part(&self, at: u64, part: &Part) -> Result<(), Errno> {
        /// Bytes in which pages are looked for at a time.
        const CHUNK: u64 = 512 * PAGE_SIZE;
        let (start, end) = (part.range.start(), part.range.end());
        let end = end.min(start.saturating_add(self.most.saturating_sub(at)));
        let mut next = start;
        // An empty range is none.
        while let Ok(rest) = PageRange::new(next, round_down(end).saturating_sub(next)) {
            let chunk = if part.is_anonymous {
                let Some(used) = self.space.first_used(rest) else { return Ok(()) };
                used
            } else {
                PageRange::new(next, rest.length().min(CHUNK)).map_err(|_| Errno::EFAULT)?
            };
            self.store_pages(at + (chunk.start() - start), chunk)?;
            next = chunk.end();
        }
        Ok(())
    }

    fn store_pages(&self, at: u64, range: PageRange) -> Result<(), Errno> {
        // Whoever kills it does not want to wait for the file.
        if self.process.is_ending() {
            return Err(Errno::EINTR);
        }
        task::yield_if_needed();
        let mut page = vec![0; PAGE];
        let mut present = vec![false; range.pages() as usize];
        // Another thread may have unmapped it meanwhile: then it is a hole.
        let _ = self.space.incore(range, &mut present);
        for (index, _) in present.iter().enumerate().filter(|(_, present)| **present) {
            let distance = index as u64 * PAGE_SIZE;
            if self.space.read_user(range.start() + distance, &mut page).is_ok() {
                self.store(at + distance, &page)?;
            }
        }
        Ok(())
    }

    fn store(&self, offset: u64, mut bytes: &[u8]) -> Result<(), Errno> {
        self.file.write_at(offset, &mut bytes)?;
        if bytes.is_empty() { Ok(()) } else { Err(Errno::ENOSPC) }
    }
}

fn note_header(offset: u64, size: u64) -> ProgramHeader {
    ProgramHeader {
        kind: NOTE,
        flags: 0,
        offset,
        address: 0,
        physical: 0,
        file_size: size,
        memory_size: 0,
        alignment: 4,
    }
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

const _: () = assert!(size_of::<Status>() == 336 && size_of::<Information>() == 136);
const _: () = assert!(size_of::<Header>() == 64 && size_of::<ProgramHeader>() == 56);
