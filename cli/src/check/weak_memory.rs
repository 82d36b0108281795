//! loom's models: every weakly ordered execution of `coherence`'s races, and each fault that only weak memory shows. They see what
//! x86's memory order hides from the explorer.

use std::io::{BufRead, BufReader, Read, Seek};
use std::process::Stdio;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::document::{Document, Level};
use super::part::{Asked, Part, Verdict};
use crate::failure::Failure;
use crate::test::model;

/// `coherence/tests/loom`.
pub(super) struct Loom;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WeakMemory {
    pub(super) models: Vec<Model>,
    /// By the clock on the wall, with what had to be built.
    pub(super) seconds: f64,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) passed: bool,
}

impl Model {
    /// From a line of Rust's test harness, such as "test scenarios::munmap ... ok".
    fn from_line(line: &str) -> Option<Self> {
        let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let passed = matches!(word, "ok" | "FAILED").then_some(word == "ok")?;
        Some(Model { name: name.to_owned(), passed })
    }
}

impl Part for Loom {
    fn name(&self) -> &'static str {
        "loom"
    }

    fn is_run_by(&self, _: Level) -> bool {
        true
    }

    fn is_sharded(&self) -> bool {
        false
    }

    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure> {
        println!("loom's model of coherence under weak memory");
        let started = Instant::now();
        let mut command = model("loom");
        command.args(["--", &format!("--test-threads={}", asked.jobs)]);
        // What cargo says while it builds matters only if that fails.
        let messages = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file)));
        let (for_cargo, mut messages) =
            messages.map_err(|error| Failure::host("make a temporary file", error))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(for_cargo);
        let mut child = command.spawn().map_err(|error| Failure::host("start cargo", error))?;
        let output: Box<dyn Read> = match child.stdout.take() {
            Some(output) => Box::new(output),
            None => Box::new(std::io::empty()),
        };
        let (mut models, mut others) = (Vec::new(), String::new());
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match Model::from_line(&line) {
                Some(model) => {
                    println!("{:<74} {}", model.name, if model.passed { "ok" } else { "FAILED" });
                    models.push(model);
                }
                None => others = others + &line + "\n",
            }
        }
        let status = child.wait().map_err(|error| Failure::host("wait for cargo", error))?;
        if !status.success() {
            print!("{others}");
            let mut said = String::new();
            let _ = messages.rewind().and_then(|()| messages.read_to_string(&mut said));
            eprint!("{said}");
        }
        if models.is_empty() || status.success() != models.iter().all(|model| model.passed) {
            return Err(Failure::host("run loom's models", status));
        }
        models.sort_by(|one, other| one.name.cmp(&other.name));
        document.loom = Some(WeakMemory { models, seconds: started.elapsed().as_secs_f64() });
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        whole.loom = shards.iter().find_map(|shard| shard.loom.clone());
        whole.loom.is_some().then_some(()).ok_or_else(|| "loom's models are missing".into())
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let loom = document.loom.as_ref()?;
        let failed = loom.models.iter().filter(|model| !model.passed).count();
        Some(Verdict {
            is_sound: failed == 0 && !loom.models.is_empty(),
            counts: format!("{} models, {failed} failed", loom.models.len()),
            seconds: loom.seconds,
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let loom = document.loom.as_ref()?;
        let failed: Vec<_> = loom.models.iter().filter(|model| !model.passed).collect();
        let failed: String = failed.iter().map(|model| format!("\n- {} **failed**", model.name)).collect();
        Some(format!(
            "loom: {} in {:.0} s.{failed}\n",
            self.verdict(document).map_or_else(String::new, |verdict| verdict.counts),
            loom.seconds
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_harness_is_a_model() {
        let model = |passed| Some(Model { name: "scenarios::munmap".into(), passed });
        assert_eq!(Model::from_line("test scenarios::munmap ... ok"), model(true));
        assert_eq!(Model::from_line("test scenarios::munmap ... FAILED"), model(false));
        for other in ["running 11 tests", "test result: ok. 11 passed", "test x ... ignored", ""] {
            assert_eq!(Model::from_line(other), None, "{other}");
        }
    }
}
