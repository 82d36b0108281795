//! Builds the copy for each kind of checker. A mutant that the compiler refuses (it has the wrong type, say) is taken out, and the copy is
//! built again.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::rewriting::Rewritten;
use crate::tree::Tree;

/// A build: what `coherence` takes its atomics from, and which programs are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build {
    pub(crate) name: &'static str,
    /// The `--cfg`, if any.
    configuration: Option<&'static str>,
    arguments: &'static [&'static str],
}

/// The builds, the one that is quickest to fail first. The profiles are those of the tests themselves.
pub(crate) const BUILDS: [Build; 4] = [
    Build {
        name: "units",
        configuration: None,
        // Not those whose schedule is the host's.
        arguments: &[
            "test",
            "--no-run",
            "--profile=checkers",
            "--package=coherence",
            "--package=memory",
            "--lib",
            "--test=policy",
            "--test=counts",
            "--test=behaviour",
            "--test=properties",
        ],
    },
    Build {
        name: "loom",
        configuration: Some("loom"),
        arguments: &["test", "--no-run", "--release", "--package=coherence", "--test=loom"],
    },
    Build {
        name: "explorer",
        configuration: Some("simulated"),
        arguments: &["build", "--profile=checkers", "--package=machine", "--bin=probe"],
    },
    Build {
        name: "shuttle",
        configuration: Some("shuttle"),
        arguments: &["test", "--no-run", "--release", "--package=coherence", "--test=shuttle"],
    },
];

/// A program that was built.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The cargo target it comes from: `coherence` (unit tests), `policy`, `loom`, …
    pub(crate) target: String,
    pub(crate) path: PathBuf,
}

/// Builds the copy, without the mutants that the compiler refuses; those are taken out of `tree`. `folder` keeps what is built.
pub(crate) fn build(tree: &mut Tree, build: &Build, folder: &Path) -> Result<Vec<Program>, String> {
    loop {
        let rewritten = tree.write()?;
        let messages = cargo(tree, build, folder)?;
        let errors: Vec<&Value> = messages.iter().filter(|message| is_error(message)).collect();
        if errors.is_empty() {
            return Ok(messages.iter().filter_map(program).collect());
        }
        let refused: BTreeSet<usize> =
            errors.iter().filter_map(|error| refused_by(error, &rewritten)).collect();
        if refused.is_empty() {
            let rendered = errors.iter().filter_map(|error| error["message"]["rendered"].as_str());
            return Err(format!(
                "the copy cannot be built for {}:\n{}",
                build.name,
                rendered.collect::<String>()
            ));
        }
        tree.refuse(&refused)?;
    }
}

fn cargo(tree: &Tree, build: &Build, folder: &Path) -> Result<Vec<Value>, String> {
    let flags = build.configuration.map_or(String::new(), |name| format!("--cfg {name}"));
    let output = Command::new("cargo")
        .args(build.arguments)
        .args(["--locked", "--quiet", "--message-format=json"])
        .current_dir(&tree.copy)
        // A folder of its own: to cargo the copy and the project are the same crates, and it would take one for the other.
        .env("CARGO_TARGET_DIR", folder.join(build.name))
        .env("RUSTFLAGS", flags)
        // For the selector alone (`tree.rs`): it tells run time from the compiler's own evaluation.
        .env("RUSTC_BOOTSTRAP", "coherence")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() && !messages.iter().any(is_error) {
        return Err(format!(
            "cargo cannot build for {}:\n{}",
            build.name,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(messages)
}

fn is_error(message: &Value) -> bool {
    message["reason"] == "compiler-message" && message["message"]["level"] == "error"
        // "aborting due to …" has no place.
        && message["message"]["spans"].as_array().is_some_and(|spans| !spans.is_empty())
}

/// The mutant that an error is about: the smallest of those whose own code one of the error's places is in, or else of those whose
/// place it is in.
fn refused_by(error: &Value, rewritten: &[(String, Rewritten)]) -> Option<usize> {
    let spans = error["message"]["spans"].as_array()?;
    let mut candidates: Vec<(bool, usize, usize)> = Vec::new();
    for span in spans {
        let is_here = |file: &str| {
            span["file_name"].as_str().is_some_and(|name| name.ends_with(&format!("coherence/src/{file}")))
        };
        let Some((_, file)) = rewritten.iter().find(|(file, _)| is_here(file)) else {
            continue;
        };
        let at = span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize;
        let is_in = |range: &Range<usize>| range.start <= at.start && at.end <= range.end;
        for place in file.places.iter().filter(|place| is_in(&place.whole)) {
            candidates.push((!is_in(&place.replacement), place.whole.len(), place.number));
        }
    }
    candidates.into_iter().min().map(|(_, _, number)| number)
}

fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    Some(Program { target: message["target"]["name"].as_str()?.to_owned(), path })
}
