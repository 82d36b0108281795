//! Memory of a small made-up machine: a declaration, one address space with one page, metadata.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use protocol::sanitizer::{DIRECT_MAP, Declaration, PAGE_BYTES};

use crate::declared::Declared;
use crate::guest_memory::GuestMemory;

/// The one page that is mapped.
pub(crate) const PAGE: u64 = 0x7000_1234_5000;
/// Physical addresses of what the machine holds.
pub(crate) const ROOT: u64 = 0x1_0000;
const KERNEL_ROOT: u64 = 0x2_0000;
const DECLARATION: u64 = 0x3_0000;
const SPACE: u64 = 0x4_0000;
const METADATA: u64 = 0x5_0000;
const FRAME: u64 = 0x6_0000;
const SIZE: u64 = 0x8_0000;
/// Layout of the metadata: references at 0, the lock at 4, entries that wait at 8.
const STRIDE: u64 = 16;

pub(crate) struct TestMachine {
    pub(crate) declared: Declared,
    pub(crate) frame: u64,
    /// The page's entry at first.
    pub(crate) entry: u64,
    words: &'static [AtomicU64],
}

impl TestMachine {
    pub(crate) fn new() -> Self {
        let words: Vec<AtomicU64> = (0..SIZE / 8).map(|_| AtomicU64::new(0)).collect();
        let words: &'static [AtomicU64] = words.leak();
        let set = |physical: u64, value: u64| words[(physical / 8) as usize].store(value, SeqCst);
        for (level, table) in (1..=3).rev().zip([ROOT, ROOT + 0x1000, ROOT + 0x2000]) {
            set(table + index(PAGE, level) * 8, (table + 0x1000) | 7);
        }
        let entry = FRAME | 7 | 1 << 63;
        set(ROOT + 0x3000 + index(PAGE, 0) * 8, entry);
        for (offset, value) in [
            (offset_of!(Declaration, magic), protocol::sanitizer::MAGIC),
            (offset_of!(Declaration, kernel_root), KERNEL_ROOT),
            (offset_of!(Declaration, frames), DIRECT_MAP + METADATA),
            (offset_of!(Declaration, frame_count), SIZE / PAGE_BYTES),
            (offset_of!(Declaration, frame_stride), STRIDE),
            (offset_of!(Declaration, frame_references), 0),
            (offset_of!(Declaration, frame_lock), 4),
            (offset_of!(Declaration, space_root), 0),
            (offset_of!(Declaration, space_changes), 8),
            (offset_of!(Declaration, frame_waiting), 8),
            (offset_of!(Declaration, space_batched), 16),
            (offset_of!(Declaration, space_deferred), 24),
            (offset_of!(Declaration, loaded), DIRECT_MAP + SPACE),
        ] {
            set(DECLARATION + offset as u64, value);
        }
        set(SPACE, ROOT);
        // SAFETY: the words were leaked.
        let memory = unsafe { GuestMemory::new(words.as_ptr().cast(), SIZE, SIZE) };
        let declared = Declared::find(memory, DECLARATION).unwrap();
        let machine = Self { declared, frame: FRAME, entry, words };
        machine.set_references(FRAME, 1);
        machine
    }

    fn word(&self, physical: u64) -> &AtomicU64 {
        &self.words[(physical / 8) as usize]
    }

    pub(crate) fn set_entry(&self, level: u32, address: u64, entry: u64) {
        let table = ROOT + 0x1000 * u64::from(3 - level);
        self.word(table + index(address, level) * 8).store(entry, SeqCst);
    }

    pub(crate) fn set_changes(&self, count: u64) {
        self.word(SPACE + 8).store(count, SeqCst);
    }

    pub(crate) fn set_batched(&self, generation: u64) {
        self.word(SPACE + 16).store(generation, SeqCst);
    }

    pub(crate) fn set_deferred(&self, generation: u64) {
        self.word(SPACE + 24).store(generation, SeqCst);
    }

    pub(crate) fn set_waiting(&self, frame: u64, entries: u32) {
        self.word(METADATA + frame / PAGE_BYTES * STRIDE + 8).store(u64::from(entries), SeqCst);
    }

    pub(crate) fn set_references(&self, frame: u64, count: u32) {
        self.word(METADATA + frame / PAGE_BYTES * STRIDE).store(u64::from(count), SeqCst);
    }

    pub(crate) fn lock_leaf(&self, locked: bool) {
        let metadata = METADATA + (ROOT + 0x3000) / PAGE_BYTES * STRIDE;
        self.word(metadata).store(1 | u64::from(locked) << 32, SeqCst);
    }
}

fn index(address: u64, level: u32) -> u64 {
    (address >> (12 + 9 * level)) & 511
}
