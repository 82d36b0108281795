//! Whoever looks for all places of a page visits one address after the other. If it moves meanwhile, he looks where
//! it goes before it has come, and where it was after it has left, and misses it. So truncation returned, and the
//! page that it had cut off was still mapped.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::table_moves::TABLE_MOVE_AND_TRUNCATION;

pub(super) const BUG: PastBug = PastBug {
    name: "page-missed-while-it-moves",
    source: "coherence.md 6.1, 6.6: need_rmap_locks",
    story: "Whoever looks for all places of a page visits one address after the other. If it moves \
            meanwhile, he looks where it goes before it has come, and where it was after it has left, \
            and misses it. So truncation returned, and the page that it had cut off was still mapped.",
    mistake: Mistake::Memory(memory::Mistake::MovedBesideReverseWalks),
    scenario: &TABLE_MOVE_AND_TRUNCATION,
    breaks: "D3",
};
