//! A profiler read the program's stack in an interrupt that cannot be masked. The interrupt came in the middle of a switch,
//! when the next root was loaded and the records still named the last. It read another program's memory.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::unmaskable::NMI_AND_SWITCH;

pub(super) const BUG: PastBug = PastBug {
    name: "nmi-in-the-middle-of-a-switch",
    source: "row 9: 4012e77a903d (2018)",
    story: "A profiler read the program's stack in an interrupt that cannot be masked. The interrupt \
            came in the middle of a switch, when the next root was loaded and the records still named \
            the last. It read another program's memory.",
    mistake: Mistake::Coherence(coherence::Fault::SwitchUnmarked),
    scenario: &NMI_AND_SWITCH,
    breaks: "D1",
};
