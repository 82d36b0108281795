//! Who has a frame now, as far as the tables of the loaded address spaces tell.

use protocol::sanitizer::{MAX_CPUS, Place};

use crate::declared::{Declared, Space};
use crate::tables::for_each_page;

/// Places that are named at most.
const MOST: usize = 4;
/// Entries of a root table that belong to programs.
const USER_ENTRIES: u64 = 256;

/// The first places where a frame is mapped, in the address spaces that CPUs have loaded. Each space is searched once.
pub(crate) fn places(declared: &Declared, frame: u64, own: Option<Space>) -> Vec<Place> {
    let mut searched = Vec::new();
    let mut found = Vec::new();
    for cpu in 0..MAX_CPUS as u32 {
        let Some(space) = declared.loaded(cpu).filter(|space| !searched.contains(space)) else { continue };
        searched.push(space);
        let Some(root) = declared.root(space) else { continue };
        for_each_page(declared.memory(), root, USER_ENTRIES, &mut |address, mapped| {
            if mapped == frame {
                found.push(Place { cpu, same_space: own == Some(space), address });
            }
            found.len() < MOST
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{PAGE, TestMachine};

    #[test]
    fn a_mapped_frame_is_found_once_for_each_place() {
        let machine = TestMachine::new();
        let own = machine.declared.loaded(0);
        let expected = Place { cpu: 0, same_space: true, address: PAGE };
        assert_eq!(places(&machine.declared, machine.frame, own), [expected]);
        assert_eq!(places(&machine.declared, 0x5000, own), []);
    }
}
