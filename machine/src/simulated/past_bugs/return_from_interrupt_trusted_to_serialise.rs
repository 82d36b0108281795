//! A CPU that was asked to fetch its instructions anew did nothing about it where the request came by an interrupt, since
//! returns from interrupts do so on some machines. The way back to the program did not always lead over such a return. The
//! CPU went on with instructions that had been replaced.

use super::super::past_bug::{Mistake, PastBug};
use super::super::scenarios::cores::CODE_BESIDE_USER_CODE;

pub(super) const BUG: PastBug = PastBug {
    name: "return-from-interrupt-trusted-to-serialise",
    source: "row M4: a493d1ca1a03 (2020)",
    story: "A CPU that was asked to fetch its instructions anew did nothing about it where the request \
            came by an interrupt, since returns from interrupts do so on some machines. The way back to \
            the program did not always lead over such a return. The CPU went on with instructions that \
            had been replaced.",
    mistake: Mistake::Coherence(coherence::Fault::NoSerialiseInHandler),
    scenario: &CODE_BESIDE_USER_CODE,
    breaks: "B",
};
