//! The disk that a workload's `job.toml` asks for: `disk = { total = "1280M" }` stands for a read-only ext4 file
//! system with one file for each CPU, named 0, 1, …, which together are `total` long.
//!
//! The files are holes, so neither they nor the image take room on the host; what a program reads are zeros. The image is made once for
//! each layout, with mke2fs, beside the built workloads. It gets its name when it is complete, and is only ever read: several guests
//! may use it at once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::failure::Failure;
use crate::project;
use crate::qemu::Disk;
use crate::size::Memory;

/// What is on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layout {
    /// Bytes of all files together, as "1280M".
    total: String,
}

/// Room for the file system's own tables: a hole needs no more.
const IMAGE_BYTES: u64 = 64 << 20;

impl Layout {
    /// The disk for a guest with so many CPUs.
    ///
    /// # Errors
    /// A usage failure when `total` is no size; a host failure when mke2fs is missing or refuses.
    pub(crate) fn disk(&self, cpus: u32) -> Result<Disk, Failure> {
        let total = Memory::parse(&self.total).map_err(Failure::Usage)?.mebibytes << 20;
        let each = total / u64::from(cpus) / 4096 * 4096;
        let folder = project::target_folder().join("disks");
        let image = folder.join(format!("{cpus}-files-of-{each}.ext4"));
        if !image.exists() {
            fs::create_dir_all(&folder).map_err(|error| Failure::host("make a disk for the guest", error))?;
            make(&folder, &image, cpus, each)?;
        }
        Ok(Disk { image, read_only: true })
    }
}

/// Where mke2fs is. It lies in a folder that is not in everybody's PATH.
pub(crate) fn mke2fs() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let places = std::env::split_paths(&path).chain(usual);
    let found = places.map(|folder| folder.join("mke2fs")).find(|place| place.is_file())?;
    Some(found.display().to_string())
}

fn make(folder: &Path, image: &Path, files: u32, bytes: u64) -> Result<(), Failure> {
    let refused = |why: String| Failure::host("make a disk for the guest", why);
    let failed = |error: io::Error| refused(error.to_string());
    let work = tempfile::tempdir_in(folder).map_err(failed)?;
    let content = work.path().join("content");
    fs::create_dir(&content).map_err(failed)?;
    for file in 0..files {
        File::create(content.join(file.to_string())).and_then(|file| file.set_len(bytes)).map_err(failed)?;
    }
    let unfinished = work.path().join("image");
    File::create(&unfinished).and_then(|file| file.set_len(IMAGE_BYTES)).map_err(failed)?;
    let maker = mke2fs().ok_or_else(|| refused("mke2fs is missing (apt-get install e2fsprogs)".into()))?;
    let mut command = Command::new(maker);
    command.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d"]).arg(&content).arg(&unfinished);
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(refused(format!("mke2fs says: {}", complaint.trim().lines().last().unwrap_or_default())));
    }
    fs::rename(&unfinished, image).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_has_a_size() {
        let layout = |text: &str| toml::from_str::<Layout>(text);
        assert_eq!(layout("total = '1280M'").unwrap().total, "1280M");
        assert!(layout("totals = '1280M'").is_err());
        let wrong = layout("total = 'much'").unwrap().disk(2);
        assert_eq!(wrong.unwrap_err().status(), 2);
    }

    #[test]
    fn an_image_is_a_file_system_that_takes_little_room() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        match make(folder.path(), &image, 3, 1 << 30) {
            Err(failure) => assert!(failure.sentence().unwrap().contains("mke2fs is missing"), "{failure:?}"),
            Ok(()) => {
                let metadata = fs::metadata(&image).unwrap();
                assert_eq!(metadata.len(), IMAGE_BYTES);
                assert!(metadata.blocks() * 512 < 8 << 20, "{} blocks", metadata.blocks());
                // Its magic number lies in the superblock, which begins at 1024.
                assert_eq!(fs::read(&image).unwrap()[1080..1082], [0x53, 0xef]);
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            }
        }
    }
}
