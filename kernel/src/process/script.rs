//! `#!` scripts: which program runs them, and with which arguments.
//!
//! The first line, up to 255 bytes, is "#!", optional blanks, a path, and at most one argument that runs to
//! the end of the line (blanks inside it are part of it, blanks around it are not).

use crate::syscall::Errno;

/// How much of a file is looked at.
pub(crate) const LINE_MAX: usize = 256;

/// What the first line asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Script<'a> {
    /// Path of the program.
    pub(crate) interpreter: &'a [u8],
    /// The one argument, if there is one.
    pub(crate) argument: Option<&'a [u8]>,
}

/// Parses the start of a file. `None` if it is no script.
///
/// # Errors
/// ENOEXEC if it is one whose interpreter is missing or cut off.
pub(crate) fn parse(start: &[u8]) -> Result<Option<Script<'_>>, Errno> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Ok(None) };
    let line_end = rest.iter().position(|&byte| byte == b'\n');
    let line = trim(&rest[..line_end.unwrap_or(rest.len())]);
    let path_end = line.iter().position(|&byte| is_blank(byte) || byte == 0).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(path_end);
    // A path that runs into the end of what was read may have been cut off.
    let cut = line_end.is_none() && argument.is_empty() && start.len() >= LINE_MAX;
    if interpreter.is_empty() || cut {
        return Err(Errno::ENOEXEC);
    }
    let argument = trim(argument);
    let end = argument.iter().position(|&byte| byte == 0).unwrap_or(argument.len());
    let argument = &argument[..end];
    Ok(Some(Script { interpreter, argument: (!argument.is_empty()).then_some(argument) }))
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_blank(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_blank(*last)
    {
        bytes = rest;
    }
    bytes
}
