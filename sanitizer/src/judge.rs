//! May this access be? The story and the argument are in the crate's first lines.

use protocol::sanitizer::{AccessKind, IMAGE_BASE, KERNEL_PAGES, PAGE_BYTES, USER_END, Violation, Wrong};

use crate::declared::Declared;
use crate::owners;
use crate::tables::{Mapping, walk};

/// An access that a CPU has made (or, for a fetch, is about to make).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) cpu: u32,
    pub(crate) instruction: u64,
    pub(crate) address: u64,
    pub(crate) kind: AccessKind,
    /// Physical address that the CPU's translation led to.
    pub(crate) physical: u64,
}

/// What became of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The tables have it so.
    Right,
    /// The tables do not, but whoever changed them is not finished.
    DuringChange,
    /// Nothing is declared yet that would tell.
    Unknown,
    /// It must not be.
    Stale(Box<Violation>),
}

/// Whether an access to this address can be judged, and may be stale: programs' pages, and the kernel's own small ones. The rest
/// of the kernel's half is mapped once and for all.
pub(crate) fn is_watched(address: u64) -> bool {
    address < USER_END || (KERNEL_PAGES..IMAGE_BASE).contains(&address)
}

/// Judges an access to a watched address.
pub(crate) fn judge(declared: &Declared, access: &Access) -> Verdict {
    let Some(kernel_root) = declared.kernel_root() else { return Verdict::Unknown };
    let is_user = access.address < USER_END;
    let space = if is_user { declared.loaded(access.cpu) } else { None };
    let root = match (is_user, space) {
        (false, _) => Some(kernel_root),
        (true, Some(space)) => declared.root(space),
        (true, None) => None,
    };
    // The tables first, what excuses a difference afterwards.
    let Some(mapping) = root.and_then(|root| walk(declared.memory(), root, access.address)) else {
        return Verdict::Unknown;
    };
    let frame = access.physical / PAGE_BYTES * PAGE_BYTES;
    let references = declared.references(frame);
    // The lock before the changes: who changes entries by the reverse way says so before the lock is released, and not before it is taken.
    let is_locked = declared.is_table_locked(mapping.table);
    let changes = space.and_then(|space| declared.changes(space)).unwrap_or(0);
    // What waits for its flush may be read, as it is, and not stored to.
    let may_wait = access.kind != AccessKind::Store
        && space.is_some_and(|space| is_user && declared.may_be_read(space, frame));
    let wrong = match wrong(&mapping, frame, access.kind) {
        _ if references == Some(0) => Wrong::FrameIsFree,
        None => return Verdict::Right,
        Some(_) if may_wait || is_user && (changes > 0 || is_locked) => return Verdict::DuringChange,
        Some(wrong) => wrong,
    };
    Verdict::Stale(Box::new(Violation {
        wrong,
        cpu: access.cpu,
        instruction: access.instruction,
        address: access.address,
        access: access.kind,
        frame,
        references,
        entry: mapping.entry,
        changes,
        mapped_at: owners::places(declared, frame, space),
    }))
}

/// In what the access goes beyond the tables.
fn wrong(mapping: &Mapping, frame: u64, kind: AccessKind) -> Option<Wrong> {
    match (mapping.frame, kind) {
        (None, _) => Some(Wrong::NotMapped),
        (Some(mapped), _) if mapped != frame => Some(Wrong::OtherFrame),
        (_, AccessKind::Store) if !mapping.writable => Some(Wrong::NotWritable),
        (_, AccessKind::Fetch) if !mapping.executable => Some(Wrong::NotExecutable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_machine::{PAGE, TestMachine};

    const WRITABLE: u64 = 1 << 1;

    fn access(machine: &TestMachine, kind: AccessKind) -> Access {
        Access { cpu: 0, instruction: 0x40_0000, address: PAGE + 16, kind, physical: machine.frame + 16 }
    }

    fn wrong_with(machine: &TestMachine, kind: AccessKind) -> Option<Wrong> {
        match judge(&machine.declared, &access(machine, kind)) {
            Verdict::Stale(violation) => Some(violation.wrong),
            Verdict::Right => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_tables_have_may_be_done() {
        let machine = TestMachine::new();
        assert_eq!(wrong_with(&machine, AccessKind::Load), None);
        assert_eq!(wrong_with(&machine, AccessKind::Store), None);
        assert_eq!(wrong_with(&machine, AccessKind::Fetch), Some(Wrong::NotExecutable));
        machine.set_entry(0, PAGE, machine.entry & !WRITABLE);
        assert_eq!(wrong_with(&machine, AccessKind::Load), None);
        assert_eq!(wrong_with(&machine, AccessKind::Store), Some(Wrong::NotWritable));
    }

    #[test]
    fn a_changed_entry_is_an_excuse_only_while_the_change_is_under_way() {
        for entry in [0, 0x7000 | 7] {
            let machine = TestMachine::new();
            machine.set_entry(0, PAGE, entry);
            machine.set_changes(1);
            assert_eq!(judge(&machine.declared, &access(&machine, AccessKind::Load)), Verdict::DuringChange);
            machine.set_changes(0);
            machine.set_batched(7);
            assert_eq!(judge(&machine.declared, &access(&machine, AccessKind::Load)), Verdict::DuringChange);
            machine.set_batched(0);
            machine.lock_leaf(true);
            assert_eq!(judge(&machine.declared, &access(&machine, AccessKind::Load)), Verdict::DuringChange);
            machine.lock_leaf(false);
            let wrong = if entry == 0 { Wrong::NotMapped } else { Wrong::OtherFrame };
            assert_eq!(wrong_with(&machine, AccessKind::Load), Some(wrong));
        }
    }

    #[test]
    fn what_waits_for_its_flush_may_be_read_and_nothing_else() {
        let machine = TestMachine::new();
        machine.set_entry(0, PAGE, 0);
        machine.set_deferred(7);
        assert_eq!(wrong_with(&machine, AccessKind::Load), Some(Wrong::NotMapped), "another frame waits");
        machine.set_waiting(machine.frame, 1);
        assert_eq!(judge(&machine.declared, &access(&machine, AccessKind::Load)), Verdict::DuringChange);
        assert_eq!(wrong_with(&machine, AccessKind::Store), Some(Wrong::NotMapped));
        machine.set_deferred(0);
        assert_eq!(wrong_with(&machine, AccessKind::Load), Some(Wrong::NotMapped), "it has been flushed");
        machine.set_deferred(8);
        machine.set_references(machine.frame, 0);
        assert_eq!(wrong_with(&machine, AccessKind::Load), Some(Wrong::FrameIsFree));
    }

    #[test]
    fn a_free_frame_has_no_excuse() {
        let machine = TestMachine::new();
        machine.set_references(machine.frame, 0);
        machine.set_changes(1);
        assert_eq!(wrong_with(&machine, AccessKind::Load), Some(Wrong::FrameIsFree));
    }

    #[test]
    fn a_cpu_without_a_space_is_left_alone() {
        let machine = TestMachine::new();
        let elsewhere = Access { cpu: 5, ..access(&machine, AccessKind::Load) };
        assert_eq!(judge(&machine.declared, &elsewhere), Verdict::Unknown);
        assert!(is_watched(0) && is_watched(KERNEL_PAGES) && !is_watched(IMAGE_BASE));
        assert!(!is_watched(0xffff_8000_0000_0000));
    }

    #[test]
    fn the_kernels_own_pages_are_judged_by_its_own_tables_and_have_no_excuse() {
        let machine = TestMachine::new();
        machine.set_changes(1);
        let address = KERNEL_PAGES + 8;
        let stale = Access { address, ..access(&machine, AccessKind::Load) };
        match judge(&machine.declared, &stale) {
            Verdict::Stale(violation) => assert_eq!(violation.wrong, Wrong::NotMapped),
            other => panic!("{other:?}"),
        }
    }
}
