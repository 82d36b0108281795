//! The kernel: built when its sources changed, found, and asked for the names of its addresses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::failure::Failure;
use crate::project;

/// A build that takes longer is worth a word.
const PATIENCE: Duration = Duration::from_secs(2);

/// A kernel that can be started. It is a copy, so that a build that starts meanwhile cannot change it under a run.
#[derive(Debug)]
pub(crate) struct KernelImage {
    pub(crate) path: PathBuf,
    pub(crate) symbols: Symbols,
    /// Holds the copy.
    _folder: tempfile::TempDir,
}

impl KernelImage {
    /// Brings the kernel up to date with its sources and reads it.
    ///
    /// # Errors
    /// A host failure with the compiler's messages when it does not build.
    pub(crate) fn build() -> Result<Self, Failure> {
        let mut cargo = project::cargo_for_kernel("build");
        cargo.arg("--release");
        let path =
            build(cargo, "the kernel", |message| message.get("executable")?.as_str().map(PathBuf::from))?;
        Self::open(&path)
    }

    /// A kernel that was built before.
    ///
    /// # Errors
    /// A usage failure when it cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let content = fs::read(path)
            .map_err(|error| Failure::usage(format!("cannot read the kernel {}: {error}", path.display())))?;
        let keep = || {
            let folder = tempfile::Builder::new().prefix("ceasefire-kernel-").tempdir()?;
            let copy = folder.path().join("kernel");
            fs::write(&copy, &content)?;
            Ok((folder, copy))
        };
        let (folder, path) =
            keep().map_err(|error: std::io::Error| Failure::host("copy the kernel", error))?;
        Ok(KernelImage { path, symbols: Symbols::of(&content), _folder: folder })
    }
}

/// Has cargo build something, and finds its file by looking with `find` at what cargo says about it, the last first.
///
/// # Errors
/// A host failure with the compiler's messages when it does not build.
pub(crate) fn build(
    mut cargo: Command,
    what: &str,
    find: impl Fn(&serde_json::Value) -> Option<PathBuf>,
) -> Result<PathBuf, Failure> {
    cargo.arg("--message-format=json-render-diagnostics");
    let built = patiently(cargo, what).map_err(|error| Failure::host("start cargo", error))?;
    if !built.status.success() {
        let messages = String::from_utf8_lossy(&built.stderr);
        let messages = format!("cargo says:\n{}", messages.trim_end());
        return Err(Failure::host(format!("build {what}"), messages));
    }
    let mut messages = built.stdout.split(|byte| *byte == b'\n').rev();
    messages.find_map(|line| find(&serde_json::from_slice(line).ok()?)).ok_or_else(|| {
        Failure::host(format!("find {what}, which was built"), "cargo did not say where it is")
    })
}

/// The output of a command, with a word to the user when it takes its time.
fn patiently(mut command: Command, what: &str) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = receiver.recv_timeout(PATIENCE) {
        return output;
    }
    eprintln!("ceasefire: building {what}");
    receiver.recv().map_err(std::io::Error::other)?
}

/// Names of functions by address.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Sorted by address.
    functions: Vec<Function>,
}

#[derive(Debug)]
struct Function {
    start: u64,
    size: u64,
    name: String,
}

impl Symbols {
    /// The functions of an ELF file; none when it has none or is not one.
    pub(crate) fn of(content: &[u8]) -> Self {
        let Ok(file) = object::File::parse(content) else {
            return Self::default();
        };
        let named =
            file.symbols().filter(|symbol| symbol.address() != 0 && symbol.kind() != SymbolKind::Section);
        let mut functions: Vec<_> = named
            .filter_map(|symbol| {
                let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
                (!name.is_empty()).then_some(Function { start: symbol.address(), size: symbol.size(), name })
            })
            .collect();
        functions.sort_by_key(|function| function.start);
        Symbols { functions }
    }

    /// Where a symbol begins.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|function| function.name == name).map(|function| function.start)
    }

    /// `name+0xoffset` of the function around `address`.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions[..after].last()?;
        let offset = address - function.start;
        // A label in assembly has no size: it names what follows, for at most a page.
        let reach = if function.size == 0 { 4096 } else { function.size };
        (offset <= reach).then(|| format!("{}+{offset:#x}", function.name))
    }

    /// The text with ` (name+offset)` after each hexadecimal number that lies in a function.
    pub(crate) fn annotate(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(position) = rest.find("0x") {
            let digits_start = position + 2;
            let digits = rest[digits_start..].bytes().take_while(u8::is_ascii_hexdigit).count();
            let end = digits_start + digits;
            result.push_str(&rest[..end]);
            if let Some(name) =
                u64::from_str_radix(&rest[digits_start..end], 16).ok().and_then(|address| self.name(address))
            {
                result.push_str(&format!(" ({name})"));
            }
            rest = &rest[end..];
        }
        result.push_str(rest);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_functions() -> Symbols {
        let function = |start, size, name: &str| Function { start, size, name: name.into() };
        Symbols { functions: vec![function(0x1000, 0x20, "first"), function(0x2000, 0, "label")] }
    }

    #[test]
    fn addresses_get_the_name_of_the_function_around_them() {
        let symbols = two_functions();
        assert_eq!(symbols.name(0x1010).as_deref(), Some("first+0x10"));
        assert_eq!(symbols.name(0x1021), None);
        assert_eq!(symbols.name(0x2004).as_deref(), Some("label+0x4"));
        assert_eq!(symbols.name(0xfff), None);
    }

    #[test]
    fn a_backtrace_is_annotated_in_place() {
        let text = "panic\n  at 0x1004\n  at 0x9999 0x";
        assert_eq!(two_functions().annotate(text), "panic\n  at 0x1004 (first+0x4)\n  at 0x9999 0x");
    }
}
