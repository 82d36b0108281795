//! Memory that CPUs share, and the buffers between them and it.
//!
//! The words themselves are real: the host's, at the host's addresses, and used by one host thread. What is simulated is when a plain store reaches its word. A
//! word's name in the digest must not depend on where the host's allocator put it: words in a region are named by their offset
//! in it, others by which CPU touched them first and as its how-manieth.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::{Digest, Store};

/// A word of shared memory. It outlives the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Wide(*const AtomicU64),
    Narrow(*const AtomicU32),
}

impl Word {
    pub(crate) fn address(self) -> usize {
        match self {
            Word::Wide(word) => word as usize,
            Word::Narrow(word) => word as usize,
        }
    }

    #[allow(unsafe_code)]
    pub(crate) fn get(self) -> u64 {
        // SAFETY: made from references to words that outlive the run (`atomic.rs`).
        unsafe {
            match self {
                Word::Wide(word) => (*word).load(Relaxed),
                Word::Narrow(word) => u64::from((*word).load(Relaxed)),
            }
        }
    }

    #[allow(unsafe_code)]
    pub(crate) fn set(self, value: u64) {
        // SAFETY: as in `get`.
        unsafe {
            match self {
                Word::Wide(word) => (*word).store(value, Relaxed),
                Word::Narrow(word) => (*word).store(value as u32, Relaxed),
            }
        }
    }
}

/// A store on its way.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    word: Word,
    value: u64,
    note: u64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Memory {
    digest: Digest,
    buffers: Vec<VecDeque<Waiting>>,
    regions: Vec<(usize, usize)>,
    names: FxHashMap<usize, u64>,
    touched: Vec<u64>,
}

impl Memory {
    pub(crate) fn new(cpus: usize) -> Self {
        Memory {
            digest: Digest::EMPTY,
            buffers: vec![VecDeque::new(); cpus],
            regions: Vec::new(),
            names: FxHashMap::default(),
            touched: vec![0; cpus],
        }
    }

    pub(crate) fn add_region(&mut self, start: usize, length: usize) {
        self.regions.push((start, length));
    }

    /// The word's name.
    pub(crate) fn name(&mut self, cpu: usize, address: usize) -> u64 {
        let region =
            self.regions.iter().position(|(start, length)| (*start..start + length).contains(&address));
        if let Some(region) = region {
            return Digest::EMPTY
                .with(region as u64)
                .with((address - self.regions[region].0) as u64)
                .number();
        }
        *self.names.entry(address).or_insert_with(|| {
            self.touched[cpu] += 1;
            Digest::EMPTY.with(cpu as u64).with(self.touched[cpu]).with(!0).number()
        })
    }

    /// What the CPU finds in a word: the youngest of its own stores there, or what is visible.
    pub(crate) fn load(&self, cpu: usize, word: Word) -> u64 {
        let own = self.buffers[cpu].iter().rev().find(|waiting| waiting.word == word);
        own.map_or_else(|| word.get(), |waiting| waiting.value)
    }

    /// A plain store.
    pub(crate) fn store(
        &mut self,
        cpu: usize,
        word: Word,
        value: u64,
        note: u64,
        hold: bool,
    ) -> Option<Store> {
        if hold || !self.buffers[cpu].is_empty() {
            self.buffers[cpu].push_back(Waiting { word, value, note });
            return None;
        }
        Some(self.make_visible(cpu, Waiting { word, value, note }))
    }

    /// A store that all CPUs see at once; the CPU's buffer is empty.
    pub(crate) fn store_visibly(&mut self, cpu: usize, word: Word, value: u64) {
        debug_assert!(self.buffers[cpu].is_empty());
        self.make_visible(cpu, Waiting { word, value, note: 0 });
    }

    /// The oldest store in the buffer becomes visible.
    pub(crate) fn drain(&mut self, cpu: usize) -> Option<Store> {
        let waiting = self.buffers[cpu].pop_front()?;
        Some(self.make_visible(cpu, waiting))
    }

    pub(crate) fn holds(&self, cpu: usize) -> bool {
        !self.buffers[cpu].is_empty()
    }

    fn make_visible(&mut self, cpu: usize, waiting: Waiting) -> Store {
        let Waiting { word, value, note } = waiting;
        let name = self.name(cpu, word.address());
        let member = |value| Digest::EMPTY.with(name).with(value);
        self.digest = self.digest.excluding(member(word.get())).including(member(value));
        word.set(value);
        Store { cpu, address: word.address(), note }
    }

    /// What is in memory and in the buffers.
    pub(crate) fn state(&self) -> Digest {
        let mut digest = self.digest;
        for (cpu, buffer) in self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.is_empty()) {
            digest = digest.with(cpu as u64);
            for waiting in buffer {
                let name = self.names.get(&waiting.word.address()).copied();
                let place = name.unwrap_or_else(|| self.offset(waiting.word.address()));
                digest = digest.with(place).with(waiting.value).with(waiting.note);
            }
        }
        digest
    }

    fn offset(&self, address: usize) -> u64 {
        let inside = self.regions.iter().find(|(start, length)| (*start..start + length).contains(&address));
        inside.map_or(0, |(start, _)| (address - start) as u64)
    }
}
