//! Takes the lines of `coherence` away one by one, and sees whether the checkers notice.
//!
//! Every fence is left out and weakened, every atomic ordering is weakened, every row and every condition of the decision tables
//! is changed, every step is left out: each such change is a *mutant*. All of them are built at once into a copy of the project, each
//! behind a question (`rewriting.rs`), once for every kind of checker; then each mutant is a process of the checker with the mutant's number in
//! its environment, ended at the first finding. Whoever survives is either a line that nothing shows to be needed, or a change
//! that changes nothing; the second kind is argued for in `equivalents.toml`. `docs/design/0012-mutation.md` has the reasons.

mod building;
mod checker;
mod equivalents;
mod faults;
mod mutant;
mod operators;
mod report;
mod rewriting;
mod search;
mod sound;
mod statement;
mod tree;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use building::{BUILDS, Build};
use equivalents::Equivalents;
use mutant::Mutant;
use protocol::mutants::{Kind, Mutants, Verdict};
use sound::Sound;
use tree::Tree;
use trial::Trial;

/// Takes the lines of `coherence` away one by one, and sees whether the checkers notice.
#[derive(Debug, Parser)]
#[command(name = "mutation")]
struct Arguments {
    /// Only mutants with this number, or this in their name: a file, a function, a part of the line.
    words: Vec<String>,
    /// Only the mutants whose number leaves I - 1 when divided by N.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// How many mutants to try at once.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Show them to shuttle's histories too, and those that are argued to do nothing wrong to all checkers.
    #[arg(long)]
    deep: bool,
    /// Only fences of switch.rs and shootdown.rs left out, before loom's models, which must name a promise.
    #[arg(long)]
    fences: bool,
    /// Begin no checker after so many minutes. What is undecided then fails the run.
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Show the mutants, those among them that the compiler will refuse, and try none.
    #[arg(long)]
    list: bool,
    /// Write the result to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables of docs/results/mutants.md.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed =
        text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    match parsed {
        Some((index, count)) if (1..=count).contains(&index) => Ok((index, count)),
        _ => Err("it is I/N, with I from 1 to N".into()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("ceasefire: {sentence}");
            ExitCode::from(2)
        }
    }
}

/// Says whether all is as it should be.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the project has no folder")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let folder = root.join(target).join("mutants");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut tree = Tree::read(root, &folder)?;
    let equivalents = Equivalents::read(&root.join("mutation/equivalents.toml"))?;

    if arguments.list {
        let chosen = choose(&tree.mutants, arguments)?;
        chosen.iter().for_each(|mutant| println!("{} line {} {}", mutant.number, mutant.line, mutant.key));
        return Ok(true);
    }
    let mut checkers = Vec::new();
    for build in BUILDS.iter().filter(|build| build.is_wanted(arguments)) {
        eprintln!("building all mutants at once for {}", build.name);
        let programs = building::build(&mut tree, build, &folder)?;
        checkers.extend(checker::checkers_of(build, &programs)?);
    }
    let chosen = choose(&tree.mutants, arguments)?;
    let trial = Trial {
        checkers: &checkers,
        sound: &Sound::read(&folder, &checkers),
        equivalents: &equivalents,
        jobs: arguments.jobs.max(1),
        deep: arguments.deep,
        end: arguments.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes)),
        folder: &folder,
    };
    let results = trial.run(&chosen)?;
    let mut complaints: Vec<String> = equivalents
        .without_mutant(&tree.mutants)
        .map(|key| format!("equivalents.toml: there is no mutant '{key}'"))
        .collect();
    for result in &results {
        let is_argued_away = tree
            .mutants
            .iter()
            .any(|mutant| mutant.number == result.number && equivalents.argument(mutant).is_some());
        if result.verdict == Verdict::Killed && is_argued_away {
            complaints.push(format!(
                "equivalents.toml: '{}' is no longer equivalent, it was killed",
                result.mutant
            ));
        }
        if arguments.fences && result.promise.is_none() {
            complaints.push(format!("no finding names a promise: {}", result.mutant));
        }
    }
    let mutants = Mutants::new(results, complaints);
    print!("{}", report::summary(&mutants));
    save(arguments, &mutants)?;
    Ok(mutants.is_sound())
}

/// The mutants that are asked for.
fn choose<'a>(mutants: &'a [Mutant], arguments: &Arguments) -> Result<Vec<&'a Mutant>, String> {
    let is_named = |mutant: &&Mutant| {
        arguments.words.is_empty() || arguments.words.iter().any(|word| mutant.is_named_by(word))
    };
    let is_in_shard =
        |mutant: &&Mutant| arguments.shard.is_none_or(|(index, count)| mutant.number % count == index - 1);
    let is_fence = |mutant: &&Mutant| {
        let is_handshake = ["switch.rs", "shootdown.rs"].contains(&mutant.file.as_str());
        !arguments.fences || is_handshake && mutant.kind == Kind::Fence && mutant.key.ends_with("left out")
    };
    let chosen: Vec<_> = mutants.iter().filter(is_named).filter(is_fence).collect();
    if chosen.is_empty() {
        return Err(format!("no mutant has '{}' in its name", arguments.words.join("' or '")));
    }
    Ok(chosen.into_iter().filter(is_in_shard).collect())
}

impl Build {
    /// For fences loom is enough. Histories at random take long, and notice little that the others do not.
    fn is_wanted(&self, arguments: &Arguments) -> bool {
        match self.name {
            "loom" => true,
            "shuttle" => arguments.deep,
            _ => !arguments.fences,
        }
    }
}

fn save(arguments: &Arguments, mutants: &Mutants) -> Result<(), String> {
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
    };
    if let Some(file) = &arguments.json {
        write(file, serde_json::to_string_pretty(mutants).map_err(|error| error.to_string())?)?;
    }
    arguments.table.as_ref().map_or(Ok(()), |file| write(file, report::page(mutants)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(shard("1/1"), Ok((1, 1)));
        assert_eq!(shard("2/3"), Ok((2, 3)));
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
