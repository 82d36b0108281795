//! Two threads dropped the same page. The first cleared the entry and had yet to flush; the second found nothing to clear,
//! flushed nothing, and returned. Its program still saw the page that it had been told was gone.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::gathers::GATHERS_THAT_MEET;

pub(super) const BUG: PastBug = PastBug {
    name: "nested-gather-not-flushed",
    source: "row 4: 99baac21e458, 16af97dc5a89, 56236a59556c (2017)",
    story: "Two threads dropped the same page. The first cleared the entry and had yet to flush; the \
            second found nothing to clear, flushed nothing, and returned. Its program still saw the page \
            that it had been told was gone.",
    mistake: Mistake::Coherence(coherence::Fault::NoNestedRule),
    scenario: &GATHERS_THAT_MEET,
    breaks: "D3",
};
