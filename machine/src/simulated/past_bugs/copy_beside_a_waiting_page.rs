//! A program stored to its private mapping of a page that had been taken back without a flush, and got its copy. Its other
//! threads went on reading the file's page.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::epochs::PUT_BY_AND_PRIVATE_COPY;

pub(super) const BUG: PastBug = PastBug {
    name: "copy-beside-a-waiting-page",
    source: "performance.md 3.4",
    story: "A program stored to its private mapping of a page that had been taken back without a flush, and got \
            its copy. Its other threads went on reading the file's page.",
    mistake: Mistake::Memory(memory::Mistake::CopyBesideWaitingPage),
    scenario: &PUT_BY_AND_PRIVATE_COPY,
    breaks: "D3",
};
