//! A hypervisor drops the range that it is asked to drop, and knows nothing of generations. A CPU that had asked it concluded that
//! it was up to date, as it would be after its own flush. The interrupt for another range, which was on its way, then
//! found nothing to do.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::broadcast::HYPERCALL_OR_INTERRUPT;

pub(super) const BUG: PastBug = PastBug {
    name: "broadcast-counts-as-caught-up",
    source: "coherence.md 1.13 and 6.5: backends without a gap rule",
    story: "A hypervisor drops the range that it is asked to drop, and knows nothing of generations. A CPU that had asked it \
            concluded that it was up to date, as it would be after its own flush. The interrupt for another range, which was \
            on its way, then found nothing to do.",
    mistake: Mistake::Coherence(coherence::Fault::RemoteClaims),
    scenario: &HYPERCALL_OR_INTERRUPT,
    breaks: "D",
};
