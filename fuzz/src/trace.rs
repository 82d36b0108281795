//! What a system answered to a program, as every executor prints it.
//!
//! ```text
//! program 17
//! answers ok @0 ok =7 maperr -22 $
//! process 0 areas 0-3:rw-p,8-8:r--s+2 core 1101----0--- sweep =7*1,=0*3,maperr*4
//! end 17
//! ```
//!
//! Answers are in the order of the program's text. At the end each process that is still there says which areas it has in the window
//! (neighbours that differ in nothing are one; a shared one with the page of its object that it begins with), which pages are in
//! memory, and what a load of each page near a table's boundary finds, equal neighbours together. The machine may print several traces of one program.

use std::collections::BTreeMap;
use std::fmt;

use crate::names;
use crate::program::{BOUNDARY, TABLE, WINDOW_PAGES};

/// What a step was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// Done, and there is nothing to say.
    Done,
    /// The number that was loaded, or the status that a child ended with.
    Number(u64),
    /// A mapping at a page of the window.
    At(u64),
    /// A mapping where it was asked for, outside the window.
    There,
    /// A mapping where it was, outside the window.
    Same,
    /// A mapping where the kernel chose.
    Chosen,
    /// Which pages are in memory.
    Core(Vec<bool>),
    /// Refused with this error number.
    Error(i32),
    /// `SIGSEGV` with `SEGV_MAPERR`: nothing is mapped.
    NotMapped,
    /// `SIGSEGV` with `SEGV_ACCERR`: what is mapped does not allow it.
    NotAllowed,
    /// `SIGBUS`: behind the object's end.
    Bus,
    /// Anything else, in the words of the executor: it did not come back, a signal with other facts.
    Odd(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => out.write_str("ok"),
            Answer::Number(number) => write!(out, "={number}"),
            Answer::At(page) => write!(out, "@{page}"),
            Answer::There => out.write_str("there"),
            Answer::Same => out.write_str("same"),
            Answer::Chosen => out.write_str("$"),
            Answer::Core(pages) => {
                out.write_str("%")?;
                pages.iter().try_for_each(|page| out.write_str(if *page { "1" } else { "0" }))
            }
            Answer::Error(number) => write!(out, "-{number}"),
            Answer::NotMapped => out.write_str("maperr"),
            Answer::NotAllowed => out.write_str("accerr"),
            Answer::Bus => out.write_str("bus"),
            Answer::Odd(words) => out.write_str(words),
        }
    }
}

impl Answer {
    fn read(word: &str) -> Self {
        let odd = || Answer::Odd(word.to_owned());
        match word {
            "ok" => Answer::Done,
            "there" => Answer::There,
            "same" => Answer::Same,
            "$" => Answer::Chosen,
            "maperr" => Answer::NotMapped,
            "accerr" => Answer::NotAllowed,
            "bus" => Answer::Bus,
            _ => match word.split_at_checked(1) {
                Some(("=", number)) => number.parse().map_or_else(|_| odd(), Answer::Number),
                Some(("@", page)) => page.parse().map_or_else(|_| odd(), Answer::At),
                Some(("-", number)) => number.parse().map_or_else(|_| odd(), Answer::Error),
                Some(("%", pages)) => Answer::Core(pages.chars().map(|page| page == '1').collect()),
                _ => odd(),
            },
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Answer::Error(number) => names::error(*number),
            Answer::Number(number) => number.to_string(),
            Answer::Chosen => "elsewhere".into(),
            Answer::NotMapped => "SEGV_MAPERR".into(),
            Answer::NotAllowed => "SEGV_ACCERR".into(),
            Answer::Bus => "SIGBUS".into(),
            other => other.to_string(),
        }
    }
}

/// An area's look in `/proc/PID/maps`, without its place: its rights, and the page of its object if it is shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    /// Read, write, execute.
    pub rights: u64,
    /// For a shared area: the page of the object.
    pub shared: Option<u64>,
}

/// What a process looks like in the end, by page of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Final {
    /// Who says so: the process's first actor that is left.
    pub actor: u8,
    /// All mapped pages.
    pub areas: BTreeMap<u64, Look>,
    /// Whether a mapped page near a boundary is in memory.
    pub core: BTreeMap<u64, bool>,
    /// What a load finds near a boundary.
    pub sweep: BTreeMap<u64, Answer>,
}

/// The pages that a sweep looks at: those near tables' boundaries.
pub fn swept() -> impl Iterator<Item = u64> {
    (0..WINDOW_PAGES / TABLE).flat_map(|table| (0..2 * BOUNDARY).map(move |page| table * TABLE + page))
}

/// One run of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trace {
    /// The program's name.
    pub program: String,
    /// One for each step.
    pub answers: Vec<Answer>,
    /// One for each process.
    pub finals: Vec<Final>,
    /// What the executor's own watch found: the oracle's sentence, a time limit.
    pub found: Option<String>,
}

/// Reads what an executor printed; a trace without its end is left out.
pub fn read(text: &str) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut trace = Trace::default();
    for line in text.lines() {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match word {
            "program" => trace = Trace { program: rest.to_owned(), ..Trace::default() },
            "answers" => trace.answers = rest.split_whitespace().map(Answer::read).collect(),
            "process" => trace.finals.extend(read_final(rest)),
            "found" => trace.found = Some(rest.to_owned()),
            "end" if trace.program == rest && !rest.is_empty() => traces.push(std::mem::take(&mut trace)),
            _ => {}
        }
    }
    traces
}

fn read_final(text: &str) -> Option<Final> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [actor, "areas", areas, "core", core, "sweep", sweep] = *words.as_slice() else { return None };
    let mut end = Final { actor: actor.parse().ok()?, ..Final::default() };
    for area in areas.split(',').filter(|area| *area != "-") {
        let (range, look) = area.split_once(':')?;
        let (first, last) = range.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let (rights, shared) = look.split_at_checked(3)?;
        let bit = |letter, bit| if rights.contains(letter) { bit } else { 0 };
        let rights = bit('r', 1) | bit('w', 2) | bit('x', 4);
        let shared = shared.strip_prefix("s+").map(|page| page.parse::<u64>()).transpose().ok()?;
        for page in first..=last.min(WINDOW_PAGES) {
            let shared = shared.map(|start| start + page - first);
            end.areas.insert(page, Look { rights, shared });
        }
    }
    let mut pages = swept();
    for letter in core.chars() {
        let page = pages.next()?;
        if letter != '-' {
            end.core.insert(page, letter == '1');
        }
    }
    let mut pages = swept();
    for run in sweep.split(',') {
        let (answer, times) = run.split_once('*')?;
        for _ in 0..times.parse::<usize>().ok()? {
            end.sweep.insert(pages.next()?, Answer::read(answer));
        }
    }
    Some(end)
}

/// Writes what a process looks like, as [`read`] reads it.
pub fn write_final(end: &Final) -> String {
    let mut areas = Vec::new();
    let mut pages = end.areas.iter().peekable();
    while let Some((&first, look)) = pages.next() {
        let mut last = first;
        let follows = |last: u64, page: u64, next: &Look| {
            let shared = look.shared.map(|start| start + page - first);
            page == last + 1 && next.rights == look.rights && next.shared == shared
        };
        while let Some((&page, _)) = pages.next_if(|(page, next)| follows(last, **page, next)) {
            last = page;
        }
        let letter = |bit, letter| if look.rights & bit != 0 { letter } else { '-' };
        let kind = look.shared.map_or("p".to_owned(), |page| format!("s+{page}"));
        areas.push(format!("{first}-{last}:{}{}{}{kind}", letter(1, 'r'), letter(2, 'w'), letter(4, 'x')));
    }
    let areas = if areas.is_empty() { "-".to_owned() } else { areas.join(",") };
    let letter = |page| end.core.get(&page).map_or('-', |there| if *there { '1' } else { '0' });
    let core: String = swept().map(letter).collect();
    let mut sweep: Vec<(&Answer, usize)> = Vec::new();
    for answer in end.sweep.values() {
        match sweep.last_mut().filter(|(last, _)| *last == answer) {
            Some((_, times)) => *times += 1,
            None => sweep.push((answer, 1)),
        }
    }
    let sweep: Vec<String> = sweep.iter().map(|(answer, times)| format!("{answer}*{times}")).collect();
    format!("process {} areas {areas} core {core} sweep {}", end.actor, sweep.join(","))
}
