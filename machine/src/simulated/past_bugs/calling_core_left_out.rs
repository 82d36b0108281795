//! A barrier for cores served all CPUs of the process but the caller's. The caller had executed the old instructions too,
//! there or on a CPU that it had left since. It went on with what it had itself replaced.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::cores::CODE_BESIDE_USER_CODE;

pub(super) const BUG: PastBug = PastBug {
    name: "calling-core-left-out",
    source: "row M5: e45cdc71d1fa (2020)",
    story: "A barrier for cores served all CPUs of the process but the caller's. The caller had executed \
            the old instructions too, there or on a CPU that it had left since. It went on with what it \
            had itself replaced.",
    mistake: Mistake::Coherence(coherence::Fault::CallerNotSerialised),
    scenario: &CODE_BESIDE_USER_CODE,
    breaks: "B",
};
