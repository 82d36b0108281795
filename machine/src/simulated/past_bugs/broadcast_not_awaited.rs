//! A broadcast only begins when its instruction ends; a second instruction waits until every CPU is done, and only for broadcasts that
//! the same CPU began. Linux on Arm waited on a CPU other than the one that had broadcast, which waits for nothing. The frames
//! were given away while CPUs still wrote to them.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::broadcast::BROADCAST_AND_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "broadcast-not-awaited",
    source: "coherence.md 1.13 and 1.2 T7; 7 row 39: Linux 4b634918384c (2025)",
    story: "A broadcast only begins when its instruction ends; a second instruction waits until every CPU is done, and only for \
            broadcasts that the same CPU began. Linux on Arm waited on a CPU other than the one that had broadcast, which waits \
            for nothing. The frames were given away while CPUs still wrote to them.",
    mistake: Mistake::Coherence(coherence::Fault::RemoteNotAwaited),
    scenario: &BROADCAST_AND_WRITER,
    breaks: "D1",
};
