//! What a PVH loader tells: command line, archive, memory map, where the firmware's tables are.
//!
//! Everything is copied out of low memory at once, because the start page of the other CPUs and the allocator will use it.
#![allow(unsafe_code)]

use core::ops::Range;

use crate::arch::layout::{PAGE_BYTES, direct};

const MAGIC: u32 = 0x336e_c578;
/// RAM, in the memory map.
const RAM: u32 = 1;
const MOST_RANGES: usize = 32;
const LONGEST_COMMAND_LINE: usize = 1024;
/// Everything below is left to the firmware and to the start page of the other CPUs.
const LOW_END: u64 = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy)]
struct StartInformation {
    magic: u32,
    version: u32,
    flags: u32,
    module_count: u32,
    modules: u64,
    command_line: u64,
    firmware_tables: u64,
    memory_map: u64,
    memory_map_count: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Module {
    address: u64,
    size: u64,
    command_line: u64,
    reserved: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryRange {
    address: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// The machine as the loader describes it.
pub(super) struct Machine {
    command_line: [u8; LONGEST_COMMAND_LINE],
    command_line_length: usize,
    ram: [Range<u64>; MOST_RANGES],
    ram_count: usize,
    archive: Range<u64>,
    /// Physical address of the firmware's root pointer, or 0.
    pub(super) firmware_tables: u64,
}

/// Reads a value of the loader's.
fn read_at<T: Copy>(physical: u64) -> T {
    // SAFETY: the temporary map shows the lowest 4 GiB, where the loader puts its structures; all are plain integers.
    unsafe { (direct(physical) as *const T).read_unaligned() }
}

/// Copies everything that the loader says.
///
/// # Panics
/// If the structure is not there or has no memory map: there is nothing to run on.
pub(super) fn read(information: u64) -> Machine {
    let information: StartInformation = read_at(information);
    assert!(information.magic == MAGIC, "the loader did not pass PVH start information");
    assert!(information.version >= 1 && information.memory_map_count > 0, "the loader did not pass a memory map");
    let mut machine = Machine {
        command_line: [0; LONGEST_COMMAND_LINE],
        command_line_length: 0,
        ram: [const { 0..0 }; MOST_RANGES],
        ram_count: 0,
        archive: 0..0,
        firmware_tables: information.firmware_tables,
    };
    if information.command_line != 0 {
        while machine.command_line_length < LONGEST_COMMAND_LINE {
            let byte: u8 = read_at(information.command_line + machine.command_line_length as u64);
            if byte == 0 {
                break;
            }
            machine.command_line[machine.command_line_length] = byte;
            machine.command_line_length += 1;
        }
    }
    if information.module_count > 0 {
        let module: Module = read_at(information.modules);
        machine.archive = module.address..module.address + module.size;
    }
    for index in 0..u64::from(information.memory_map_count) {
        let range: MemoryRange = read_at(information.memory_map + index * size_of::<MemoryRange>() as u64);
        let start = range.address.next_multiple_of(PAGE_BYTES);
        let end = (range.address + range.size) & !(PAGE_BYTES - 1);
        if range.kind == RAM && start < end && machine.ram_count < MOST_RANGES {
            machine.ram[machine.ram_count] = start..end;
            machine.ram_count += 1;
        }
    }
    machine
}

impl Machine {
    /// The command line.
    pub(super) fn command_line(&self) -> &[u8] {
        &self.command_line[..self.command_line_length]
    }

    /// Ranges of RAM, in whole pages.
    pub(super) fn ram(&self) -> &[Range<u64>] {
        &self.ram[..self.ram_count]
    }

    /// The archive in the direct map. It stays reserved for ever, because files point into it.
    pub(super) fn archive(&self) -> &'static [u8] {
        let Range { start, end } = self.archive;
        // SAFETY: the loader put it into memory, the map shows it (`map::build`), and `free_ranges` leaves it out.
        unsafe { core::slice::from_raw_parts(direct(start) as *const u8, (end - start) as usize) }
    }

    /// What of the archive lies in no RAM, by the map: the firmware keeps some for itself at the end of memory, more with each disk that it has
    /// found, and the loader comes after it and does not ask.
    pub(super) fn archive_outside_ram(&self) -> FreeRanges {
        let mut outside = FreeRanges::none();
        outside.add_without(self.archive_pages(), self.ram());
        outside
    }

    fn archive_pages(&self) -> Range<u64> {
        self.archive.start & !(PAGE_BYTES - 1)..self.archive.end.next_multiple_of(PAGE_BYTES)
    }

    /// RAM that nothing uses: without low memory, the archive, the kernel's image and what the map has taken.
    pub(super) fn free_ranges(&self, image: Range<u64>, map: Range<u64>) -> FreeRanges {
        let archive = self.archive_pages();
        let mut free = FreeRanges::none();
        for range in self.ram() {
            free.add_without(range.start.max(LOW_END)..range.end, &[image.clone(), map.clone(), archive.clone()]);
        }
        free
    }

    /// A page range of `bytes` that nothing uses, in the part of RAM that the temporary map shows.
    pub(super) fn find_free(&self, image: Range<u64>, bytes: u64) -> Option<Range<u64>> {
        let free = self.free_ranges(image, 0..0);
        let found = free.as_slice().iter().find(|range| range.end >= range.start + bytes && range.start + bytes <= 1 << 32);
        found.map(|range| range.start..range.start + bytes)
    }
}

/// Ranges of memory, in whole pages.
pub(crate) struct FreeRanges {
    ranges: [Range<u64>; 2 * MOST_RANGES],
    count: usize,
}

impl FreeRanges {
    fn none() -> Self {
        FreeRanges { ranges: [const { 0..0 }; 2 * MOST_RANGES], count: 0 }
    }

    pub(crate) fn as_slice(&self) -> &[Range<u64>] {
        &self.ranges[..self.count]
    }

    /// Adds what is left of a range when the holes are cut out.
    fn add_without(&mut self, range: Range<u64>, holes: &[Range<u64>]) {
        if range.is_empty() {
            return;
        }
        let Some((hole, rest)) = holes.split_first() else {
            if self.count < self.ranges.len() {
                self.ranges[self.count] = range;
                self.count += 1;
            }
            return;
        };
        if hole.is_empty() || hole.end <= range.start || range.end <= hole.start {
            self.add_without(range, rest);
        } else {
            self.add_without(range.start..hole.start.max(range.start), rest);
            self.add_without(hole.end.min(range.end)..range.end, rest);
        }
    }
}
