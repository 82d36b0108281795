//! A CPU that comes back from borrowing a space is told of no flush until it has joined and compared. It was marked as a
//! user of the space at the beginning of that, not at the end. An interrupt that cannot be masked came in between and read
//! through an entry that was gone.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::unmaskable::NMI_AND_COMING_BACK;

pub(super) const BUG: PastBug = PastBug {
    name: "nmi-before-a-borrower-has-flushed",
    source: "row 9, the other half: 4012e77a903d; ours could",
    story: "A CPU that comes back from borrowing a space is told of no flush until it has joined and \
            compared. It was marked as a user of the space at the beginning of that, not at the end. An \
            interrupt that cannot be masked came in between and read through an entry that was gone.",
    mistake: Mistake::Coherence(coherence::Fault::MarkedBeforeFlush),
    scenario: &NMI_AND_COMING_BACK,
    breaks: "D1",
};
