//! Makes a program smaller for as long as the difference stays.
//!
//! A run of a pack costs hardly more than a run of one program, so candidates come in batches: all that are smaller by one simplification.
//! Whoever shrinks runs them, says which still differ, and takes the first of them for the next batch.

use crate::judge::is_tame;
use crate::program::{Address, Call, PAGE, Program};

/// All programs that are simpler than this by one thing, the greatest simplifications first.
pub fn simpler(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let rounds = program.rounds.len();
    for chunk in [rounds / 2, rounds / 4, 1] {
        if chunk == 0 {
            continue;
        }
        // What comes last can be left out most easily.
        for start in (0..rounds).rev().step_by(chunk) {
            let mut shorter = program.clone();
            shorter.rounds.drain(start..(start + chunk).min(rounds));
            all.push(shorter);
        }
    }
    for round in 0..rounds {
        let steps = program.rounds[round].len();
        if steps > 1 {
            for step in 0..steps {
                let mut fewer = program.clone();
                fewer.rounds[round].remove(step);
                all.push(fewer);
            }
            let mut in_turn = program.clone();
            let apart: Vec<_> = in_turn.rounds[round].iter().map(|step| vec![*step]).collect();
            in_turn.rounds.splice(round..=round, apart);
            all.push(in_turn);
        }
        for step in 0..steps {
            for call in simpler_calls(&program.rounds[round][step].call) {
                let mut simple = program.clone();
                simple.rounds[round][step].call = call;
                all.push(simple);
            }
            if steps == 1 && program.rounds[round][step].actor != 0 {
                let mut other = program.clone();
                other.rounds[round][step].actor = 0;
                all.push(other);
            }
        }
    }
    if program.threads > 1 {
        all.push(Program { threads: program.threads - 1, ..program.clone() });
    }
    all.retain(|candidate| candidate != program && candidate.is_sound() && is_tame(candidate));
    let mut seen = std::collections::HashSet::new();
    all.retain(|candidate| seen.insert(candidate.clone()));
    all
}

fn simpler_calls(call: &Call) -> Vec<Call> {
    let mut all = Vec::new();
    match *call {
        Call::Map { at, length, rights, flags, offset, slot } => {
            all.extend(lengths(length).map(|length| Call::Map { at, length, rights, flags, offset, slot }));
            all.extend(bits_off(flags, 0x13).map(|flags| Call::Map {
                at,
                length,
                rights,
                flags,
                offset,
                slot,
            }));
            if rights != 3 {
                all.push(Call::Map { at, length, rights: 3, flags, offset, slot });
            }
            if offset != 0 {
                all.push(Call::Map { at, length, rights, flags, offset: 0, slot });
            }
        }
        Call::Unmap { at, length } => all.extend(lengths(length).map(|length| Call::Unmap { at, length })),
        Call::Protect { at, length, rights } => {
            all.extend(lengths(length).map(|length| Call::Protect { at, length, rights }));
            all.extend(bits_off(rights, 0).map(|rights| Call::Protect { at, length, rights }));
        }
        Call::Remap { at, old, new, flags, to, slot } => {
            if old == new {
                all.extend(lengths(old).map(|old| Call::Remap { at, old, new: old, flags, to, slot }));
            }
            all.extend(lengths(old).map(|old| Call::Remap { at, old, new, flags, to, slot }));
            all.extend(lengths(new).map(|new| Call::Remap { at, old, new, flags, to, slot }));
            all.extend(bits_off(flags, 0).map(|flags| Call::Remap { at, old, new, flags, to, slot }));
            if to != Address::Plain(0) {
                all.push(Call::Remap { at, old, new, flags, to: Address::Plain(0), slot });
            }
        }
        Call::Advise { at, length, advice } => {
            all.extend(lengths(length).map(|length| Call::Advise { at, length, advice }));
        }
        Call::Incore { at, length } => all.extend(lengths(length).map(|length| Call::Incore { at, length })),
        _ => {}
    }
    all
}

/// Smaller lengths that make sense.
fn lengths(length: u64) -> impl Iterator<Item = u64> {
    let pages = length / PAGE;
    let shorter = [PAGE, pages / 2 * PAGE, length.saturating_sub(PAGE) & !(PAGE - 1)];
    shorter.into_iter().filter(move |shorter| *shorter > 0 && *shorter < length)
}

/// The number with one bit less, other than those kept.
fn bits_off(number: u64, kept: u64) -> impl Iterator<Item = u64> {
    (0..64).map(|bit| 1 << bit).filter(move |bit| number & !kept & bit != 0).map(move |bit| number & !bit)
}
