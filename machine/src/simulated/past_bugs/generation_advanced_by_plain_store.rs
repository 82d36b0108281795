//! The generation of a space was advanced by a load and a store. Two initiators got the same number. A CPU that had
//! served one of them took the request of the other for served as well.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_AND_ONE_READS;

pub(super) const BUG: PastBug = PastBug {
    name: "generation-advanced-by-plain-store",
    source: "coherence.md 1.5; models/lazy_tso.py relflag",
    story: "The generation of a space was advanced by a load and a store. Two initiators got the same number. A \
            CPU that had served one of them took the request of the other for served as well.",
    mistake: Mistake::Coherence(coherence::Fault::PlainAdvance),
    scenario: &TWO_DROP_AND_ONE_READS,
    breaks: "D1",
};
