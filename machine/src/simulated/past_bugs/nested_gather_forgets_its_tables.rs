//! An operation that met another one flushed by force, and reset what it knew of its own changes to do so. That it had
//! freed page tables, and at which level, was lost. CPUs that had to be told of those were not.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::gathers::GATHERS_AND_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "nested-gather-forgets-its-tables",
    source: "row 4: 7a30df49f63a (2019)",
    story: "An operation that met another one flushed by force, and reset what it knew of its own \
            changes to do so. That it had freed page tables, and at which level, was lost. CPUs that had \
            to be told of those were not.",
    mistake: Mistake::Coherence(coherence::Fault::NestedForgetsItsOwn),
    scenario: &GATHERS_AND_FREED_TABLES,
    breaks: "D1",
};
