//! The disks of a guest: those that the command line names, `--disk FILE[:ro]`, and the one that a workload may ask for.
//!
//! A named file is looked at before anything is started, so that a mistake is one sentence and not QEMU's.
//!
//! The disk that a workload's `job.toml` asks for: `disk = { total = "1280M" }` stands for a read-only disk of this size, each page of which has
//! its own number in its first and in its last eight bytes, so that a program sees if it reads another one.
//!
//! It is made once for each size, beside the built workloads. It gets its name when it is complete, and is only ever read: several guests
//! may use it at once.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::project;
use crate::qemu::{Access, Board, Disk};
use crate::size::Memory;

/// The disk of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbered {
    /// Its size, as "1280M".
    total: String,
}

/// Bytes that have one number.
const PAGE: usize = 4096;

impl Numbered {
    /// The disk, made if it is not there yet.
    ///
    /// # Errors
    /// A usage failure when `total` is no size; a host failure when the disk cannot be made.
    pub(crate) fn disk(&self) -> Result<Disk, Failure> {
        let mebibytes = Memory::parse(&self.total).map_err(Failure::Usage)?.mebibytes;
        let folder = project::target_folder().join("disks");
        let image = folder.join(format!("numbered-{mebibytes}M"));
        if !image.exists() {
            make(&folder, &image, mebibytes << 20)
                .map_err(|error| Failure::host("make a disk for the guest", error))?;
        }
        Ok(Disk { image, access: Access::ReadOnly })
    }
}

fn make(folder: &Path, image: &Path, bytes: u64) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let unfinished = NamedTempFile::new_in(folder)?;
    let mut file = BufWriter::with_capacity(1 << 20, unfinished.as_file());
    let mut page = [0; PAGE];
    for number in 0..bytes / PAGE as u64 {
        page[..8].copy_from_slice(&number.to_le_bytes());
        page[PAGE - 8..].copy_from_slice(&number.to_le_bytes());
        file.write_all(&page)?;
    }
    file.flush()?;
    drop(file);
    unfinished.persist(image)?;
    Ok(())
}

/// Disks are read and written in these units.
const SECTOR: u64 = 512;

/// The disks on this board that `--disk` names, as `FILE` or `FILE:ro`.
///
/// # Errors
/// A usage failure about the first that cannot be one.
pub(crate) fn named(texts: &[OsString], board: Board) -> Result<Vec<Disk>, Failure> {
    let most = board.most_disks();
    if texts.len() > most {
        let given = texts.len();
        return Err(Failure::usage(format!("a guest has at most {most} disks on {board}, not {given}")));
    }
    let disks = texts.iter().map(|text| named_one(text)).collect::<Result<Vec<_>, _>>()?;
    // The file itself, whatever its names: hard links, symbolic links, several nodes of one block device.
    let place = |disk: &Disk| {
        let found = fs::metadata(&disk.image).ok()?;
        let is_device = found.file_type().is_block_device();
        Some(if is_device { (0, found.rdev()) } else { (found.dev(), found.ino()) })
    };
    for (index, disk) in disks.iter().enumerate() {
        let same = disks[..index].iter().find(|other| place(other).is_some() && place(other) == place(disk));
        if same.is_some_and(|other| disk.access == Access::Writable || other.access == Access::Writable) {
            let image = disk.image.display();
            return Err(Failure::usage(format!(
                "--disk {image} is given twice: only ':ro' ones may share a file"
            )));
        }
    }
    Ok(disks)
}

fn named_one(text: &OsStr) -> Result<Disk, Failure> {
    let bytes = text.as_bytes();
    let (path, access) = match bytes.strip_suffix(b":ro") {
        Some(path) => (path, Access::ReadOnly),
        None => (bytes, Access::Writable),
    };
    let image = PathBuf::from(OsStr::from_bytes(path));
    let refused = |why: String| Failure::usage(format!("cannot use {} as a disk: {why}", image.display()));
    if path.is_empty() {
        return Err(Failure::usage("--disk takes FILE or FILE:ro"));
    }
    let failed = |error: io::Error| {
        let mistaken =
            path.iter().rposition(|byte| *byte == b':').filter(|_| error.kind() == io::ErrorKind::NotFound);
        match mistaken {
            Some(colon) if Path::new(OsStr::from_bytes(&path[..colon])).exists() => {
                let after = OsStr::from_bytes(&path[colon + 1..]).display().to_string();
                refused(format!("after a file's name there may only be ':ro', not ':{after}'"))
            }
            _ => refused(match error.kind() {
                io::ErrorKind::NotFound => "there is no such file".into(),
                io::ErrorKind::NotADirectory => "a part of its path is no folder".into(),
                io::ErrorKind::PermissionDenied => "reading it is not permitted".into(),
                _ => error.to_string(),
            }),
        }
    };
    let not_writable = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            refused("it may not be written (':ro' behind its name makes it read-only)".into())
        }
        _ => failed(error),
    };
    let kind = fs::metadata(&image).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(refused("it is a folder".into()));
    }
    if !kind.is_file() && !kind.is_block_device() {
        return Err(refused("it is neither a file nor a block device".into()));
    }
    let mut file = File::open(&image).map_err(failed)?;
    if access == Access::Writable {
        OpenOptions::new().write(true).open(&image).map_err(not_writable)?;
    }
    let size = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if size == 0 || !size.is_multiple_of(SECTOR) {
        return Err(refused(format!(
            "its size must be a multiple of {SECTOR} bytes and not 0, but is {size}"
        )));
    }
    Ok(Disk { image, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_of_a_workload_has_a_size() {
        let numbered = |text: &str| toml::from_str::<Numbered>(text);
        assert_eq!(numbered("total = '1280M'").unwrap().total, "1280M");
        assert!(numbered("totals = '1280M'").is_err());
        let wrong = numbered("total = 'much'").unwrap().disk();
        assert_eq!(wrong.unwrap_err().status(), 2);
    }

    #[test]
    fn a_named_file_must_be_one_that_can_be_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).into_os_string();
        let with = |name: &str, end: &str| {
            let mut text = path(name);
            text.push(end);
            text
        };
        fs::write(path("good"), [0; 1024]).unwrap();
        fs::write(path("odd"), [0; 1000]).unwrap();
        fs::write(path("empty"), []).unwrap();
        fs::write(path("a:ro"), [0; 512]).unwrap();
        fs::hard_link(path("good"), path("same")).unwrap();
        let sentence = |text: OsString| {
            let failure = named(&[text], Board::Q35).unwrap_err();
            assert_eq!(failure.status(), 2);
            failure.sentence().unwrap().to_owned()
        };
        let good = named(&[path("good"), with("a:ro", ":ro")], Board::Q35).unwrap();
        assert_eq!((good[0].access, good[1].access), (Access::Writable, Access::ReadOnly));
        assert!(sentence(path("none")).contains("there is no such file"));
        assert!(sentence(with("good", ":rw")).contains("may only be ':ro', not ':rw'"));
        assert!(sentence(path("odd")).contains("multiple of 512 bytes and not 0, but is 1000"));
        assert!(sentence(path("empty")).contains("but is 0"));
        assert!(sentence(folder.path().into()).contains("it is a folder"));
        assert!(sentence("/dev/null".into()).contains("neither a file nor a block device"));
        assert!(sentence(path("good/inside")).contains("a part of its path is no folder"));
        assert!(sentence(":ro".into()).contains("--disk takes FILE or FILE:ro"));
        assert!(named(&[path("good"), path("good")], Board::Q35).is_err());
        assert!(named(&[path("good"), with("same", ":ro")], Board::Q35).is_err());
        assert!(named(&[with("good", ":ro"), with("same", ":ro")], Board::Q35).is_ok());
        assert!(named(&[path("good"), with("a:ro", ":ro")], Board::Q35).is_ok());
        assert!(named(&vec![with("good", ":ro"); 17], Board::Q35).is_err());
    }

    #[test]
    fn each_page_has_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        make(folder.path(), &image, 1 << 20).unwrap();
        let bytes = fs::read(&image).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        for (number, page) in bytes.chunks(PAGE).enumerate() {
            let number = (number as u64).to_le_bytes();
            assert_eq!((&page[..8], &page[PAGE - 8..]), (&number[..], &number[..]));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
