//! A CPU that switched to a space read its generation first and joined the set of those to be told afterwards. A request
//! made in between advanced the generation and found the set empty. So nobody told the CPU, and it believed that it had
//! missed nothing.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::switch::ENTER_WITH_A_TAG_AND_MUNMAP;

pub(super) const BUG: PastBug = PastBug {
    name: "generation-read-before-the-set-is-joined",
    source: "coherence.md 7 row 37: Linux b2dbc71fe33b (stable backport); models/switch_tso.py genfirst",
    story: "A CPU that switched to a space read its generation first and joined the set of those to be told \
            afterwards. A request made in between advanced the generation and found the set empty. So nobody \
            told the CPU, and it believed that it had missed nothing.",
    mistake: Mistake::Coherence(coherence::Fault::GenerationBeforeSetEntering),
    scenario: &ENTER_WITH_A_TAG_AND_MUNMAP,
    breaks: "D1",
};
