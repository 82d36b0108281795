//! Makes a program small for as long as it differs in the same way on the same system.

use std::path::Path;
use std::time::Instant;

use fuzz::{Program, Verdict, simpler};

use super::campaign::{classify, verdict};
use super::systems::Executor;
use crate::failure::Failure;

/// At most so many packs are run for one program.
const MOST_PACKS: usize = 6;
/// A difference of a race shows once in a while: each candidate runs so often.
const COPIES: usize = 4;
/// Candidates in a pack.
const MOST_CANDIDATES: usize = 150;

/// The smallest program found that still differs so.
pub(super) fn shrink(
    program: &Program,
    executor: &Executor,
    interpreter: &Path,
    class: &str,
    cpus: u32,
    deadline: Option<Instant>,
) -> Result<Program, Failure> {
    let mut smallest = program.clone();
    for _ in 0..MOST_PACKS {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            break;
        }
        let mut candidates = simpler(&smallest);
        candidates.truncate(MOST_CANDIDATES);
        let copies = if smallest.races() { COPIES } else { 1 };
        let mut pack = Vec::new();
        for (index, candidate) in candidates.iter().enumerate() {
            pack.extend(
                (0..copies).map(|copy| Program { name: format!("{index}.{copy}"), ..candidate.clone() }),
            );
        }
        let run = executor.run(interpreter, &pack, cpus, 1)?;
        let differs = |program: &&Program| {
            run.traces.get(&program.name).into_iter().flatten().any(|trace| match verdict(program, trace) {
                Verdict::Wrong(difference) => classify(program, executor.name(), &difference).0 == class,
                _ => false,
            })
        };
        // The smallest of those that still differ: several simplifications at once where the first is a large one.
        let next = pack.iter().filter(differs).min_by_key(|candidate| size(candidate));
        match next {
            Some(next) if size(next) < size(&smallest) => {
                smallest = Program { name: smallest.name.clone(), ..next.clone() };
            }
            _ => break,
        }
    }
    Ok(smallest)
}

/// What is smaller is simpler: rounds, then steps, then the text.
fn size(program: &Program) -> (usize, usize, usize) {
    let racing = program.rounds.iter().filter(|round| round.len() > 1).count();
    (program.steps().count() + racing, usize::from(program.threads), program.to_string().len())
}
