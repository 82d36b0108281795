//! A file through which a part's program hands over what it found out. It has no name in any folder, so nothing stays behind.

use std::fs::File;
use std::os::fd::AsRawFd;

use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The file.
pub(super) struct Handover(File);

impl Handover {
    pub(super) fn new() -> Result<Self, Failure> {
        tempfile::tempfile().map(Handover).map_err(|error| Failure::host("make a temporary file", error))
    }

    /// What the program is told after `--json`.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// What the program has written.
    ///
    /// # Errors
    /// A host failure if that is nothing, or nothing of this form.
    pub(super) fn take<T: DeserializeOwned>(self) -> Result<T, Failure> {
        // Opened anew by its path: the program has its own position in it, and so have we.
        let text = std::fs::read(self.path()).map_err(|error| Failure::host("read the result", error))?;
        serde_json::from_slice(&text).map_err(|error| Failure::host("understand the result", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_there_is_read() {
        let handover = Handover::new().unwrap();
        std::fs::write(handover.path(), "[1, 2]").unwrap();
        assert_eq!(handover.take::<Vec<u32>>().unwrap(), [1, 2]);
        assert_eq!(Handover::new().unwrap().take::<Vec<u32>>().unwrap_err().status(), 4);
    }
}
