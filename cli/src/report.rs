//! `ceasefire report`: the page of results that were saved, side by side when there are several.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::command_line::Report;
use crate::failure::Failure;
use crate::page::{self, Titled};
use crate::predict;
use crate::result::{self, ResultFile};

/// Reads all files, writes the page, and says where it is.
///
/// # Errors
/// A usage failure when a file is no whole result or the page has no place; no page is then replaced.
pub(crate) fn run(options: &Report) -> Result<ExitCode, Failure> {
    if options.files.iter().any(|file| predict::is_prediction(file)) {
        return of_predictions(options);
    }
    let documents = options.files.iter().map(|path| result::read(path)).collect::<Result<Vec<_>, _>>()?;
    let place = options.html.clone().unwrap_or_else(|| beside(&options.files[0]));
    if options.files.iter().any(|file| is_same(file, &place)) {
        return Err(Failure::usage(format!(
            "the page would replace the result {}; name another with --html",
            place.display()
        )));
    }
    let file = ResultFile::create(&place)?;
    let names = names(&options.files);
    let titled: Vec<_> =
        names.iter().zip(&documents).map(|(name, document)| Titled { name, document }).collect();
    file.write_bytes(page::render(&titled).as_bytes())?;
    println!("{}", place.display());
    Ok(ExitCode::SUCCESS)
}

/// The page of one file of predictions: they stand beside nothing, least of all beside measurements.
fn of_predictions(options: &Report) -> Result<ExitCode, Failure> {
    let [file] = &options.files[..] else {
        return Err(Failure::usage(
            "predictions have a page of their own; give one file of predictions and nothing else",
        ));
    };
    let document = predict::read(file)?;
    let place = options.html.clone().unwrap_or_else(|| beside(file));
    if is_same(file, &place) {
        return Err(Failure::usage(format!(
            "the page would replace the predictions {}; name another with --html",
            place.display()
        )));
    }
    ResultFile::create(&place)?.write_bytes(page::render_prediction(&document).as_bytes())?;
    println!("{}", place.display());
    Ok(ExitCode::SUCCESS)
}

/// The place of a page that was given none: the first file's, with the ending `.html`.
fn beside(file: &Path) -> PathBuf {
    file.with_extension("html")
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// What the files go by: their names, or their paths where two files have one name.
fn names(files: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let unique = |path: &PathBuf| files.iter().filter(|other| name(other) == name(path)).count() == 1;
    let shown = |path: &PathBuf| if unique(path) { name(path) } else { path.display().to_string() };
    files.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_go_by_their_paths() {
        let names = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["a/bench.json", "b/other.json"]), ["bench", "other"]);
        assert_eq!(names(&["a/bench.json", "b/bench.json", "c.json"]), ["a/bench.json", "b/bench.json", "c"]);
    }

    #[test]
    fn a_page_stands_beside_its_first_result() {
        assert_eq!(beside(Path::new("results/bench.json")), Path::new("results/bench.html"));
        assert_eq!(beside(Path::new("bench")), Path::new("bench.html"));
    }
}
