//! A barrier for cores sent the same interrupt as any barrier, whose handler fenced and no more. No fence makes a CPU
//! forget what it has fetched. The CPU went on with instructions that had been replaced.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::cores::CODE_BESIDE_USER_CODE;

pub(super) const BUG: PastBug = PastBug {
    name: "core-barrier-was-a-fence",
    source: "row M5: 758c9373d841 (2020)",
    story: "A barrier for cores sent the same interrupt as any barrier, whose handler fenced and no \
            more. No fence makes a CPU forget what it has fetched. The CPU went on with instructions \
            that had been replaced.",
    mistake: Mistake::Coherence(coherence::Fault::CoreBarrierOnlyFences),
    scenario: &CODE_BESIDE_USER_CODE,
    breaks: "B",
};
