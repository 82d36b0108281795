//! A guest leaves word with the hypervisor that a virtual CPU is to be flushed before it runs. KVM could look for that word in a page that
//! it had mapped before, or clear the word after it had looked. The guest had its answer, gave the frame away, and the CPU ran on with what
//! it had cached.

use super::super::past_bug::{HardwareMistake, Mistake, PastBug};
use super::super::scenarios::preemption::DESCHEDULED_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "word-to-flush-lost",
    source: "coherence.md 7 row 13: CVE-2019-3016",
    story: "A guest leaves word with the hypervisor that a virtual CPU is to be flushed before it runs. KVM could look for that word in \
            a page that it had mapped before, or clear the word after it had looked. The guest had its answer, gave the frame away, \
            and the CPU ran on with what it had cached.",
    mistake: Mistake::Hardware(HardwareMistake::LooksBeforeItClears),
    scenario: &DESCHEDULED_WRITER,
    breaks: "D1",
};
