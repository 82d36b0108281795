//! The two sides of a comparison: a kernel of ours or Linux, ready to be given the same orders.
//!
//! An order is written once and prepared by each side: the same program, files, CPUs, memory, board and mode. Only what the kernel
//! itself needs is added here, so that this is the one place where the guests of both sides could come to differ.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::failure::Failure;
use crate::kernel_image::KernelImage;
use crate::linux::{self, LinuxKernel};
use crate::order::{Order, Prepared};
use crate::qemu::Mode;
use crate::result::{LinuxVersion, System};

/// One side.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) system: System,
    /// Which Linux it is; none on our side.
    pub(crate) linux: Option<LinuxVersion>,
    /// The kernel's file; none for ours, which is built when it is first needed.
    file: Option<PathBuf>,
    image: OnceLock<Arc<KernelImage>>,
}

impl Side {
    /// Our kernel: the one given, or the project's.
    pub(crate) fn ceasefire(image: Option<&Path>) -> Self {
        let file = image.map(Path::to_path_buf);
        Side { system: System::Ceasefire, linux: None, file, image: OnceLock::new() }
    }

    /// Linux: the image given, or Debian's kernel, which is fetched.
    ///
    /// # Errors
    /// A usage failure when the given one cannot be read; a host failure when Debian's cannot be had, whose sentence is the
    /// reason why this side is absent.
    pub(crate) fn linux(image: Option<&Path>) -> Result<Self, Failure> {
        let kernel = image.map_or_else(LinuxKernel::of_debian, LinuxKernel::at)?;
        let version = LinuxVersion { name: kernel.name, sha256: kernel.hash };
        let file = Some(kernel.image);
        Ok(Side { system: System::Linux, linux: Some(version), file, image: OnceLock::new() })
    }

    /// Makes a guest of this side ready for an order.
    ///
    /// # Errors
    /// A usage failure when this side cannot carry it out or the program is not one; a host failure about everything else.
    pub(crate) fn prepare(&self, mut order: Order) -> Result<Prepared, Failure> {
        if self.system == System::Linux {
            // Ours alone can be watched; a comparison then watches one side.
            order.sanitize = false;
            fits_linux(&order)?;
            linux::prepare_for_linux(&mut order, self.file.as_deref().unwrap_or(Path::new("")))?;
        }
        order.prepare(|| self.image())
    }

    /// Builds or reads the kernel now instead of at the first order.
    ///
    /// # Errors
    /// As [`Side::prepare`].
    pub(crate) fn make_ready(&self) -> Result<(), Failure> {
        self.image().map(drop)
    }

    fn image(&self) -> Result<Arc<KernelImage>, Failure> {
        if let Some(image) = self.image.get() {
            return Ok(image.clone());
        }
        let image = Arc::new(self.file.as_deref().map_or_else(KernelImage::build, KernelImage::open)?);
        Ok(self.image.get_or_init(|| image).clone())
    }
}

/// Whether Linux can carry an order out.
///
/// # Errors
/// A usage failure: mechanisms switched off or on, the sanitizer, or the instruction clock with several CPUs.
pub(crate) fn fits_linux(order: &Order) -> Result<(), Failure> {
    if !order.without.is_empty() {
        return Err(Failure::usage("Linux has none of our mechanisms that --without could switch off"));
    }
    if !order.with.is_empty() {
        return Err(Failure::usage("Linux has none of our mechanisms that --with could switch on"));
    }
    if order.sanitize {
        return Err(Failure::usage("--sanitize needs what our kernel declares; Linux declares nothing"));
    }
    if matches!(order.mode, Mode::Deterministic { .. }) && order.cpus > 1 {
        return Err(Failure::usage(
            "Linux does not start on the instruction clock with more than one CPU: use --cpus 1 or --mode single",
        ));
    }
    Ok(())
}
