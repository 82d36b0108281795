//! Programs as text, for people, for the guest and for the machine: one step on a line.
//!
//! ```text
//! program 17 threads 2 spin
//! 0 mmap @0 8p rw private,fixed 0x0 $0
//! 0 store @3 7
//! & 1 load @3
//! 0 fork 2
//! 2 munmap @2 0x1001
//! 2 exit 3
//! 0 wait 2
//! end
//! ```
//!
//! A line that begins with `&` is in the round of the line before. `@3` is the window's page 3, `$1@2` page 2 of the block that the
//! kernel chose for slot 1, `+0x..` bytes behind a page's start. A `#` begins a comment.

use std::fmt::{self, Write};

use crate::names::{ADVICE, MAP_FLAGS, Name, REMAP_FLAGS, RIGHTS};
use crate::program::{ACTORS, Address, Call, PAGE, Program, SLOTS, Step};

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match *self {
            Address::Window(page, bytes) => {
                write!(out, "@{page}")?;
                bytes
            }
            Address::Block(slot, page, bytes) => {
                write!(out, "${slot}@{page}")?;
                bytes
            }
            Address::Plain(number) => return write!(out, "{number:#x}"),
        };
        if bytes == 0 { Ok(()) } else { write!(out, "+{bytes:#x}") }
    }
}

struct Length(u64);

impl fmt::Display for Length {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(PAGE) && self.0 < PAGE << 20 {
            write!(out, "{}p", self.0 / PAGE)
        } else {
            write!(out, "{:#x}", self.0)
        }
    }
}

/// Names of a number's bits, from a table, joined; what has no name as a number.
fn bits(table: &[Name], number: u64, joint: &str) -> String {
    let mut rest = number;
    let mut parts = Vec::new();
    for (name, bit) in table {
        if rest & bit == *bit {
            parts.push((*name).to_owned());
            rest &= !bit;
        }
    }
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    if parts.is_empty() { "-".into() } else { parts.join(joint) }
}

fn advice(number: u64) -> String {
    let known = ADVICE.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| format!("{number:#x}"), |(name, _)| (*name).to_owned())
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name())?;
        match *self {
            Call::Map { at, length, rights, flags, offset, slot } => {
                let (rights, flags) = (bits(RIGHTS, rights, ","), bits(MAP_FLAGS, flags, ","));
                write!(out, " {at} {} {rights} {flags} {offset:#x} ${slot}", Length(length))
            }
            Call::Protect { at, length, rights } => {
                write!(out, " {at} {} {}", Length(length), bits(RIGHTS, rights, ","))
            }
            Call::Remap { at, old, new, flags, to, slot } => {
                let flags = bits(REMAP_FLAGS, flags, ",");
                write!(out, " {at} {} {} {flags} {to} ${slot}", Length(old), Length(new))
            }
            Call::Advise { at, length, advice: number } => {
                write!(out, " {at} {} {}", Length(length), advice(number))
            }
            Call::Unmap { at, length } | Call::Incore { at, length } => {
                write!(out, " {at} {}", Length(length))
            }
            Call::Load { at } => write!(out, " {at}"),
            Call::Store { at, value } => write!(out, " {at} {value}"),
            Call::Fork { child } | Call::Wait { child } => write!(out, " {child}"),
            Call::Exit { status } => write!(out, " {status}"),
            Call::Hop { cpu } => write!(out, " {cpu}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = if self.spins { "spin" } else { "sleep" };
        writeln!(out, "program {} threads {} {waiting}", self.name, self.threads)?;
        for round in &self.rounds {
            for (index, step) in round.iter().enumerate() {
                let joint = if index == 0 { "" } else { "& " };
                writeln!(out, "{joint}{} {}", step.actor, step.call)?;
            }
        }
        out.write_str("end\n")
    }
}

/// Several programs as one text.
pub fn pack<'a>(programs: impl IntoIterator<Item = &'a Program>) -> String {
    let mut text = String::new();
    for program in programs {
        // Writing into a string cannot fail.
        let _ = write!(text, "{program}");
    }
    text
}

/// Reads programs.
///
/// # Errors
/// A sentence with the number of the first line that makes no sense.
pub fn unpack(text: &str) -> Result<Vec<Program>, String> {
    let mut programs: Vec<Program> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = |what: &str| format!("line {}: {what}", index + 1);
        match (words.as_slice(), is_open) {
            ([], _) => {}
            (["program", name, "threads", threads, waiting], false) => {
                programs.push(header(name, threads, waiting).ok_or_else(|| wrong("this begins no program"))?);
                is_open = true;
            }
            (["end"], true) => is_open = false,
            (words, true) => {
                let program = programs.last_mut().ok_or_else(|| wrong("no program has begun"))?;
                let (joins, words) = words
                    .split_first()
                    .filter(|(first, _)| **first == "&")
                    .map_or((false, words), |(_, rest)| (true, rest));
                let step = step(words).ok_or_else(|| wrong("this is no step"))?;
                match program.rounds.last_mut().filter(|_| joins) {
                    Some(round) => round.push(step),
                    None if joins => return Err(wrong("'&' joins nothing")),
                    None => program.rounds.push(vec![step]),
                }
            }
            _ => {
                return Err(wrong(
                    "'program NAME threads N spin' or 'sleep' begins a program, 'end' ends it",
                ));
            }
        }
    }
    if is_open {
        return Err("the last program has no 'end'".into());
    }
    match programs.iter().find(|program| !program.is_sound()) {
        Some(program) => Err(format!(
            "program {}: an actor acts before it is there, after it ended, or twice in a round",
            program.name
        )),
        None => Ok(programs),
    }
}

fn header(name: &str, threads: &str, waiting: &str) -> Option<Program> {
    let threads = threads.parse().ok().filter(|threads| (1..=ACTORS).contains(threads))?;
    let spins = match waiting {
        "spin" => true,
        "sleep" => false,
        _ => return None,
    };
    Some(Program { name: name.into(), threads, spins, rounds: Vec::new() })
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn length(word: &str) -> Option<u64> {
    match word.strip_suffix('p') {
        Some(pages) => pages.parse::<u64>().ok()?.checked_mul(PAGE),
        None => number(word),
    }
}

fn slot(word: &str) -> Option<u8> {
    word.strip_prefix('$')?.parse().ok().filter(|slot| *slot < SLOTS)
}

fn address(word: &str) -> Option<Address> {
    let (word, bytes) = match word.split_once('+') {
        Some((word, bytes)) => (word, number(bytes).filter(|bytes| *bytes < PAGE)?),
        None => (word, 0),
    };
    match word.split_once('@') {
        Some(("", page)) => Some(Address::Window(number(page)?, bytes)),
        Some((name, page)) => Some(Address::Block(slot(name)?, number(page)?, bytes)),
        None => Some(Address::Plain(number(word)?.checked_add(bytes)?)),
    }
}

fn named(table: &[Name], word: &str) -> Option<u64> {
    if word == "-" {
        return Some(0);
    }
    word.split(',').try_fold(0, |sum, part| {
        let known = table.iter().find(|(name, _)| *name == part).map(|(_, bit)| *bit);
        Some(sum | known.or_else(|| number(part))?)
    })
}

fn step(words: &[&str]) -> Option<Step> {
    let (actor, words) = words.split_first()?;
    let actor = actor.parse().ok().filter(|actor| *actor < ACTORS)?;
    let small = |word: &str| word.parse::<u8>().ok();
    let call = match *words {
        ["mmap", at, long, rights, flags, offset, place] => Call::Map {
            at: address(at)?,
            length: length(long)?,
            rights: named(RIGHTS, rights)?,
            flags: named(MAP_FLAGS, flags)?,
            offset: number(offset)?,
            slot: slot(place)?,
        },
        ["munmap", at, long] => Call::Unmap { at: address(at)?, length: length(long)? },
        ["mprotect", at, long, rights] => {
            Call::Protect { at: address(at)?, length: length(long)?, rights: named(RIGHTS, rights)? }
        }
        ["mremap", at, old, new, flags, to, place] => Call::Remap {
            at: address(at)?,
            old: length(old)?,
            new: length(new)?,
            flags: named(REMAP_FLAGS, flags)?,
            to: address(to)?,
            slot: slot(place)?,
        },
        ["madvise", at, long, advice] => {
            Call::Advise { at: address(at)?, length: length(long)?, advice: named(ADVICE, advice)? }
        }
        ["mincore", at, long] => Call::Incore { at: address(at)?, length: length(long)? },
        ["load", at] => Call::Load { at: address(at)? },
        ["store", at, value] => Call::Store { at: address(at)?, value: number(value)? },
        ["fork", child] => Call::Fork { child: small(child)? },
        ["exit", status] => Call::Exit { status: small(status)? },
        ["wait", child] => Call::Wait { child: small(child)? },
        ["hop", cpu] => Call::Hop { cpu: small(cpu)? },
        _ => return None,
    };
    Some(Step { actor, call })
}
