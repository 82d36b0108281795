//! Random operations on several address spaces, against a model that knows nothing of page tables.
//!
//! The model maps each page to what it contains and what it allows. After every operation the caches of the simulated
//! CPUs are held against the tables, so a missing flush shows at once, not only when somebody happens to read through
//! a stale entry; and at the end every frame must be free again. A failure prints the shortest sequence that shows it
//! and is replayed first by later runs (`proptest` writes its seed beside this file).
//!
//! The same operations and the same model serve for large pages: what the model calls a page is a *unit* of 32 pages there, sixteen of
//! which are a large page, so that operations meet large pages whole, in part, and moved by less than their size.

mod model;
mod operation;

use coherence::{Cause, Switches};
use machine::in_turn::CPUS;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use model::World;
use operation::{LARGE_UNIT, Operation, UNIT, large_sequences, operation};

fn check(switches: Switches, suppressed: Option<Cause>, operations: &[(usize, Operation)]) {
    let mut world = World::new(switches);
    world.environment.0.coherence.suppress(suppressed);
    for (cpu, operation) in operations {
        world.apply(*cpu, *operation);
    }
    world.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn memory_is_what_the_model_says(operations in prop::collection::vec((0..CPUS, operation()), 1..120)) {
        check(Switches::DEFAULT, None, &operations);
    }

    #[test]
    fn also_without_any_mechanism(operations in prop::collection::vec((0..CPUS, operation()), 1..60)) {
        check(Switches::VANILLA, None, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn large_pages_are_what_the_model_says(operations in large_sequences()) {
        UNIT.set(LARGE_UNIT);
        check(Switches::DEFAULT, None, &operations);
    }
}

/// Shows that the properties have teeth: leave out the flushes of one operation, and they fail.
fn is_noticed(cause: Cause, sequences: impl Strategy<Value = Vec<(usize, Operation)>>) -> bool {
    let mut runner = TestRunner::deterministic();
    (0..60).any(|_| {
        let operations = sequences.new_tree(&mut runner).unwrap().current();
        std::panic::catch_unwind(|| check(Switches::DEFAULT, Some(cause), &operations)).is_err()
    })
}

#[test]
fn every_suppressed_flush_is_noticed() {
    let causes = [
        Cause::Munmap,
        Cause::Mmap,
        Cause::Mprotect,
        Cause::Dontneed,
        Cause::Mremap,
        Cause::Fork,
        Cause::CopyOnWrite,
    ];
    for cause in causes {
        let sequences = prop::collection::vec((0..CPUS, operation()), 60..120);
        assert!(is_noticed(cause, sequences), "nothing failed without the flushes of {cause:?}");
    }
}

#[test]
fn every_suppressed_flush_of_large_pages_is_noticed() {
    UNIT.set(LARGE_UNIT);
    for cause in [
        Cause::Munmap,
        Cause::Mprotect,
        Cause::Dontneed,
        Cause::Madvise,
        Cause::Mremap,
        Cause::Fork,
        Cause::CopyOnWrite,
    ] {
        let noticed = is_noticed(cause, large_sequences());
        assert!(noticed, "nothing failed without the flushes of {cause:?}");
    }
}
