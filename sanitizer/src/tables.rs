//! Walks page tables as the hardware would, without leaving a trace in them.

use protocol::sanitizer::PAGE_BYTES;

use crate::guest_memory::GuestMemory;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Level of the root; tables whose entries map small pages are level 0.
const ROOT_LEVEL: u32 = 3;

/// What the tables have for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Physical address of the last table of the walk.
    pub(crate) table: u64,
    /// Its entry for the address: of a page, or the empty one at which the walk ended.
    pub(crate) entry: u64,
    /// Physical address of the frame of 4 KiB that the address leads to; `None` if it leads nowhere.
    pub(crate) frame: Option<u64>,
    /// The rights that all levels leave.
    pub(crate) writable: bool,
    pub(crate) executable: bool,
}

/// Looks an address up in the tables below `root`. `None` if a table does not lie in RAM.
pub(crate) fn walk(memory: &GuestMemory, root: u64, address: u64) -> Option<Mapping> {
    let (mut table, mut writable, mut executable) = (root, true, true);
    for level in (0..=ROOT_LEVEL).rev() {
        let span = PAGE_BYTES << (9 * level);
        let entry = memory.word(table + address / span % 512 * 8)?;
        if entry & PRESENT == 0 {
            return Some(Mapping { table, entry, frame: None, writable: false, executable: false });
        }
        writable &= entry & WRITABLE != 0;
        executable &= entry & NO_EXECUTE == 0;
        if level == 0 || entry & LARGE != 0 {
            let inside = address % span / PAGE_BYTES * PAGE_BYTES;
            // A large page's address has other bits below its size.
            let frame = (entry & ADDRESS) / span * span + inside;
            return Some(Mapping { table, entry, frame: Some(frame), writable, executable });
        }
        table = entry & ADDRESS;
    }
    None
}

/// Visits the small pages that the tables below `root` map in the first `entries` entries of the root, with their entries, until
/// `visit` has seen enough and returns false.
pub(crate) fn for_each_page(
    memory: &GuestMemory,
    root: u64,
    entries: u64,
    visit: &mut impl FnMut(u64, u64) -> bool,
) {
    visit_table(memory, root, ROOT_LEVEL, 0, entries, visit);
}

fn visit_table(
    memory: &GuestMemory,
    table: u64,
    level: u32,
    start: u64,
    entries: u64,
    visit: &mut impl FnMut(u64, u64) -> bool,
) -> bool {
    (0..entries).all(|index| {
        let Some(entry) = memory.word(table + index * 8).filter(|entry| entry & PRESENT != 0) else {
            return true;
        };
        let address = start + index * (PAGE_BYTES << (9 * level));
        match (level, entry & LARGE) {
            (0, _) => visit(address, entry & ADDRESS),
            (_, 0) => visit_table(memory, entry & ADDRESS, level - 1, address, 512, visit),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{PAGE, ROOT, TestMachine};

    #[test]
    fn a_walk_ends_at_a_page_or_at_an_empty_entry() {
        let machine = TestMachine::new();
        let memory = machine.declared.memory();
        let mapping = walk(memory, ROOT, PAGE + 8).unwrap();
        assert_eq!((mapping.frame, mapping.writable, mapping.executable), (Some(machine.frame), true, false));
        let beside = walk(memory, ROOT, PAGE + PAGE_BYTES).unwrap();
        assert_eq!((beside.frame, beside.table), (None, mapping.table));
        assert_eq!(walk(memory, ROOT, 1 << 40).unwrap().table, ROOT);
        assert_eq!(walk(memory, 1 << 50, PAGE), None);
    }

    #[test]
    fn large_pages_lead_to_the_frame_inside_them() {
        let machine = TestMachine::new();
        machine.set_entry(1, PAGE, 0x20_0000 | LARGE | PRESENT | 1 << 12);
        let mapping = walk(machine.declared.memory(), ROOT, PAGE + 3 * PAGE_BYTES).unwrap();
        let inside = (PAGE + 3 * PAGE_BYTES) % (2 << 20);
        assert_eq!((mapping.frame, mapping.writable), (Some(0x20_0000 + inside), false));
    }

    #[test]
    fn all_pages_are_found() {
        let machine = TestMachine::new();
        machine.set_entry(0, PAGE + PAGE_BYTES, 0x5000 | PRESENT);
        let mut found = Vec::new();
        for_each_page(machine.declared.memory(), ROOT, 256, &mut |address, frame| {
            found.push((address, frame));
            true
        });
        assert_eq!(found, [(PAGE, machine.frame), (PAGE + PAGE_BYTES, 0x5000)]);
    }
}
