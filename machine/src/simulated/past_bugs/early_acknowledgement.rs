//! A target acknowledged a request when it began to handle it, so that the initiator could go on sooner. The initiator
//! freed page tables before the target had dropped what it had cached of them. Until then its walker went through them.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::tables::BORROWER_WALKS_FREED_TABLES;

pub(super) const BUG: PastBug = PastBug {
    name: "early-acknowledgement",
    source: "coherence.md 1.2 T7; design.md section 4; row 46: CVE-2025-10263",
    story: "A target acknowledged a request when it began to handle it, so that the initiator could go on \
            sooner. The initiator freed page tables before the target had dropped what it had cached of them. \
            Until then its walker went through them.",
    mistake: Mistake::Coherence(coherence::Fault::EarlyAcknowledgement),
    scenario: &BORROWER_WALKS_FREED_TABLES,
    breaks: "D1",
};
