//! A program: rounds of steps. The steps of one round are made at the same time, each by another actor; rounds follow one another.
//!
//! Actors 0 to `threads` - 1 are threads of the first process. `fork` makes a process with one thread, which is the actor that the
//! call names. Addresses are pages of a *window* that is free when a program begins, with boundaries of page tables at its pages
//! [`BOUNDARY`] + 512 n; or pages of the block that an earlier call got from the kernel; or plain numbers.

use crate::names::{ADVICE, MAP_FLAGS, number};

/// Bytes in a page.
pub const PAGE: u64 = 4096;
/// The window's first address.
pub const WINDOW: u64 = 0x10_0020_0000 - BOUNDARY * PAGE;
/// The window's page at which the first leaf table that begins in it begins.
pub const BOUNDARY: u64 = 12;
/// Pages in a leaf table's span.
pub const TABLE: u64 = 512;
/// Pages of the window.
pub const WINDOW_PAGES: u64 = 4 * TABLE;
/// The end of what user space may use.
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// How many actors there may be.
pub const ACTORS: u8 = 6;
/// How many blocks can be remembered.
pub const SLOTS: u8 = 8;

/// An address as a program writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A page of the window, and bytes behind its start.
    Window(u64, u64),
    /// A page of the block in a slot, and bytes behind its start.
    Block(u8, u64, u64),
    /// A number.
    Plain(u64),
}

/// What one step does. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the arguments have the names that Linux's manual gives them")]
pub enum Call {
    Map { at: Address, length: u64, rights: u64, flags: u64, offset: u64, slot: u8 },
    Unmap { at: Address, length: u64 },
    Protect { at: Address, length: u64, rights: u64 },
    Remap { at: Address, old: u64, new: u64, flags: u64, to: Address, slot: u8 },
    Advise { at: Address, length: u64, advice: u64 },
    Incore { at: Address, length: u64 },
    Load { at: Address },
    Store { at: Address, value: u64 },
    Fork { child: u8 },
    Exit { status: u8 },
    Wait { child: u8 },
    Hop { cpu: u8 },
}

impl Call {
    /// Its name in texts and counts.
    pub fn name(&self) -> &'static str {
        match self {
            Call::Map { .. } => "mmap",
            Call::Unmap { .. } => "munmap",
            Call::Protect { .. } => "mprotect",
            Call::Remap { .. } => "mremap",
            Call::Advise { .. } => "madvise",
            Call::Incore { .. } => "mincore",
            Call::Load { .. } => "load",
            Call::Store { .. } => "store",
            Call::Fork { .. } => "fork",
            Call::Exit { .. } => "exit",
            Call::Wait { .. } => "wait",
            Call::Hop { .. } => "hop",
        }
    }

    /// Whether it may bring pages in after its work on the mappings.
    pub(crate) fn brings_in(&self) -> bool {
        match *self {
            Call::Map { flags, .. } => {
                ["populate", "locked"].iter().any(|name| flags & number(MAP_FLAGS, name) != 0)
            }
            Call::Advise { advice, .. } => {
                ["populate-read", "populate-write"].iter().any(|name| advice == number(ADVICE, name))
            }
            Call::Remap { .. } => true,
            _ => false,
        }
    }
}

/// One actor's part in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Who.
    pub actor: u8,
    /// What.
    pub call: Call,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// What it is called: its number in its pack.
    pub name: String,
    /// Threads of the first process.
    pub threads: u8,
    /// Whether actors wait for their turn in user mode (where a CPU must be interrupted) or asleep.
    pub spins: bool,
    /// What is done.
    pub rounds: Vec<Vec<Step>>,
}

impl Program {
    /// All steps, in the order of the text.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.rounds.iter().flatten()
    }

    /// Whether some steps are made at the same time.
    pub fn races(&self) -> bool {
        self.rounds.iter().any(|round| round.len() > 1)
    }

    /// Whether actors begin, act and end in an order that can be: nobody acts before it is there or after it ended, no round has one
    /// actor twice, and only who has ended is waited for, once, by the process that forked it.
    pub fn is_sound(&self) -> bool {
        let mut process: Vec<Option<u8>> =
            (0..ACTORS).map(|actor| (actor < self.threads).then_some(0)).collect();
        let mut parents = vec![None; usize::from(ACTORS)];
        let mut ended = vec![false; usize::from(ACTORS)];
        for round in &self.rounds {
            let (before, ended_before) = (process.clone(), ended.clone());
            let mut acted = Vec::new();
            for step in round {
                let actor = usize::from(step.actor);
                let Some(Some(own)) = before.get(actor).copied() else { return false };
                if ended_before[actor] || acted.contains(&step.actor) {
                    return false;
                }
                acted.push(step.actor);
                match step.call {
                    Call::Fork { child } => {
                        let index = usize::from(child);
                        if child < self.threads || process.get(index) != Some(&None) {
                            return false;
                        }
                        (process[index], parents[index]) = (Some(child), Some(own));
                    }
                    // The first thread stays, so that its process does.
                    Call::Exit { .. } if step.actor == 0 => return false,
                    Call::Exit { .. } => ended[actor] = true,
                    Call::Wait { child } => {
                        let index = usize::from(child);
                        if parents.get(index) != Some(&Some(own)) || !ended_before[index] {
                            return false;
                        }
                        parents[index] = None;
                    }
                    _ => {}
                }
            }
        }
        true
    }
}
