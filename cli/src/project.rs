//! Where the project's sources are, and how its parts are built with the toolchain that the bootstrap script chose.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How the kernel's core library is obtained (`ceasefire`, the script, decides and says so in `CEASEFIRE_KERNEL_BUILD`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreLibrary {
    /// The toolchain has it ready-made for the kernel's target.
    Packaged,
    /// It is built from the toolchain's own source, linked by the system's lld.
    FromSource,
}

impl CoreLibrary {
    pub(crate) fn chosen() -> Self {
        match std::env::var("CEASEFIRE_KERNEL_BUILD").as_deref() {
            Ok("source") => CoreLibrary::FromSource,
            _ => CoreLibrary::Packaged,
        }
    }
}

/// The name that compilers give the kernel's machine.
pub(crate) const KERNEL_TARGET: &str = "x86_64-unknown-none";

/// The root of the project's tree, which this command was built in.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Where everything that is built goes.
pub(crate) fn target_folder() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A cargo command in the project's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).env("CARGO_TERM_COLOR", "never");
    command
}

/// `cargo VERB` for the kernel and its target, with what the chosen toolchain needs for it.
pub(crate) fn cargo_for_kernel(verb: &str) -> Command {
    let mut command = cargo();
    command.args([verb, "--locked", "--package", "kernel", "--target", KERNEL_TARGET]);
    if CoreLibrary::chosen() == CoreLibrary::FromSource {
        command
            .args(["-Zbuild-std=core,alloc,compiler_builtins", "-Zbuild-std-features=compiler-builtins-mem"]);
        // Both for this command only: unstable flags of a stable compiler, and a linker, as Debian ships no rust-lld.
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_X86_64_UNKNOWN_NONE_LINKER", "ld.lld");
    }
    command
}
