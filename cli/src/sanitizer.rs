//! The sanitizer beside a guest: built, told where to look, and its answer put into words.
//!
//! It is a plugin of the emulator (the crate `sanitizer`), made for our kernel: it needs the kernel's declaration, which it is
//! given the address of. `docs/guide/sanitize.md` says what its stories mean.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use protocol::sanitizer::{AccessKind, IMAGE_BASE, Place, Summary, USER_END, Violation, Wrong};

use crate::failure::Failure;
use crate::kernel_image::{self, Symbols};
use crate::project;
use crate::session::Names;

/// The kernel's static of this name is its declaration.
const DECLARATION: &str = "kernel::declaration::DECLARATION";

/// How far a guest without the sanitizer is ahead of one with it, in time: what time limits of tests are stretched by.
pub(crate) const SLOWDOWN: u32 = 10;

/// A plugin for one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sanitizer {
    pub(crate) library: PathBuf,
    /// Physical address of the kernel's declaration.
    pub(crate) declaration: u64,
}

impl Sanitizer {
    /// Builds the plugin and finds the kernel's declaration.
    ///
    /// # Errors
    /// A usage failure for a kernel that declares nothing, a host failure when the plugin does not build.
    pub(crate) fn of(kernel: &Symbols) -> Result<Self, Failure> {
        let declaration = kernel.address(DECLARATION).and_then(|address| address.checked_sub(IMAGE_BASE));
        let declaration = declaration.ok_or_else(|| {
            Failure::usage(
                "--sanitize needs a kernel of this project, with its symbols: this one declares nothing",
            )
        })?;
        Ok(Sanitizer { library: library()?, declaration })
    }
}

/// The plugin's file, brought up to date once in the life of this command.
fn library() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = BUILT.get() {
        return Ok(path.clone());
    }
    let mut cargo = project::cargo();
    cargo.args(["build", "--locked", "--release", "--package", "sanitizer"]);
    let path = kernel_image::build(cargo, "the sanitizer", |message| {
        let files = message.get("filenames")?.as_array()?;
        files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(".so")).map(PathBuf::from)
    })?;
    Ok(BUILT.get_or_init(|| path).clone())
}

/// One sentence about a run in which nothing was found.
pub(crate) fn summary(summary: &Summary) -> String {
    format!(
        "The sanitizer checked {} loads and stores and {} entries into blocks of instructions: none went through a stale translation \
         ({} met a change that was not finished).",
        summary.accesses, summary.fetches, summary.during_changes
    )
}

/// The sentence that says what was done to what, and below it what is known about it.
pub(crate) fn story(violation: &Violation, names: Names) -> String {
    let Violation { cpu, address, frame, .. } = violation;
    let deed = match violation.access {
        AccessKind::Load => "loaded from",
        AccessKind::Store => "stored to",
        AccessKind::Fetch => "fetched instructions from",
    };
    let wrong = match violation.wrong {
        Wrong::FrameIsFree => "whose frame is free",
        Wrong::NotMapped => "which is no longer mapped",
        Wrong::OtherFrame => "which is mapped to another frame by now",
        Wrong::NotWritable => "which may no longer be written",
        Wrong::NotExecutable => "which may no longer be executed",
    };
    // A free frame is wrong in itself; the others would be right before the flush.
    let too_late = if violation.wrong == Wrong::FrameIsFree { "" } else { ", and no flush is to come" };
    let mut text = format!("stale translation: CPU {cpu} {deed} {address:#x}, {wrong}{too_late}\n");
    let instruction = violation.instruction;
    let place = names.place(instruction);
    let who = if instruction < USER_END { "the program" } else { "the kernel" };
    let _ = match violation.access {
        AccessKind::Fetch => writeln!(text, "  by            {who}, a block of instructions in this page"),
        _ => writeln!(text, "  by            {who} at {instruction:#x}{place}"),
    };
    let _ = writeln!(text, "  the CPU used  frame {frame:#x}: {}", state_of(violation));
    let _ = writeln!(text, "  the tables    {}", in_words(violation.entry));
    for place in &violation.mapped_at {
        let _ = writeln!(text, "  now mapped    {}", whose(place, *cpu));
    }
    let _ = match violation.changes {
        0 => writeln!(text, "  changes       none is under way in this address space"),
        changes => writeln!(text, "  changes       {changes} under way in this address space"),
    };
    text.truncate(text.trim_end().len());
    text
}

fn state_of(violation: &Violation) -> String {
    match violation.references {
        Some(0) => "free, it belongs to nobody".into(),
        Some(1) => "in use, one owner".into(),
        Some(owners) => format!("in use, {owners} owners"),
        None => "not one that the kernel hands out".into(),
    }
}

/// What an entry of the tables says.
fn in_words(entry: u64) -> String {
    let has = |bit: u32| entry >> bit & 1 != 0;
    if !has(0) {
        return format!("have no page there (entry {entry:#x})");
    }
    let rights = [(true, "read"), (has(1), "write"), (!has(63), "execute")]
        .map(|(is, name)| if is { name } else { "" });
    let rights: Vec<_> = rights.into_iter().filter(|name| !name.is_empty()).collect();
    format!(
        "have frame {:#x} there, to {} (entry {entry:#x})",
        entry & 0x000f_ffff_ffff_f000,
        rights.join(", ")
    )
}

fn whose(place: &Place, cpu: u32) -> String {
    let space = match place.same_space {
        true => "the same address space".into(),
        false if place.cpu == cpu => "this CPU's address space".into(),
        false => format!("the address space loaded on CPU {}", place.cpu),
    };
    format!("at {:#x} in {space}", place.address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation() -> Violation {
        Violation {
            wrong: Wrong::NotMapped,
            cpu: 1,
            instruction: 0x40_1234,
            address: 0x7000_0010,
            access: AccessKind::Load,
            frame: 0x12_3000,
            references: Some(2),
            entry: 0,
            changes: 0,
            mapped_at: vec![Place { cpu: 3, same_space: false, address: 0x5000 }],
        }
    }

    fn tell(violation: &Violation) -> String {
        let nothing = Symbols::default();
        story(violation, Names { kernel: &nothing, program: &nothing })
    }

    #[test]
    fn the_story_has_who_what_and_whose() {
        let text = tell(&violation());
        let first = "stale translation: CPU 1 loaded from 0x70000010, which is no longer mapped, and no flush is to come";
        assert_eq!(text.lines().next(), Some(first));
        for part in [
            "the program at 0x401234",
            "frame 0x123000: in use, 2 owners",
            "have no page there",
            "at 0x5000 in the address space loaded on CPU 3",
            "none is under way",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn rights_are_told() {
        let access = AccessKind::Store;
        let denied =
            Violation { access, wrong: Wrong::NotWritable, entry: 0x12_3005 | 1 << 63, ..violation() };
        let text = tell(&denied);
        assert!(text.contains("stored to 0x70000010, which may no longer be written"), "{text}");
        assert!(text.contains("have frame 0x123000 there, to read (entry"), "{text}");
    }

    #[test]
    fn a_kernel_without_a_declaration_is_refused() {
        let refused = Sanitizer::of(&Symbols::default()).unwrap_err();
        assert_eq!(refused.status(), 2);
    }
}
