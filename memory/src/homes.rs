//! Where new mappings go when CPUs have upper tables of their own (`own_tables`): so that threads share no leaf table without need.
//!
//! Whoever changes an entry tells all CPUs that have found its table. Two threads whose private pages lie in one table would tell each other. So
//! * a mapping as large as a table's reach or larger (a thread's stack, a heap) ends where a table does, and nothing else is placed in its tables;
//! * smaller ones go to the *home* of the thread that maps them: the reach of one table, in which only this thread places mappings. When it is full the
//!   thread gets another home, and so it does when another one has taken its place in the list of homes, which is short.
//!
//! All of that only where the program leaves the address to us. It costs addresses, of which there are plenty, and a page table for each thread that
//! maps anything.

use crate::address_space::{AddressSpace, Layout};
use crate::environment::Environment;
use crate::page_table::LEAF_SPAN;
use crate::range::PageRange;

/// So many threads have homes at once.
const HOMES: u64 = 64;

/// The latest homes.
pub(crate) struct Homes([Home; HOMES as usize]);

#[derive(Clone, Copy)]
struct Home {
    thread: u64,
    /// Where it starts; 0 for none.
    start: u64,
}

impl Homes {
    pub(crate) const fn new() -> Self {
        Self([Home { thread: 0, start: 0 }; HOMES as usize])
    }
}

impl<E: Environment> AddressSpace<E> {
    /// The thread apart from whose mappings those of others shall lie, if they shall. A large mapping is often the stack of the thread that is about to be
    /// the second one.
    pub(crate) fn apart(&self, length: u64) -> Option<u64> {
        let is_wanted = self.own_tables.are_there()
            || (length >= LEAF_SPAN && self.environment.coherence().switches().sharers);
        is_wanted.then(|| self.environment.current_thread())
    }
}

/// Decides where a mapping goes, below `top`, that a thread makes. `None` if there is no such place: then anywhere will do.
pub(crate) fn place_apart<E: Environment>(
    layout: &mut Layout<E>,
    length: u64,
    thread: u64,
    top: u64,
) -> Option<PageRange> {
    if length >= LEAF_SPAN {
        let room = layout.areas.place(length.checked_add(LEAF_SPAN)?, top)?;
        let end = room.end() / LEAF_SPAN * LEAF_SPAN;
        return PageRange::between(end - length, end);
    }
    let home = layout.homes.0[(thread % HOMES) as usize];
    let place_in = |layout: &Layout<E>, home: u64| layout.areas.place_within(length, home..home + LEAF_SPAN);
    if home.start != 0
        && home.thread == thread
        && let Some(range) = place_in(layout, home.start)
    {
        return Some(range);
    }
    let room = layout.areas.place(2 * LEAF_SPAN, top)?;
    let start = room.start().next_multiple_of(LEAF_SPAN);
    layout.homes.0[(thread % HOMES) as usize] = Home { thread, start };
    place_in(layout, start)
}
