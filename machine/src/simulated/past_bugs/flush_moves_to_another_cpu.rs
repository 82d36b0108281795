//! A flush of the CPU's own translations ran with preemption on. Between asking which CPU it was on and flushing, the
//! thread was moved. It flushed the CPU that it came to, and the one that it had left kept its entries.

use super::super::past_bug::{KernelMistake, Mistake, PastBug};
use super::super::scenarios::migration::MOVING_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "flush-moves-to-another-cpu",
    source: "row 11: f77084d96355 (2018)",
    story: "A flush of the CPU's own translations ran with preemption on. Between asking which CPU it \
            was on and flushing, the thread was moved. It flushed the CPU that it came to, and the one \
            that it had left kept its entries.",
    mistake: Mistake::Kernel(KernelMistake::CallsMove),
    scenario: &MOVING_AND_MUNMAP,
    breaks: "D1",
};
