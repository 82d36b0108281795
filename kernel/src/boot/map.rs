//! The kernel's final map: the upper half that every address space shares.
//!
//! ```text
//!   DIRECT_MAP   all RAM, writable, not executable, largest pages that fit; the image's code and constants read-only;
//!                the interrupt controllers' and other devices' pages, uncached
//!   STACKS       kernel stacks, page by page as they are made
//!   KERNEL_BASE  the image: code executable, constants read-only, the rest writable and not executable
//! ```
//!
//! All entries are global. The root's upper half is complete when `build` returns, so copies of it never go stale, and later
//! additions (stacks, devices) turn absent entries into present ones, which no CPU can have cached.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use super::start_info::Machine;
use crate::arch::layout::{DIRECT_MAP, KERNEL_BASE, PAGE_BYTES, STACKS, direct, physical_of_image};
use crate::arch::{apic, registers};
use crate::frames;
use crate::sync::SpinLock;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const UNCACHED: u64 = 1 << 3 | 1 << 4;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

const CODE: u64 = PRESENT | GLOBAL;
const CONSTANT: u64 = PRESENT | GLOBAL | NO_EXECUTE;
const DATA: u64 = PRESENT | WRITABLE | GLOBAL | NO_EXECUTE;
const DEVICE: u64 = DATA | UNCACHED;

/// Bytes set aside for the tables of the final map; what is left over is free memory.
const TABLE_BYTES: u64 = 2 << 20;

#[repr(C, align(4096))]
struct Root(UnsafeCell<[u64; 512]>);
// SAFETY: changed under `TABLES` only.
unsafe impl Sync for Root {}

/// The kernel's own root: no user half.
static ROOT: Root = Root(UnsafeCell::new([0; 512]));
/// Where `build` takes tables from: next page, end. Empty before and after.
static TABLES: SpinLock<Range<u64>> = SpinLock::new(0..0);
static USED_START: AtomicU64 = AtomicU64::new(0);
static USED_END: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static __kernel_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __kernel_end: u8;
}

fn address_of(symbol: *const u8) -> u64 {
    symbol as u64
}

/// Physical address of the kernel's own root.
pub(crate) fn kernel_root() -> u64 {
    physical_of_image(ROOT.0.get() as u64)
}

/// Entry `index` of the kernel's root; those from 256 on belong into every root.
pub(crate) fn root_entry(index: usize) -> u64 {
    // SAFETY: the root does not change after `build`.
    unsafe { (*ROOT.0.get())[index] }
}

/// Physical range of the kernel's image.
pub(super) fn image() -> Range<u64> {
    physical_of_image(address_of(&raw const __kernel_start))..physical_of_image(address_of(&raw const __kernel_end))
}

/// Bytes of the kernel's image in memory.
pub(crate) fn image_bytes() -> u64 {
    image().end - image().start
}

/// Physical range that the tables have taken.
pub(super) fn used() -> Range<u64> {
    USED_START.load(Ordering::Relaxed)..USED_END.load(Ordering::Relaxed)
}

/// Builds the final map and loads it. The temporary one is gone from this CPU when this returns.
///
/// # Panics
/// If there is no memory for the tables.
pub(super) fn build(machine: &Machine, io_apic: u64) {
    let room = machine.find_free(image(), TABLE_BYTES).expect("there are 2 MiB of memory below 4 GiB");
    let mut tables = TABLES.lock();
    *tables = room.clone();
    let mut map = Map { tables: &mut tables };

    let start = address_of(&raw const __kernel_start);
    let [text, rodata, end] =
        [&raw const __text_end, &raw const __rodata_end, &raw const __kernel_end].map(address_of);
    map.add(start..text, start - KERNEL_BASE, CODE, false);
    map.add(text..rodata, text - KERNEL_BASE, CONSTANT, false);
    map.add(rodata..end, rodata - KERNEL_BASE, DATA, false);

    let constant = physical_of_image(start)..physical_of_image(rodata);
    for ram in machine.ram() {
        let pieces = [
            (ram.start..ram.end.min(constant.start), DATA),
            (ram.start.max(constant.start)..ram.end.min(constant.end), CONSTANT),
            (ram.start.max(constant.end)..ram.end, DATA),
        ];
        for (piece, rights) in pieces {
            if !piece.is_empty() {
                map.add(direct(piece.start)..direct(piece.end), piece.start, rights, true);
            }
        }
    }
    for part in machine.archive_outside_ram().as_slice() {
        map.add(direct(part.start)..direct(part.end), part.start, DATA, false);
    }
    for device in [apic::BASE, io_apic] {
        map.add(direct(device)..direct(device) + PAGE_BYTES, device, DEVICE, false);
    }
    map.table_of(ROOT.0.get().cast(), DIRECT_MAP, 3);
    map.table_of(ROOT.0.get().cast(), STACKS, 3);

    USED_START.store(room.start, Ordering::Relaxed);
    USED_END.store(tables.start, Ordering::Relaxed);
    *tables = 0..0;
    // SAFETY: the new root maps the image, where we run, as it was; the boot stack lies in the image.
    unsafe { registers::set_root(kernel_root()) }
}

/// Maps a fresh frame, writable and not executable, at an address of the stack area. `None` if memory is short.
pub(crate) fn add_kernel_page(address: u64) -> Option<()> {
    assert!((STACKS..KERNEL_BASE).contains(&address), "{address:#x} is not in the area of kernel stacks");
    let frame = frames::allocate_zeroed()?;
    let mut tables = TABLES.lock();
    let mut map = Map { tables: &mut tables };
    let entry = map.entry(address, 0)?;
    // SAFETY: an entry of the kernel's tables, changed under the lock; it was absent, so nobody has it cached.
    unsafe { entry.write_volatile(frame | DATA) };
    Some(())
}

/// Maps the pages of a device, which lie in no RAM, uncached at their address in the direct map. `None` if memory is short.
pub(crate) fn add_device(physical: Range<u64>) -> Option<()> {
    let mut tables = TABLES.lock();
    let mut map = Map { tables: &mut tables };
    for page in (physical.start / PAGE_BYTES..physical.end.div_ceil(PAGE_BYTES)).map(|page| page * PAGE_BYTES) {
        let entry = map.entry(direct(page), 0)?;
        // SAFETY: an entry of the kernel's tables, changed under the lock; it was absent, so nobody has it cached, or is
        // what it becomes.
        unsafe { entry.write_volatile(page | DEVICE) };
    }
    Some(())
}

/// The entry of an address in the stack area that no stack uses, absent as yet; its tables are made. `None` if memory is short.
///
/// The caller alone changes it, and alone answers for what CPUs have cached of it.
pub(crate) fn entry_of_kernel_page(address: u64) -> Option<&'static AtomicU64> {
    assert!((STACKS..KERNEL_BASE).contains(&address), "{address:#x} is not in the area of kernel stacks");
    let mut tables = TABLES.lock();
    let entry = Map { tables: &mut tables }.entry(address, 0)?;
    // SAFETY: an entry of the kernel's tables, which are never freed; CPUs and callers access it atomically only.
    Some(unsafe { &*entry.cast() })
}

/// Changes the kernel's tables.
struct Map<'a> {
    /// Pages to take tables from; when empty, the allocator serves.
    tables: &'a mut Range<u64>,
}

impl Map<'_> {
    /// A page of zeroes for a table.
    fn new_table(&mut self) -> Option<u64> {
        if self.tables.start + PAGE_BYTES > self.tables.end {
            return frames::allocate_zeroed();
        }
        let page = self.tables.start;
        self.tables.start += PAGE_BYTES;
        // SAFETY: a free page that both maps show.
        unsafe { (direct(page) as *mut [u64; 512]).write([0; 512]) };
        Some(page)
    }

    /// The table below the entry of `table` that covers `address`, made if it is absent. Level 3 is the root's.
    fn table_of(&mut self, table: *mut u64, address: u64, level: u32) -> Option<*mut u64> {
        // SAFETY: `table` is one of the kernel's tables, reached through a map that shows it; we hold the lock.
        unsafe {
            let entry = table.add(index(address, level));
            if entry.read() & PRESENT == 0 {
                entry.write(self.new_table()? | PRESENT | WRITABLE);
            }
            Some(direct(entry.read() & ADDRESS) as *mut u64)
        }
    }

    /// The entry of the given level (0: 4 KiB, 1: 2 MiB, 2: 1 GiB) that covers `address`.
    fn entry(&mut self, address: u64, level: u32) -> Option<*mut u64> {
        let mut table: *mut u64 = ROOT.0.get().cast();
        for above in (level + 1..=3).rev() {
            table = self.table_of(table, address, above)?;
        }
        Some(table.wrapping_add(index(address, level)))
    }

    /// Maps a range of pages, by the largest pages that fit if `large` is set.
    fn add(&mut self, range: Range<u64>, mut physical: u64, rights: u64, large: bool) {
        let gigabyte_pages = registers::cpuid(0x8000_0001, 0).edx & 1 << 26 != 0;
        let mut address = range.start;
        while address < range.end {
            let fits = |bytes: u64| (address | physical).is_multiple_of(bytes) && range.end - address >= bytes;
            let level = match () {
                () if large && gigabyte_pages && fits(1 << 30) => 2,
                () if large && fits(1 << 21) => 1,
                () => 0,
            };
            let entry = self.entry(address, level).expect("there is memory for the kernel's tables");
            let size_bit = if level > 0 { LARGE } else { 0 };
            // SAFETY: an entry of the kernel's tables, which no CPU uses yet.
            unsafe { entry.write(physical | rights | size_bit) };
            address += PAGE_BYTES << (9 * level);
            physical += PAGE_BYTES << (9 * level);
        }
    }
}

fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize & 511
}
