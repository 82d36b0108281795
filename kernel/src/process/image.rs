//! What an ELF file asks for: segments, entry, interpreter, stack permission.
//!
//! Parsing only: nothing is mapped here. Every number in the file is an allegation. The rules below make each
//! [`Image`] safe to load: segments are in ascending order, lie in the user half, hold no more file bytes
//! than memory, and agree with their file offset modulo the page size. Whatever breaks a rule is ENOEXEC, as
//! a file that is no program.

use crate::syscall::Errno;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use elf::abi;
use elf::endian::LittleEndian;
use elf::file::{Class, FileHeader, parse_ident};
use elf::parse::ParsingIterator;
use elf::segment::ProgramHeader;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// First address that user mode cannot have.
pub(crate) const USER_END: u64 = 0x0000_7fff_ffff_f000;

const FILE_HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: usize = 56;
/// Linux reads at most this many bytes of program headers.
const PROGRAM_HEADERS_MAX: usize = 65536;
/// Longest interpreter path, with its NUL.
const PATH_MAX: u64 = 4096;

/// Reads bytes of the file at an offset; returns how many there were.
pub(crate) type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<usize, Errno>;

/// Whether the addresses in the file are final.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// ET_EXEC: at the addresses in the file.
    Fixed,
    /// ET_DYN: anywhere, all moved by one distance.
    Anywhere,
}

/// One PT_LOAD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// First byte in memory, before any move.
    pub(crate) address: u64,
    /// Bytes in memory.
    pub(crate) memory_size: u64,
    /// Where its bytes are in the file.
    pub(crate) file_offset: u64,
    /// How many are there; the rest of `memory_size` is zero.
    pub(crate) file_size: u64,
    /// PF_R.
    pub(crate) readable: bool,
    /// PF_W.
    pub(crate) writable: bool,
    /// PF_X.
    pub(crate) executable: bool,
}

impl Segment {
    /// The pages it touches.
    pub(crate) fn pages(&self) -> Range<u64> {
        page_floor(self.address)..page_ceiling(self.address + self.memory_size)
    }
}

/// A program or interpreter that can be loaded.
#[derive(Debug)]
pub(crate) struct Image {
    /// Whether it can be moved.
    pub(crate) placement: Placement,
    /// First instruction, before any move.
    pub(crate) entry: u64,
    /// Its segments, ascending.
    pub(crate) segments: Vec<Segment>,
    /// Where the program headers are in memory, before any move; 0 if they are in no segment.
    pub(crate) headers_address: u64,
    /// How many there are.
    pub(crate) header_count: u64,
    /// Path of PT_INTERP without its NUL.
    pub(crate) interpreter: Option<Vec<u8>>,
    /// PT_GNU_STACK asks for an executable stack (or is missing, which means the same).
    pub(crate) executable_stack: bool,
    /// Largest power of two that a segment wants to be aligned to; at least a page.
    pub(crate) alignment: u64,
}

impl Image {
    /// Parses the file behind `read_at`.
    ///
    /// # Errors
    /// ENOEXEC if it is not a loadable x86-64 ELF file; what `read_at` returns.
    pub(crate) fn parse(read_at: ReadAt<'_>) -> Result<Image, Errno> {
        let header = file_header(read_at)?;
        let placement = match header.e_type {
            abi::ET_EXEC => Placement::Fixed,
            abi::ET_DYN => Placement::Anywhere,
            _ => return Err(Errno::ENOEXEC),
        };
        let table = header_table(read_at, &header)?;
        let headers: Vec<ProgramHeader> = ParsingIterator::new(LittleEndian, Class::ELF64, &table).collect();
        let segments = load_segments(&headers)?;
        let stack = headers.iter().find(|one| one.p_type == abi::PT_GNU_STACK);
        Ok(Image {
            placement,
            entry: header.e_entry,
            headers_address: headers_address(&header, &segments),
            header_count: u64::from(header.e_phnum),
            interpreter: interpreter(read_at, &headers)?,
            executable_stack: stack.is_none_or(|one| one.p_flags & abi::PF_X != 0),
            alignment: alignment(&headers),
            segments,
        })
    }

    /// The pages from its first to its last segment, before any move.
    pub(crate) fn extent(&self) -> Range<u64> {
        let first = self.segments.first().map_or(0, |one| one.pages().start);
        let last = self.segments.iter().map(|one| one.pages().end).max().unwrap_or(first);
        first..last
    }
}

fn file_header(read_at: ReadAt<'_>) -> Result<FileHeader<LittleEndian>, Errno> {
    let mut bytes = [0; FILE_HEADER_SIZE];
    read_whole(read_at, 0, &mut bytes)?;
    let ident = parse_ident::<LittleEndian>(&bytes[..abi::EI_NIDENT]).map_err(|_| Errno::ENOEXEC)?;
    if ident.1 != Class::ELF64 {
        return Err(Errno::ENOEXEC);
    }
    let header = FileHeader::parse_tail(ident, &bytes[abi::EI_NIDENT..]).map_err(|_| Errno::ENOEXEC)?;
    if header.e_machine != abi::EM_X86_64 || usize::from(header.e_phentsize) != PROGRAM_HEADER_SIZE {
        return Err(Errno::ENOEXEC);
    }
    Ok(header)
}

fn header_table(read_at: ReadAt<'_>, header: &FileHeader<LittleEndian>) -> Result<Vec<u8>, Errno> {
    let size = usize::from(header.e_phnum) * PROGRAM_HEADER_SIZE;
    if size == 0 || size > PROGRAM_HEADERS_MAX {
        return Err(Errno::ENOEXEC);
    }
    let mut table = vec![0; size];
    read_whole(read_at, header.e_phoff, &mut table)?;
    Ok(table)
}

fn load_segments(headers: &[ProgramHeader]) -> Result<Vec<Segment>, Errno> {
    let mut segments: Vec<Segment> = Vec::new();
    for header in headers.iter().filter(|one| one.p_type == abi::PT_LOAD && one.p_memsz > 0) {
        let end = header.p_vaddr.checked_add(header.p_memsz).ok_or(Errno::ENOEXEC)?;
        let file_end = header.p_offset.checked_add(header.p_filesz).ok_or(Errno::ENOEXEC)?;
        let aligned = header.p_vaddr % PAGE == header.p_offset % PAGE;
        let ascending = segments.last().is_none_or(|last| last.address <= header.p_vaddr);
        if end > USER_END
            || file_end > i64::MAX as u64
            || header.p_filesz > header.p_memsz
            || !(aligned || header.p_filesz == 0)
            || !ascending
        {
            return Err(Errno::ENOEXEC);
        }
        segments.push(Segment {
            address: header.p_vaddr,
            memory_size: header.p_memsz,
            file_offset: header.p_offset,
            file_size: header.p_filesz,
            readable: header.p_flags & abi::PF_R != 0,
            writable: header.p_flags & abi::PF_W != 0,
            executable: header.p_flags & abi::PF_X != 0,
        });
    }
    if segments.is_empty() { Err(Errno::ENOEXEC) } else { Ok(segments) }
}

fn headers_address(header: &FileHeader<LittleEndian>, segments: &[Segment]) -> u64 {
    segments
        .iter()
        .find(|one| one.file_offset <= header.e_phoff && header.e_phoff - one.file_offset < one.file_size)
        .map_or(0, |one| one.address + (header.e_phoff - one.file_offset))
}

fn interpreter(read_at: ReadAt<'_>, headers: &[ProgramHeader]) -> Result<Option<Vec<u8>>, Errno> {
    let Some(header) = headers.iter().find(|one| one.p_type == abi::PT_INTERP) else {
        return Ok(None);
    };
    if header.p_filesz < 2 || header.p_filesz > PATH_MAX {
        return Err(Errno::ENOEXEC);
    }
    let mut path = vec![0; header.p_filesz as usize];
    read_whole(read_at, header.p_offset, &mut path)?;
    if path.pop() != Some(0) {
        return Err(Errno::ENOEXEC);
    }
    path.truncate(path.iter().position(|&byte| byte == 0).unwrap_or(path.len()));
    Ok(Some(path))
}

fn alignment(headers: &[ProgramHeader]) -> u64 {
    let wanted = headers.iter().filter(|one| one.p_type == abi::PT_LOAD).map(|one| one.p_align);
    // More than 1 GiB serves no one and could push the program out of its half.
    wanted.filter(|align| align.is_power_of_two() && *align <= 1 << 30).fold(PAGE, u64::max)
}

fn read_whole(read_at: ReadAt<'_>, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let end = offset.checked_add(buffer.len() as u64).ok_or(Errno::ENOEXEC)?;
    if end > i64::MAX as u64 {
        return Err(Errno::ENOEXEC);
    }
    let mut done = 0;
    while done < buffer.len() {
        match read_at(offset + done as u64, &mut buffer[done..])? {
            0 => return Err(Errno::ENOEXEC),
            count => done += count,
        }
    }
    Ok(())
}

/// The start of the page that holds `address`.
pub(crate) fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// The first page boundary at or after `address`, which must be below the top page of the address range.
pub(crate) fn page_ceiling(address: u64) -> u64 {
    page_floor(address + (PAGE - 1))
}
