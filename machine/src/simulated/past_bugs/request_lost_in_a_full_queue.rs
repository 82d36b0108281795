//! A CPU's queue of requests had room for one. A second initiator found it full and went on as if it had been told. It
//! waited for an acknowledgement that nobody owed.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::several::TWO_DROP_AND_ONE_READS;

pub(super) const BUG: PastBug = PastBug {
    name: "request-lost-in-a-full-queue",
    source: "issue 4; coherence.md 1.15",
    story: "A CPU's queue of requests had room for one. A second initiator found it full and went on as if it \
            had been told. It waited for an acknowledgement that nobody owed.",
    mistake: Mistake::Coherence(coherence::Fault::RequestLost),
    scenario: &TWO_DROP_AND_ONE_READS,
    breaks: "nobody can go on",
};
