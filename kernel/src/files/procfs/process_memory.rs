//! What a process has mapped, and what stands at the top of its stack.

use super::process::Subject;
use crate::memory::AddressSpace;
use crate::process::UserSpace;
use crate::syscall::Errno;
use ::memory::{AreaFlags, AreaSnapshot, PAGE_SIZE, Rights};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;

/// The most that is shown of arguments and environment together with their zeroes.
const MOST_STRINGS: u64 = 2 << 20;

/// The memory of a process; None for one that has ended.
fn user_space(subject: &Subject) -> Result<Option<Arc<UserSpace>>, Errno> {
    Ok(subject.process()?.memory())
}

/// Bytes of a process's memory; as many as can be read.
fn read(space: &AddressSpace, range: Range<u64>) -> Vec<u8> {
    let length = range.end.saturating_sub(range.start).min(MOST_STRINGS) as usize;
    let mut bytes = vec![0; length];
    let mut done = 0;
    for piece in bytes.chunks_mut(4096) {
        if space.read_user(range.start + done as u64, piece).is_err() {
            break;
        }
        done += piece.len();
    }
    bytes.truncate(done);
    bytes
}

pub(crate) fn command_line(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let memory = user_space(subject)?;
    Ok(memory.map(|memory| read(memory.space(), memory.program().arguments)).unwrap_or_default())
}

pub(crate) fn environment(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let memory = user_space(subject)?;
    Ok(memory.map(|memory| read(memory.space(), memory.program().environment)).unwrap_or_default())
}

/// The vector that `execve` put behind the pointers to arguments and environment.
pub(crate) fn auxiliary_vector(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let Some(memory) = user_space(subject)? else { return Ok(Vec::new()) };
    let program = memory.program();
    let words = read(memory.space(), program.stack_start..program.arguments.start);
    let mut words = words.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let count = words.next().unwrap_or(0);
    // The pointers to the arguments and their zero, then the environment up to its zero.
    let rest = words.skip(count as usize + 1).skip_while(|&word| word != 0).skip(1);
    let pairs: Vec<u64> = rest.collect();
    let end = pairs.chunks(2).position(|pair| pair[0] == 0).map_or(0, |at| at * 2 + 2);
    Ok(pairs.iter().take(end).flat_map(|word| word.to_ne_bytes()).collect())
}

/// The first line of an area, as in `maps`.
fn describe(text: &mut String, area: &AreaSnapshot) {
    let right = |right, letter| if area.rights.contains(right) { letter } else { '-' };
    let (identity, name) = match &area.object {
        Some((identity, name)) => (Some(*identity), name.as_str()),
        None if area.flags.contains(AreaFlags::HEAP) => (None, "[heap]"),
        None if area.flags.contains(AreaFlags::STACK) => (None, "[stack]"),
        None => (None, ""),
    };
    let (device, inode) = identity.map_or((0, 0), |identity| (identity.device, identity.inode));
    let start = format!(
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {inode} ",
        area.range.start(),
        area.range.end(),
        right(Rights::READ, 'r'),
        right(Rights::WRITE, 'w'),
        right(Rights::EXECUTE, 'x'),
        if area.flags.contains(AreaFlags::SHARED) { 's' } else { 'p' },
        area.offset,
        device >> 8,
        device & 0xff,
    );
    // Writing into a string cannot fail, here and below.
    let _ = if name.is_empty() { writeln!(text, "{start}") } else { writeln!(text, "{start:<73}{name}") };
}

/// Room for one more area's description.
///
/// # Errors
/// ENOMEM: a text is one piece of memory, and may be too large for that.
fn make_room(text: &mut String, area: &AreaSnapshot) -> Result<(), Errno> {
    /// All of it but the name.
    const MOST: usize = 2048;
    let name = area.object.as_ref().map_or(0, |(_, name)| name.len());
    text.try_reserve(name + MOST).map_err(|_| Errno::ENOMEM)
}

pub(crate) fn maps(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let mut text = String::new();
    if let Some(memory) = user_space(subject)? {
        for area in memory.space().areas() {
            make_room(&mut text, &area)?;
            describe(&mut text, &area);
        }
    }
    Ok(text.into_bytes())
}

/// What an area allows and what was said of it, in Linux's words of two letters, each followed by a blank.
fn marks(area: &AreaSnapshot) -> String {
    let flag = |flag| area.flags.contains(flag);
    let is_shared = flag(AreaFlags::SHARED);
    let words = [
        (area.rights.contains(Rights::READ), "rd"),
        (area.rights.contains(Rights::WRITE), "wr"),
        (area.rights.contains(Rights::EXECUTE), "ex"),
        (is_shared, "sh"),
        (area.may.contains(Rights::READ), "mr"),
        (area.may.contains(Rights::WRITE), "mw"),
        (area.may.contains(Rights::EXECUTE), "me"),
        (is_shared, "ms"),
        (flag(AreaFlags::GROWS_DOWN), "gd"),
        (flag(AreaFlags::LOCKED), "lo"),
        (flag(AreaFlags::LOCKED_ON_FAULT), "lf"),
        (flag(AreaFlags::NOT_FORKED), "dc"),
        (flag(AreaFlags::NO_RESERVE), "nr"),
        (!is_shared, "ac"),
        (flag(AreaFlags::WIPED_ON_FORK), "wf"),
        (flag(AreaFlags::NOT_DUMPED), "dd"),
        (flag(AreaFlags::LARGE_PAGES), "hg"),
        (flag(AreaFlags::SMALL_PAGES), "nh"),
        (flag(AreaFlags::WATCHED_MISSING), "um"),
        (flag(AreaFlags::WATCHED_STORES), "uw"),
    ];
    words.iter().filter(|(holds, _)| *holds).map(|(_, word)| format!("{word} ")).collect()
}

pub(crate) fn detailed_maps(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let mut text = String::new();
    let Some(memory) = user_space(subject)? else { return Ok(Vec::new()) };
    for area in memory.space().areas() {
        make_room(&mut text, &area)?;
        describe(&mut text, &area);
        let kilobytes = |pages: u64| pages * PAGE_SIZE / 1024;
        let size = area.range.length() / 1024;
        let resident = kilobytes(memory.space().resident_in(area.range));
        for (name, value) in [
            ("Size", size),
            ("KernelPageSize", 4),
            ("MMUPageSize", 4),
            ("Rss", resident),
            ("Pss", resident),
            ("AnonHugePages", memory.space().large_in(area.range) / 1024),
            ("Swap", 0),
            ("Locked", if area.flags.contains(AreaFlags::LOCKED) { resident } else { 0 }),
        ] {
            let _ = writeln!(text, "{:<16} {value:>8} kB", format!("{name}:"));
        }
        let _ = writeln!(text, "VmFlags: {}", marks(&area));
    }
    Ok(text.into_bytes())
}

/// `statm`, in pages: all, resident, shared, text, unused, data, unused.
pub(crate) fn sizes(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let Some(memory) = user_space(subject)? else { return Ok(b"0 0 0 0 0 0 0\n".to_vec()) };
    let sizes = memory.space().sizes();
    let (mut code, mut data) = (0, 0);
    for area in memory.space().areas() {
        if area.rights.contains(Rights::EXECUTE) {
            code += area.range.pages();
        }
        if area.rights.contains(Rights::WRITE) && !area.flags.contains(AreaFlags::SHARED) {
            data += area.range.pages();
        }
    }
    Ok(format!("{} {} 0 {code} 0 {data} 0\n", sizes.mapped, sizes.resident).into_bytes())
}
