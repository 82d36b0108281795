//! The mutants of `coherence`: each fence, ordering, row and step is taken away or weakened in turn, and a checker must notice.
//! `mutation/` is the program; its list of equivalents says which changes do nothing wrong.

use std::process::Stdio;

use protocol::mutants::{Kind, MutantResult, Mutants, Verdict as Fate};

use super::document::{Document, Level};
use super::handover::Handover;
use super::part::{Asked, Part, Verdict};
use super::start;
use crate::failure::Failure;
use crate::project;

/// `mutation/`.
pub(super) struct Mutation;

impl Part for Mutation {
    fn name(&self) -> &'static str {
        "mutants"
    }

    fn is_run_by(&self, level: Level) -> bool {
        level != Level::Quick
    }

    fn takes_names(&self) -> bool {
        true
    }

    /// Its names are files, functions and lines, and no scenario's.
    fn is_meant_by_names(&self) -> bool {
        false
    }

    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure> {
        println!("mutants of coherence, each shown to the checkers until one notices");
        let handover = Handover::new()?;
        let mut command = project::cargo();
        command.args(["run", "--locked", "--quiet", "--package=mutation", "--", "--json", &handover.path()]);
        command.arg(format!("--jobs={}", asked.jobs));
        command.args((asked.level == Level::Deep).then_some("--deep"));
        command.args(asked.shard.map(|shard| format!("--shard={shard}")));
        command.arg("--").args(&asked.names).stdin(Stdio::null());
        start(command)?;
        document.mutants = Some(handover.take()?);
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        let mut joined = Mutants::default();
        for (place, shard) in shards.iter().enumerate() {
            let theirs =
                shard.mutants.clone().ok_or(format!("the mutants of shard {} are missing", place + 1))?;
            joined = joined.join(theirs)?;
        }
        whole.mutants = Some(joined);
        Ok(())
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let mutants = document.mutants.as_ref()?;
        let complaints = match mutants.complaints.len() {
            0 => String::new(),
            count => format!(", {count} complaints"),
        };
        Some(Verdict {
            is_sound: mutants.is_sound(),
            counts: format!(
                "{} mutants, {} killed, {} equivalent, {} survived, {} undecided{complaints}",
                mutants.total,
                mutants.killed,
                mutants.equivalent,
                mutants.survivors.len(),
                mutants.undecided
            ),
            seconds: mutants.seconds,
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let mutants = document.mutants.as_ref()?;
        let mut text = String::from(
            "| mutants | | killed | by a finding that names the promise | equivalent | survived |\n|---|---|---|---|---|---|\n",
        );
        for kind in Kind::ALL {
            let of_kind: Vec<_> = mutants.mutants.iter().filter(|mutant| mutant.kind == kind).collect();
            let count = |is: fn(&MutantResult) -> bool| of_kind.iter().filter(|mutant| is(mutant)).count();
            text += &format!(
                "| {kind} | {} | {} | {} | {} | {} |\n",
                of_kind.len(),
                count(|mutant| mutant.verdict == Fate::Killed),
                count(|mutant| mutant.promise.is_some()),
                count(|mutant| mutant.verdict == Fate::Equivalent),
                count(|mutant| mutant.verdict == Fate::Survived),
            );
        }
        mutants.survivors.iter().for_each(|survivor| text += &format!("\n- **survived**: {survivor}"));
        mutants.complaints.iter().for_each(|complaint| text += &format!("\n- {complaint}"));
        Some(text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(number: usize, verdict: Fate) -> Mutants {
        let text = |text: &str| text.to_owned();
        let result = MutantResult {
            number,
            file: text("switch.rs"),
            line: 210,
            kind: Kind::Fence,
            mutant: format!("switch.rs join: fence {number} left out"),
            verdict,
            checker: None,
            promise: None,
            finding: None,
            because: None,
            seen_by: 1,
            seconds: 0.5,
        };
        Mutants::new(vec![result], Vec::new())
    }

    #[test]
    fn shards_are_joined_and_none_is_counted_twice() {
        let joined = mutants(2, Fate::Killed).join(mutants(1, Fate::Survived)).unwrap();
        assert_eq!((joined.total, joined.killed, joined.survivors.len()), (2, 1, 1));
        assert_eq!(joined.mutants[0].number, 1);
        assert!(!joined.is_sound());
        let twice = mutants(1, Fate::Killed).join(mutants(1, Fate::Killed));
        assert_eq!(twice.unwrap_err(), "mutant 1 is there twice");
    }
}
