//! KVM marked a virtual CPU as descheduled while it was still finishing an instruction on its behalf, with translations from before.
//! The guest saw the mark and did not wait. The instruction's store landed in a page that had a new owner.

use super::super::past_bug::{HardwareMistake, Mistake, PastBug};
use super::super::scenarios::preemption::DESCHEDULED_WRITER;

pub(super) const BUG: PastBug = PastBug {
    name: "marked-while-it-runs",
    source: "coherence.md 7 row 23: CVE-2022-39189, Linux 6cd88243c7e0",
    story: "KVM marked a virtual CPU as descheduled while it was still finishing an instruction on its behalf, with translations from \
            before. The guest saw the mark and did not wait. The instruction's store landed in a page that had a new owner.",
    mistake: Mistake::Hardware(HardwareMistake::MarksBeforeItStops),
    scenario: &DESCHEDULED_WRITER,
    breaks: "D1",
};
