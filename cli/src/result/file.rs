//! Results on the disk.
//!
//! A result is written beside its place and renamed into it, so that a file of that name is always a whole result: the older one
//! until the newer is complete. What is read is checked: a file that is cut off or has another form is refused with a sentence.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use super::{Document, SCHEMA};
use crate::failure::Failure;

/// A file that is going to be written: a result, or a page made from some.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl ResultFile {
    /// Makes sure, before anything is run, that the file can be written.
    ///
    /// # Errors
    /// A usage failure when `path` is a folder or its folder takes no files.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::usage(format!("cannot write {}: {why}", path.display()));
        if path.is_dir() {
            return Err(refuse("it is a folder".into()));
        }
        // Renaming a file over a device would take the device away from everybody.
        if path.exists() && !path.is_file() {
            return Err(refuse("it is not a regular file".into()));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(refuse(format!("there is no folder {}", folder.display())));
        }
        let file = NamedTempFile::new_in(folder).map_err(|error| refuse(error.kind().to_string()))?;
        Ok(ResultFile { path: path.to_path_buf(), file })
    }

    /// Writes the document, and puts the file in its place.
    ///
    /// # Errors
    /// A host failure when the disk refuses; the older file is then as it was.
    pub(crate) fn write(self, document: &Document) -> Result<(), Failure> {
        self.write_form(document)
    }

    /// Writes a document of any form, and puts the file in its place.
    ///
    /// # Errors
    /// As [`ResultFile::write`].
    pub(crate) fn write_form(self, document: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_vec_pretty(document)
            .map_err(|error| Failure::host(format!("write {}", self.path.display()), error))?;
        text.push(b'\n');
        self.write_bytes(&text)
    }

    /// Writes these bytes, and puts the file in its place.
    ///
    /// # Errors
    /// As [`ResultFile::write`].
    pub(crate) fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let ResultFile { path, mut file } = self;
        let failed = |error: std::io::Error| Failure::host(format!("write {}", path.display()), error);
        file.write_all(bytes).map_err(failed)?;
        // A temporary file is for its owner only; a result is for whoever may read the folder.
        set_readable(&file).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

fn set_readable(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// A result that was saved.
///
/// # Errors
/// A usage failure of one sentence when the file cannot be read, is not whole, or has another form.
pub(crate) fn read(path: &Path) -> Result<Document, Failure> {
    read_form(path, SCHEMA)
}

/// A document of that form, which was saved.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_form<T: DeserializeOwned>(path: &Path, form: &str) -> Result<T, Failure> {
    let refuse = |why: String| Failure::usage(format!("cannot use {}: {why}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if metadata.is_dir() {
        return Err(refuse("it is a folder".into()));
    }
    // A device may have no end.
    if !(metadata.is_file() || metadata.file_type().is_fifo()) {
        return Err(refuse("it is not a regular file".into()));
    }
    let text = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| {
        refuse(if error.is_eof() {
            "it ends in the middle (was it written to the end?)".into()
        } else {
            format!("it is not JSON ({error})")
        })
    })?;
    match value.get("schema").and_then(serde_json::Value::as_str) {
        Some(schema) if schema == form => {}
        Some(other) => return Err(refuse(format!("its form is '{other}', and this version reads {form}"))),
        None => return Err(refuse(format!("it has no 'schema', so it is no result ({form})"))),
    }
    T::deserialize(value).map_err(|error| refuse(format!("it is not as {form} says: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(path: &Path) -> String {
        read(path).unwrap_err().sentence().unwrap().to_owned()
    }

    #[test]
    fn a_result_replaces_the_older_one_only_when_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        std::fs::write(&path, "older").unwrap();
        drop(ResultFile::create(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
        let document = Document::new(Vec::new(), Vec::new());
        ResultFile::create(&path).unwrap().write(&document).unwrap();
        assert_eq!(read(&path).unwrap(), document);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left behind");
    }

    #[test]
    fn a_place_that_takes_no_file_is_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ResultFile::create(folder.path()).unwrap_err().status(), 2);
        assert_eq!(ResultFile::create(&folder.path().join("no/such")).unwrap_err().status(), 2);
        assert_eq!(ResultFile::create(Path::new("/dev/null")).unwrap_err().status(), 2);
    }

    #[test]
    fn damaged_results_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        assert!(sentence(&path).contains("No such file"));
        assert!(sentence(folder.path()).contains("it is a folder"));
        assert!(sentence(Path::new("/dev/zero")).contains("not a regular file"));
        let whole = serde_json::to_string(&Document::new(Vec::new(), Vec::new())).unwrap();
        for (text, why) in [
            ("", "ends in the middle"),
            (&whole[..whole.len() / 2], "ends in the middle"),
            ("lorem ipsum", "not JSON"),
            ("[1]", "no 'schema'"),
            (r#"{"schema": "other/3"}"#, "'other/3'"),
            (r#"{"schema": "ceasefire.result/1"}"#, "missing field"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(sentence(&path).contains(why), "{text}: {}", sentence(&path));
        }
    }
}
