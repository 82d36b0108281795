//! The files in which a measurement is saved: the result and the page.
//!
//! Both are known to be writable before anything runs. A measurement that was interrupted is whole as a file but not as a
//! measurement: it goes beside an older result instead of replacing it.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::page::{self, Titled};
use crate::result::{Document, ResultFile};

/// The two files, not yet written.
pub(super) struct Outputs {
    json: Place,
    html: Place,
}

struct Place {
    file: ResultFile,
    path: PathBuf,
}

impl Outputs {
    /// Makes sure that both can be written.
    ///
    /// # Errors
    /// A usage failure when one cannot, or both are one.
    pub(super) fn create(json: &Path, html: &Path) -> Result<Self, Failure> {
        if json == html {
            return Err(Failure::usage(format!("--json and --html both name {}", json.display())));
        }
        let place = |path: &Path| Ok(Place { file: ResultFile::create(path)?, path: path.to_path_buf() });
        Ok(Outputs { json: place(json)?, html: place(html)? })
    }

    /// Writes both, and says where they are.
    ///
    /// # Errors
    /// A host failure when the disk refuses.
    pub(super) fn write(self, document: &Document) -> Result<String, Failure> {
        let json = self.json.for_document(document)?;
        let html = self.html.for_document(document)?;
        let name = json.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let page = page::render(&[Titled { name: &name, document }]);
        json.file.write(document)?;
        html.file.write_bytes(page.as_bytes())?;
        let again = format!("./ceasefire report {} makes the page again", json.path.display());
        Ok(format!("The page: {}\nThe result: {} ({again})", html.path.display(), json.path.display()))
    }
}

impl Place {
    /// The place itself, or for an incomplete measurement the one beside an older file.
    fn for_document(self, document: &Document) -> Result<Self, Failure> {
        if document.incomplete.is_none() || !self.path.exists() {
            return Ok(self);
        }
        let path = beside(&self.path);
        Ok(Place { file: ResultFile::create(&path)?, path })
    }
}

/// "bench.json" becomes "bench.incomplete.json".
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".incomplete");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_measurement_does_not_replace_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let (json, html) = (folder.path().join("a.json"), folder.path().join("a.html"));
        let whole = Document::new(Vec::new(), Vec::new());
        let cut = Document { incomplete: Some("interrupted".into()), ..whole.clone() };
        Outputs::create(&json, &html).unwrap().write(&cut).unwrap();
        assert_eq!(crate::result::read(&json).unwrap(), cut);
        Outputs::create(&json, &html).unwrap().write(&whole).unwrap();
        let places = Outputs::create(&json, &html).unwrap().write(&cut).unwrap();
        assert!(places.contains("a.incomplete.json") && places.contains("a.incomplete.html"), "{places}");
        assert_eq!(crate::result::read(&json).unwrap(), whole);
        assert_eq!(crate::result::read(&folder.path().join("a.incomplete.json")).unwrap(), cut);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn one_file_cannot_be_both() {
        let path = Path::new("x");
        assert_eq!(Outputs::create(path, path).err().map(|failure| failure.status()), Some(2));
        assert_eq!(beside(Path::new("r/x")), Path::new("r/x.incomplete"));
    }
}
