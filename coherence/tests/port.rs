//! The port that `docs/guide/porting.md` walks through: it keeps its promise, it would notice if it did not, and it is what the
//! guide shows.
#![cfg(not(any(loom, shuttle, simulated)))]

use coherence::Cause;

#[allow(dead_code, reason = "an example's `main`, which the test has no use for")]
#[path = "../examples/port/main.rs"]
mod port;

const KERNEL: &str = include_str!("../examples/port/kernel.rs");
const AGENT: &str = include_str!("../examples/port/agent.rs");
const MAIN: &str = include_str!("../examples/port/main.rs");
const GUIDE: &str = include_str!("../../docs/guide/porting.md");

/// One after the other, since the port has one machine.
#[test]
fn freed_frames_are_used_only_if_flushes_are_left_out() {
    assert_eq!(port::run(1_000, None), 0);
    assert!(port::run(1_000, Some(Cause::Munmap)) > 0, "without flushes nothing was noticed");
    assert!(port::run(1_000, Some(Cause::Reclaim)) > 0, "without the batches' rounds nothing was noticed");
    assert_eq!(port::run(200, None), 0);
}

/// All lines that say something: without the empty ones, on which files and page may differ.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn the_guide_shows_the_port_as_it_is() {
    let blocks = GUIDE.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    let shown: String = blocks.collect();
    let files = [KERNEL, AGENT, MAIN].concat();
    for (place, (shown, line)) in lines(&shown).into_iter().zip(lines(&files)).enumerate() {
        assert_eq!(shown, line, "line {place} of the code in the guide");
    }
    assert_eq!(lines(&shown).len(), lines(&files).len(), "the guide shows too little, or too much");
}

#[test]
fn the_port_is_short() {
    let code = lines(KERNEL).into_iter().filter(|line| !line.trim_start().starts_with("//")).count();
    assert!(code <= 165, "{code} lines");
}
