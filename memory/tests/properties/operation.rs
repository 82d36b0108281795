//! What is done to the spaces: the units that operations are about, the operations, and how they are drawn.

use std::cell::Cell;

use machine::in_turn::CPUS;
use memory::{PAGE_SIZE, PageRange};
use proptest::prelude::*;

pub(crate) const SPACES: usize = 3;
pub(crate) const OBJECTS: u64 = 2;
pub(crate) const OBJECT_PAGES: u64 = 24;
/// The units in play, in two groups that each lie across the border of two leaf tables, a gigabyte apart.
pub(crate) const PAGES: u64 = 64;
/// Pages in a unit where large pages are in play.
pub(crate) const LARGE_UNIT: u64 = 32;

std::thread_local! {
    /// Pages in a unit.
    pub(crate) static UNIT: Cell<u64> = const { Cell::new(1) };
}

/// Bytes in a unit.
pub(crate) fn unit() -> u64 {
    UNIT.get() * PAGE_SIZE
}

pub(crate) fn address(page: u64) -> u64 {
    let group = page / 32;
    (0x4000_0000 * (group + 1)) + (0x20_0000 - 16 * unit()) % 0x20_0000 + page % 32 * unit()
}

/// Pages that follow each other in addresses, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Run {
    pub(crate) fn range(self) -> PageRange {
        PageRange::new(address(self.first), self.count * unit()).unwrap()
    }

    pub(crate) fn pages(self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Anonymous,
    Object { object: u64, first_page: u64, shared: bool },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Map {
        run: Run,
        kind: Kind,
        rights: u8,
    },
    Unmap {
        run: Run,
    },
    Protect {
        run: Run,
        rights: u8,
    },
    DontNeed {
        run: Run,
    },
    Populate {
        run: Run,
    },
    Move {
        from: Run,
        to: Run,
        keep_source: bool,
    },
    Fork {
        into: usize,
    },
    Load {
        page: u64,
    },
    Store {
        page: u64,
        value: u64,
        by_kernel: bool,
    },
    Collapse {
        run: Run,
    },
    /// Hardware walks ahead of any access.
    Fill {
        page: u64,
    },
    Enter {
        space: usize,
    },
    GoLazy,
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    (0..PAGES, 1..20u64).prop_map(|(first, count)| Run { first, count: count.min(32 - first % 32) })
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    let object = (0..OBJECTS, 0..4u64, any::<bool>());
    prop_oneof![
        3 => Just(Kind::Anonymous),
        2 => object.prop_map(|(object, first_page, shared)| Kind::Object { object, first_page, shared }),
    ]
}

pub(crate) fn rights() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(3u8), 2 => Just(1u8), 1 => Just(0u8), 1 => Just(7u8), 1 => Just(5u8)]
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let store = (0..PAGES, 1..u64::MAX, any::<bool>());
    prop_oneof![
        4 => (run(), kind(), rights()).prop_map(|(run, kind, rights)| Operation::Map { run, kind, rights }),
        2 => run().prop_map(|run| Operation::Unmap { run }),
        3 => (run(), rights()).prop_map(|(run, rights)| Operation::Protect { run, rights }),
        2 => run().prop_map(|run| Operation::DontNeed { run }),
        1 => run().prop_map(|run| Operation::Populate { run }),
        2 => (0..2u64).prop_map(|group| Operation::Collapse { run: Run { first: group * 32, count: 32 } }),
        2 => (run(), run(), any::<bool>()).prop_map(|(from, to, keep_source)| Operation::Move { from, to, keep_source }),
        2 => (0..SPACES).prop_map(|into| Operation::Fork { into }),
        8 => (0..PAGES).prop_map(|page| Operation::Load { page }),
        10 => store.prop_map(|(page, value, by_kernel)| Operation::Store { page, value, by_kernel }),
        6 => (0..PAGES).prop_map(|page| Operation::Fill { page }),
        2 => (0..SPACES).prop_map(|space| Operation::Enter { space }),
        2 => Just(Operation::GoLazy),
    ]
}

/// Sequences that have two large pages to begin with, one of which fell to pieces and was put together again.
pub(crate) fn large_sequences() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    prop::collection::vec((0..CPUS, operation()), 1..80).prop_map(|operations| {
        let run = Run { first: 0, count: 32 };
        let first = [
            (0, Operation::Map { run, kind: Kind::Anonymous, rights: 3 }),
            (1, Operation::Store { page: 3, value: 1, by_kernel: false }),
            (2, Operation::Load { page: 7 }),
            (2, Operation::Store { page: 17, value: 2, by_kernel: true }),
            (0, Operation::DontNeed { run: Run { first: 2, count: 1 } }),
            (1, Operation::Load { page: 3 }),
            (3, Operation::Collapse { run }),
        ];
        first.into_iter().chain(operations).collect()
    })
}
