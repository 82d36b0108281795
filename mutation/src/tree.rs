//! A copy of the project in which `coherence` has all its mutants in it. Everything else there is a link to the project itself.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checker::keep;
use crate::mutant::Mutant;
use crate::rewriting::{Rewritten, rewrite};
use crate::search::mutants_of;

/// The variable that chooses the mutant when a checker starts.
pub(crate) const CHOICE: &str = "CEASEFIRE_MUTANT";

/// Files of `coherence/src` without mutants, each with the reason.
const LEFT_OUT: [(&str, &str); 5] = [
    ("fault.rs", "it names the ways to break the code on purpose"),
    ("ledger.rs", "it counts, and decides nothing"),
    ("names.rs", "it makes names for people"),
    ("mechanism.rs", "it reads and writes switches, which the measurements are for"),
    ("sync.rs", "its orderings are of counters and of what only one CPU touches"),
];

/// The choice of no mutant, by which a checker writes down which ones it comes by.
pub(crate) const NOTING: &str = "noting";

/// The file to which it does.
pub(crate) const NOTES: &str = "CEASEFIRE_MUTANT_NOTES";

/// What asks which mutant was chosen. A constant that is evaluated by the compiler is always the sound one.
///
/// A question that a mutant answers always with yes, or always with no, is worth a note only where the true answer is another.
const SELECTOR: &str = "\
extern crate std;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const fn is(number: usize) -> bool {
    core::intrinsics::const_eval_select((number,), never, is_chosen_and_noted)
}

pub(crate) const fn answers(number: usize) -> bool {
    core::intrinsics::const_eval_select((number,), never, is_chosen)
}

pub(crate) const fn truth(number: usize, answer: bool, truth: bool) -> bool {
    core::intrinsics::const_eval_select((number, answer, truth), truth_alone, truth_noted)
}

const fn never(_: usize) -> bool {
    false
}

const fn truth_alone(_: usize, _: bool, truth: bool) -> bool {
    truth
}

const NOTING: usize = usize::MAX;

static CHOSEN: LazyLock<usize> = LazyLock::new(|| match std::env::var(\"CEASEFIRE_MUTANT\") {
    Ok(text) if text == \"noting\" => NOTING,
    Ok(text) => text.parse().unwrap_or(0),
    Err(_) => 0,
});

fn is_chosen(number: usize) -> bool {
    number == *CHOSEN
}

fn is_chosen_and_noted(number: usize) -> bool {
    if *CHOSEN == NOTING {
        note(number);
    }
    number == *CHOSEN
}

fn truth_noted(number: usize, answer: bool, truth: bool) -> bool {
    if truth != answer && *CHOSEN == NOTING {
        note(number);
    }
    truth
}

fn note(number: usize) {
    static NOTED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    static FILE: LazyLock<std::fs::File> = LazyLock::new(|| {
        let name = std::env::var_os(\"CEASEFIRE_MUTANT_NOTES\").expect(\"the notes have a file\");
        std::fs::File::options().append(true).create(true).open(name).expect(\"the notes can be written\")
    });
    if !NOTED[number].swap(true, Ordering::Relaxed) {
        let line = std::format!(\"{number}\\n\");
        (&*FILE).write_all(line.as_bytes()).expect(\"the notes can be written\");
    }
}
";

/// What the compiler must allow for the selector, on one line so that lines keep their numbers.
const PREAMBLE: &str =
    "#![feature(core_intrinsics, const_eval_select)] #![allow(internal_features, warnings)] ";

/// The project, its copy, and the mutants.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    pub(crate) copy: PathBuf,
    /// Name and text of each file with mutants.
    sources: Vec<(String, String)>,
    pub(crate) mutants: Vec<Mutant>,
    /// Where it is written down which mutants of which sources the compiler refuses.
    refusals: PathBuf,
}

/// Mutants that the compiler refused, and the digest of the sources in which it did.
#[derive(Default, Serialize, Deserialize)]
struct Refusals {
    sources: u64,
    numbers: BTreeSet<usize>,
}

impl Tree {
    /// Reads the project at `root` and finds its mutants. The copy is to be in `folder`.
    pub(crate) fn read(root: &Path, folder: &Path) -> Result<Self, String> {
        let mut files: Vec<_> = fs::read_dir(root.join("coherence/src"))
            .map_err(|error| format!("cannot read coherence/src: {error}"))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".rs") && !LEFT_OUT.iter().any(|(file, _)| file == name))
            .collect();
        files.sort();
        let mut sources = Vec::new();
        let mut mutants = Vec::new();
        for file in files {
            let text = read(&root.join("coherence/src").join(&file))?;
            mutants.extend(mutants_of(&file, &text)?);
            sources.push((file, text));
        }
        number(&mut mutants);
        let refusals = folder.join("refused.json");
        let known: Refusals = fs::read(&refusals)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        if known.sources == digest(&sources) {
            mutants.retain(|mutant| !known.numbers.contains(&mutant.number));
        }
        Ok(Tree { root: root.to_path_buf(), copy: folder.join("tree"), sources, mutants, refusals })
    }

    /// Takes mutants out that the compiler refuses, here and when the same sources are read again: then all is built already.
    pub(crate) fn refuse(&mut self, refused: &BTreeSet<usize>) -> Result<(), String> {
        self.mutants.retain(|mutant| !refused.contains(&mutant.number));
        let sources = digest(&self.sources);
        let known: Option<Refusals> =
            fs::read(&self.refusals).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let before = known.filter(|known| known.sources == sources).map(|known| known.numbers);
        let numbers = refused.iter().copied().chain(before.unwrap_or_default()).collect();
        keep(&self.refusals, &Refusals { sources, numbers })
    }

    /// Makes the copy, or brings it up to date. Returns what became of each file.
    pub(crate) fn write(&self) -> Result<Vec<(String, Rewritten)>, String> {
        let source = self.copy.join("coherence/src");
        fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
        link_all(&self.root, &self.copy, &["coherence", "target", ".git", "Cargo.toml", "Cargo.lock"])?;
        link_all(&self.root.join("coherence"), &self.copy.join("coherence"), &["src"])?;
        for file in ["Cargo.toml", "Cargo.lock"] {
            replace(&self.copy.join(file), &read(&self.root.join(file))?)?;
        }
        for (file, _) in LEFT_OUT {
            replace(&source.join(file), &read(&self.root.join("coherence/src").join(file))?)?;
        }
        replace(&source.join("mutant.rs"), SELECTOR)?;
        let mut rewritten = Vec::new();
        for (file, text) in &self.sources {
            let of_file: Vec<_> = self.mutants.iter().filter(|mutant| mutant.file == *file).collect();
            let mut result = rewrite(text, &of_file);
            if file == "lib.rs" {
                result.text.insert_str(0, PREAMBLE);
                result.text.push_str("mod mutant;\n");
            }
            replace(&source.join(file), &result.text)?;
            rewritten.push((file.clone(), result));
        }
        Ok(rewritten)
    }
}

fn digest(sources: &[(String, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sources.hash(&mut hasher);
    hasher.finish()
}

/// Gives numbers, and tells apart those that would have the same key.
fn number(mutants: &mut [Mutant]) {
    let mut seen = std::collections::HashMap::new();
    for (index, mutant) in mutants.iter_mut().enumerate() {
        mutant.number = index + 1;
        let count = seen.entry(mutant.key.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            mutant.key += &format!(" (number {count})");
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Writes a file if it is not so already: cargo builds what is newer.
fn replace(file: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(file).is_ok_and(|before| before == text) {
        return Ok(());
    }
    fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn link_all(from: &Path, to: &Path, except: &[&str]) -> Result<(), String> {
    let entries = fs::read_dir(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let link = to.join(&name);
        if except.iter().any(|except| name == *except) {
            continue;
        }
        // The folder may have been made for a project elsewhere, and copied.
        match fs::read_link(&link) {
            Ok(target) if target == entry.path() => continue,
            Ok(_) => {
                fs::remove_file(&link)
                    .map_err(|error| format!("cannot remove {}: {error}", link.display()))?;
            }
            Err(_) => {}
        }
        symlink(entry.path(), &link).map_err(|error| format!("cannot link {}: {error}", link.display()))?;
    }
    Ok(())
}
