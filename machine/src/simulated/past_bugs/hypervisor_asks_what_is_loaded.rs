//! A CPU that has another space loaded seems to have nothing to drop. Linux read what a CPU had loaded while that CPU was in the middle
//! of a switch, and left it out. Here a hypervisor does so: the CPU goes on with the switch and keeps what it had under the tag.

use super::super::past_bug::{HardwareMistake, Mistake, PastBug};
use super::super::scenarios::broadcast::HYPERCALL_WHILE_ENTERING;

pub(super) const BUG: PastBug = PastBug {
    name: "hypervisor-asks-what-is-loaded",
    source: "coherence.md 7 row 35: CVE-2025-37964, Linux fea4e317f9e7, told of a hypervisor",
    story: "A CPU that has another space loaded seems to have nothing to drop. Linux read what a CPU had loaded while that CPU was in \
            the middle of a switch, and left it out. Here a hypervisor does so: the CPU goes on with the switch and keeps what \
            it had under the tag.",
    mistake: Mistake::Hardware(HardwareMistake::AsksWhatIsLoaded),
    scenario: &HYPERCALL_WHILE_ENTERING,
    breaks: "D1",
};
