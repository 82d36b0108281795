//! Linux beside us: Debian's cloud kernel in the same machine, given the same files and the same orders.
//!
//! The kernel comes as Debian's package (`package`), or is another bzImage (`image` refuses what is none). Its first program is
//! ours (`workloads/linux-init`): it obeys the orders of `protocol::orders`, speaks through the same ports and writes the same form
//! of report, so [`session`](crate::session) runs a Linux guest as it runs ours. What differs there: Linux's own words come on the
//! serial line, so the program's input must be packed ([`Order::packed_input`](crate::order::Order)); and a kernel of unknown
//! origin may not boot, so it has a limit of its own for that.
//!
//! **For whoever compares:** [`Side::linux`](crate::side::Side::linux) makes the peer, or fails with the sentence that says why
//! there is none. An order with `trace` counts the flushes of translations on Linux by reason and extent (rows
//! `linux.flush`); tracing takes time, so a traced run must never be a timed one. Ours ignores it.

mod image;
mod package;
mod verb;

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::order::Order;
use crate::program::Companion;
use crate::project;
use crate::qemu::Board;
use crate::workload::Workload;
use package::Tools;

pub(crate) use verb::{meaning, run};

/// Where our first program lies in the Linux guest.
const INIT: &str = "/.ceasefire/linux-init";
/// The folder of the Linux guest in which the modules lie that it needs.
const MODULES: &str = "/.ceasefire/modules.d";

/// What Linux is always told: to trust the emulator's time stamp counter (else it falls back to a clock that costs an exit per
/// reading), not to look whether the timer ticks while it boots (on a busy host it may find that it does not, and panics), to start
/// our program first, to print only what goes wrong, on the serial line, and to end the machine when it panics.
const ARGUMENTS: &str =
    "tsc=reliable no_timer_check quiet console=ttyS0 panic=-1 rdinit=/.ceasefire/linux-init";

/// What a kernel needs to reach a virtio disk, in the order in which it must be loaded; Debian's has all of it as modules.
const DISK_MODULES: [&str; 7] = [
    "drivers/virtio/virtio_ring.ko",
    "drivers/virtio/virtio.ko",
    "drivers/virtio/virtio_pci_legacy_dev.ko",
    "drivers/virtio/virtio_pci_modern_dev.ko",
    "drivers/virtio/virtio_pci.ko",
    "drivers/virtio/virtio_mmio.ko",
    "drivers/block/virtio_blk.ko",
];

/// A Linux kernel to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinuxKernel {
    pub(crate) image: PathBuf,
    /// Package and version, or the path of an image that was given.
    pub(crate) name: String,
    /// SHA-256 of the image, in hexadecimal.
    pub(crate) hash: String,
}

impl LinuxKernel {
    /// The kernel in the cache, which is filled first if it is empty.
    ///
    /// # Errors
    /// A host failure when there is none and Debian's packages cannot be had.
    pub(crate) fn of_debian() -> Result<Self, Failure> {
        let cache = cache();
        if package::newest(&cache).is_none() {
            eprintln!(
                "ceasefire: fetching Debian's Linux kernel as a package into .cache/linux (nothing is installed)"
            );
            package::fetch(&cache, &Tools::of_this_machine())?;
        }
        let (name, image) = package::newest(&cache)
            .ok_or_else(|| Failure::host("find the Linux kernel that was fetched", "it is gone"))?;
        Self::named(&image, name).map_err(|why| {
            Failure::host(
                "use the Linux kernel in .cache/linux",
                format!("{why}; remove {}", image.display()),
            )
        })
    }

    /// Another image.
    ///
    /// # Errors
    /// A usage failure when it cannot be read, or is no whole bzImage for x86-64.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        Self::named(path, path.display().to_string())
            .map_err(|why| Failure::usage(format!("cannot start the Linux kernel {}: {why}", path.display())))
    }

    fn named(path: &Path, name: String) -> Result<Self, String> {
        let content = fs::read(path).map_err(|error| match path.is_dir() {
            true => "it is a folder".to_owned(),
            false => error.to_string(),
        })?;
        image::check(&content)?;
        let hash = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(LinuxKernel { image: path.to_owned(), name, hash })
    }
}

/// Where Debian's packages are unpacked.
fn cache() -> PathBuf {
    project::root().join(".cache/linux")
}

/// Adds to an order what makes the Linux kernel in the file `image` carry it out: our first program, the words that start it, and the
/// modules it needs for disks. A kernel whose modules are not found beside it must have been built with them.
///
/// # Errors
/// A usage failure when the kernel is known not to boot on the order's board; a host failure when the first program does not build.
pub(crate) fn prepare_for_linux(order: &mut Order, image: &Path) -> Result<(), Failure> {
    if order.board == Board::Microvm && image.starts_with(cache()) {
        return Err(Failure::usage(
            "Debian's Linux does not boot on microvm: use --machine q35, or --linux PATH with a kernel that does",
        ));
    }
    let init = Workload::find("linux-init")
        .unwrap_or_else(|| Err(Failure::host("find workloads/linux-init", "it is not in this tree")))?;
    order.companions.push(Companion { host: init.build()?, guest: INIT.into() });
    order.kernel_words.push(ARGUMENTS.into());
    let mut modules = Vec::new();
    if !order.disks.is_empty() {
        for module in DISK_MODULES {
            let host = modules_of(image).map(|folder| folder.join("kernel").join(module));
            if let Some(host) = host.filter(|host| host.is_file()) {
                let guest = Path::new(MODULES).join(module.rsplit('/').next().unwrap_or(module));
                modules.push(guest.clone());
                order.companions.push(Companion { host, guest });
            }
        }
    }
    order.linux = Some(modules);
    Ok(())
}

/// The modules of an image `X/boot/vmlinuz-VERSION`: `X/lib/modules/VERSION`, in a package as in a system.
fn modules_of(image: &Path) -> Option<PathBuf> {
    let version = image.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    Some(image.parent()?.parent()?.join("lib/modules").join(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lie_beside_the_image() {
        let folder = modules_of(Path::new("/cache/linux_6/boot/vmlinuz-6.1-cloud"));
        assert_eq!(folder, Some("/cache/linux_6/lib/modules/6.1-cloud".into()));
        assert_eq!(modules_of(Path::new("bzImage")), None);
    }

    #[test]
    fn what_is_no_kernel_is_a_mistake_of_usage() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "hello").unwrap();
        for path in [Path::new("/no/such"), &text, folder.path()] {
            assert_eq!(LinuxKernel::at(path).unwrap_err().status(), 2);
        }
    }
}
