//! Counting the calls that this kernel does not have.

use crate::sync::SpinLock;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Most numbers that are told apart: a program can make up any.
const NUMBERS_MAX: usize = 1024;

static COUNTS: SpinLock<BTreeMap<u64, u64>> = SpinLock::new(BTreeMap::new());

/// Notes one call of an unknown number.
pub(super) fn count(number: u64) {
    let mut counts = COUNTS.lock();
    if counts.len() < NUMBERS_MAX || counts.contains_key(&number) {
        *counts.entry(number).or_insert(0) += 1;
    }
}

/// The unknown numbers that were called and how often, by number.
pub(crate) fn unknown_calls() -> Vec<(u64, u64)> {
    COUNTS.lock().iter().map(|(&number, &count)| (number, count)).collect()
}
