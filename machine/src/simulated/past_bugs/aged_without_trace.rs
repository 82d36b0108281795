//! The mark of being used was taken without a flush, and nothing was left in the entry that said so.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::reclaim::AGED_AND_TAKEN_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "aged-without-trace",
    source: "design.md, rule on clearing A; performance.md 3.2 (T8)",
    story: "Which pages are used was found out by taking the marks, without a flush. An entry without the mark counted as in no CPU's cache, \
        so its frame was freed without one. But a CPU that has an entry cached goes on using it, and does not mark it again.",
    mistake: Mistake::Memory(memory::Mistake::AgedWithoutTrace),
    scenario: &AGED_AND_TAKEN_BACK,
    breaks: "D1",
};
