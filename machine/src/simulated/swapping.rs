//! Swap on this machine: a disk of slots, and what a kernel's own threads do with it.
//!
//! What goes out is read from its frame when the transfer begins, and lands in its slot when somebody has waited for it; what comes in is read from
//! its slot then. Between the two others take their turns.

use std::sync::Arc;

use explorer::{Digest, Step};
use memory::{Advice, Direction, Environment, FrameRef, PAGE_SIZE, PageRange, Store, StoreFailed, Transfer};

use super::machine::SimulatedEnvironment;

/// Words of a page that programs here store to.
const WORDS: usize = 4;

type Page = [u64; WORDS];

/// Something that has begun and not ended.
struct Pending {
    direction: Direction,
    first: u64,
    frames: Vec<FrameRef<SimulatedEnvironment>>,
    /// What the frames held when it began.
    content: Vec<Page>,
    transfer: Arc<Transfer>,
}

/// What is in the slots.
#[derive(Default)]
pub(super) struct SwapContent {
    slots: std::collections::BTreeMap<u64, Page>,
    pending: Vec<Pending>,
}

impl SwapContent {
    pub(super) fn state(&self) -> Digest {
        let pending = self.pending.iter().map(|pending| (pending.first, &pending.content));
        let pages = pending.flat_map(|(first, content)| (first..).zip(content.iter().copied()));
        let all = self.slots.iter().map(|(slot, page)| (*slot, *page)).chain(pages);
        all.fold(Digest::EMPTY, |digest, (slot, page)| {
            page.iter().fold(digest.with(slot), |digest, word| digest.with(*word))
        })
    }
}

/// The disk.
struct SimulatedDisk(SimulatedEnvironment);

fn words_of(frame: &FrameRef<SimulatedEnvironment>) -> Page {
    std::array::from_fn(|index| {
        let mut bytes = [0; 8];
        frame.read(8 * index, &mut bytes);
        u64::from_ne_bytes(bytes)
    })
}

fn step() {
    explorer::step(Step::Machine { number: 0, stores: false });
}

impl Store<SimulatedEnvironment> for SimulatedDisk {
    fn most_pages(&self) -> u64 {
        1
    }

    fn begin(
        &self,
        direction: Direction,
        first: u64,
        frames: Vec<FrameRef<SimulatedEnvironment>>,
        transfer: &Arc<Transfer>,
    ) {
        step();
        let content = frames.iter().map(words_of).collect();
        explorer::narrate(|| format!("begins to carry slot {first}: {direction:?} {content:?}"));
        let pending = Pending { direction, first, frames, content, transfer: transfer.clone() };
        self.0.0.hidden().swap.pending.push(pending);
    }

    fn wait(&self, transfer: &Transfer) -> Result<(), StoreFailed> {
        step();
        let mut hidden = self.0.0.hidden();
        let its = hidden.swap.pending.iter().position(|pending| std::ptr::eq(&*pending.transfer, transfer));
        if let Some(index) = its {
            let Pending { direction, first, frames, content, transfer } = hidden.swap.pending.remove(index);
            for ((slot, frame), page) in (first..).zip(&frames).zip(content) {
                if direction == Direction::Out {
                    hidden.swap.slots.insert(slot, page);
                } else {
                    let found = hidden.swap.slots.get(&slot).copied().unwrap_or_default();
                    (0..WORDS).for_each(|index| frame.write(8 * index, &found[index].to_ne_bytes()));
                }
            }
            drop(hidden);
            drop(frames);
            transfer.end(Ok(()));
        }
        Ok(())
    }

    fn make_lasting(&self) -> Result<(), StoreFailed> {
        Ok(())
    }
}

impl SimulatedEnvironment {
    /// A disk of so many slots.
    pub(super) fn add_swap(&self, slots: u32) {
        let added = self.swap().add(self, Arc::new(SimulatedDisk(self.clone())), slots + 1, &[], None);
        added.expect("there is memory for the counts");
    }

    /// A kernel thread takes pages of a space to swap.
    pub(super) fn page_out(&self, space: usize, range: PageRange) {
        let space = self.space(space);
        let paged = self.as_agent(|| space.advise(range, Advice::Retire { at_once: true }));
        paged.expect("a scenario pages out what is mapped");
        explorer::narrate(|| format!("has paged out {} pages", range.length() / PAGE_SIZE));
    }

    /// The end of a run, with no space left: no slot has an owner.
    pub(super) fn check_swap(&self) -> Result<(), String> {
        let Some(disk) = self.swap().disks().first().copied() else { return Ok(()) };
        self.swap().set_open(disk.number, false);
        if self.swap().remove(self, disk.number) {
            return Ok(());
        }
        Err(format!(
            "{} slots are in use in the end, and {} pages cached",
            disk.used,
            self.swap().counts().cached
        ))
    }
}
