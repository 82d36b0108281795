//! The disks of a test in the guest: files of the host that are filled before it, and looked at afterwards.
//!
//! Each 8 bytes say where they lie (their offset divided by 8, in the low 40 bits) and in which round they were written (above), so
//! that whatever is found in the wrong place says where it belongs. Disks begin in round 0; `workloads/disks` writes the others.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Deserialize;

use crate::failure::Failure;
use crate::qemu::{Access, Disk};

/// A disk as a test asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    mebibytes: u64,
    /// Bytes more, so that the last page is not whole.
    #[serde(default)]
    beyond: u64,
    #[serde(default)]
    read_only: bool,
    /// Nothing is written into it: all of it is a hole, and reads as zeroes.
    #[serde(default)]
    empty: bool,
    /// The round that all of it must be in afterwards; anything may be there if it is left out.
    round: Option<u64>,
}

/// The disks of one boot, as long as it runs.
pub(super) struct Disks {
    wanted: Vec<Wanted>,
    folder: tempfile::TempDir,
}

fn content(offset: u64, round: u64) -> u64 {
    (offset / 8) | (round << 40)
}

impl Wanted {
    fn bytes(&self) -> u64 {
        (self.mebibytes << 20) + self.beyond
    }
}

impl Disks {
    /// Makes and fills them.
    ///
    /// # Errors
    /// A host failure when the files cannot be written.
    pub(super) fn make(wanted: &[Wanted]) -> Result<Self, Failure> {
        let failed = |error| Failure::host("make the disks of a test", error);
        let folder = tempfile::Builder::new().prefix("ceasefire-disks-").tempdir().map_err(failed)?;
        let disks = Self { wanted: wanted.to_vec(), folder };
        for (number, one) in disks.wanted.iter().enumerate() {
            let bytes = one.bytes();
            let file = File::create(disks.place(number)).map_err(failed)?;
            if one.empty {
                file.set_len(bytes).map_err(failed)?;
                continue;
            }
            let mut file = BufWriter::new(file);
            for offset in (0..bytes).step_by(8) {
                file.write_all(&content(offset, 0).to_le_bytes()).map_err(failed)?;
            }
            file.flush().map_err(failed)?;
        }
        Ok(disks)
    }

    fn place(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(number.to_string())
    }

    /// The same for the emulator.
    pub(super) fn for_guest(&self) -> impl Iterator<Item = Disk> {
        self.wanted.iter().enumerate().map(|(number, one)| Disk {
            image: self.place(number),
            access: if one.read_only { Access::ReadOnly } else { Access::Writable },
        })
    }

    /// What is wrong with them after the run.
    pub(super) fn differences(&self) -> Vec<String> {
        let look = |(number, one): (usize, &Wanted)| {
            difference(&self.place(number), one).map(|why| format!("disk {number}: {why}"))
        };
        self.wanted.iter().enumerate().filter_map(look).collect()
    }
}

fn difference(image: &Path, wanted: &Wanted) -> Option<String> {
    let (size, round) = (wanted.bytes(), wanted.round?);
    let bytes = match fs::read(image) {
        Ok(bytes) => bytes,
        Err(error) => return Some(error.to_string()),
    };
    if bytes.len() as u64 != size {
        return Some(format!("it has {} bytes now instead of {size}", bytes.len()));
    }
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let is_wrong = |(index, word): &(usize, u64)| *word != content(*index as u64 * 8, round);
    let wrong: Vec<(usize, u64)> = words.enumerate().filter(is_wrong).collect();
    let (index, word) = wrong.first()?;
    let (found, place) = (word >> 40, (word & ((1 << 40) - 1)) * 8);
    Some(format!(
        "{} words are wrong; the first, at byte {}, is of round {found} and byte {place} instead of round {round}",
        wrong.len(),
        index * 8
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_was_not_written_is_found() {
        let wanted = Wanted { mebibytes: 1, beyond: 512, read_only: false, empty: false, round: Some(0) };
        let disks = Disks::make(std::slice::from_ref(&wanted)).unwrap();
        assert_eq!(disks.differences(), [""; 0]);
        let mut bytes = fs::read(disks.place(0)).unwrap();
        assert_eq!(bytes.len(), (1 << 20) + 512);
        bytes[4096..4104].copy_from_slice(&content(8192, 3).to_le_bytes());
        fs::write(disks.place(0), &bytes).unwrap();
        let [why] = &disks.differences()[..] else { panic!("one difference") };
        assert_eq!(
            why,
            "disk 0: 1 words are wrong; the first, at byte 4096, is of round 3 and byte 8192 instead of round 0"
        );
        fs::write(disks.place(0), &bytes[..4096]).unwrap();
        assert!(disks.differences()[0].contains("it has 4096 bytes now"));
        let next =
            Disks { wanted: vec![Wanted { round: Some(1), ..wanted.clone() }], ..Disks::make(&[]).unwrap() };
        assert!(next.differences()[0].contains("No such file"));
        let any = Disks { wanted: vec![Wanted { round: None, ..wanted }], ..next };
        assert_eq!(any.differences(), [""; 0], "nobody looks what is in it");
    }

    #[test]
    fn an_empty_disk_is_a_hole() {
        let wanted = Wanted { mebibytes: 1 << 14, beyond: 0, read_only: false, empty: true, round: None };
        let disks = Disks::make(&[wanted]).unwrap();
        assert_eq!(fs::metadata(disks.place(0)).unwrap().len(), 1 << 34);
    }
}
