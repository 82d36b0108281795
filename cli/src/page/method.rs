//! How the figures came about, in two paragraphs.

use maud::{Markup, html};

/// The same for every page.
pub(super) fn render() -> Markup {
    html! {
        p {
            strong { "Counts" } " are coherence interrupts that all CPUs received while a workload's loop ran, divided by its operations: "
            "on both kernels the difference of two readings of " code { "/proc/interrupts" } " by the program itself. On Ceasefire they come "
            "from deterministic mode, in which the emulator's CPUs advance in turn by a clock that counts instructions, so that a run "
            "repeats to the last one; instructions per operation are read off that clock, over all CPUs. Debian's Linux does not boot on "
            "that clock with more than one CPU, so its counts come from single mode, in which the CPUs take turns on one host thread by "
            "the host's clock. The lower bound is what no correct kernel can stay below: each CPU that runs user code and may have "
            "cached what was taken away must be interrupted once. A mechanism switched off shows what it is worth. For a program that measures "
            "nothing itself, the kernels count from its start to its end."
        }
        p {
            strong { "Times" } " come from single mode on both kernels, the same program in the same machine, in pairs of runs one after the "
            "other. The emulator's CPUs share a host thread, so a time is the summed work of all of them. Only ratios within a pair mean "
            "anything: emulated invalidations and system calls are far too cheap, and the host's load moves both runs of a pair. The dot is "
            "the median of the pairs, the whisker reaches from the least to the most; a ratio is called clear only if the whole whisker lies "
            "on one side of 1. Counts are the claim, times are the sign that nothing else got worse. More is in the project's tree: "
            code { "docs/guide/report.md" } ", " code { "docs/guide/results.md" } " and " code { "CAVEATS.md" } "."
        }
    }
}
