//! What the kernel declares about its memory to an observer outside of the machine, and what that observer answers.
//!
//! The observer (`sanitizer/`, loaded into the emulator) sees every access with the address that the program used and the frame
//! that the CPU's translation led to. To judge it, it must know what the tables say, whether the frame is in use, and whether
//! somebody is changing the address space at this moment. The kernel keeps all of that anyway, so it declares only *where*: once,
//! in a [`Declaration`] in its image, and each CPU adds which address space it has loaded. It does so in every boot, watched or
//! not: watching a run cannot change it.

use core::sync::atomic::AtomicU64;

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// First word of a [`Declaration`]. Another layout gets another number.
pub const MAGIC: u64 = 0x3230_4554_4154_5346;
/// CPUs that a declaration has room for.
pub const MAX_CPUS: usize = 64;
/// First address behind the half of an address space that belongs to programs.
pub const USER_END: u64 = 0x0000_8000_0000_0000;
/// Difference between the addresses of the kernel's image and where it lies in physical memory.
pub const IMAGE_BASE: u64 = 0xffff_ffff_8000_0000;
/// Start of the addresses that show all of physical memory.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// The kernel's own small pages lie from here up to its image.
pub const KERNEL_PAGES: u64 = 0xffff_c000_0000_0000;
/// Bytes of a page and of a frame.
pub const PAGE_BYTES: u64 = 4096;

/// Where the kernel keeps what an observer must know. Offsets and sizes in bytes; addresses are the kernel's, either in its image
/// or in the direct map. What is still zero is not there yet.
#[derive(Debug)]
#[repr(C)]
pub struct Declaration {
    /// [`MAGIC`].
    pub magic: u64,
    /// Physical address of the kernel's own root table. Set last: everything else is there then.
    pub kernel_root: AtomicU64,
    /// Address of the first frame's metadata.
    pub frames: AtomicU64,
    /// How many frames have metadata.
    pub frame_count: AtomicU64,
    /// From one frame's metadata to the next one's.
    pub frame_stride: AtomicU64,
    /// In a frame's metadata: its reference count, 32 bits. 0 for a frame that nobody owns.
    pub frame_references: AtomicU64,
    /// In a frame's metadata: the lock of the page table that the frame holds, 8 bits. 0 when it is free.
    pub frame_lock: AtomicU64,
    /// In a frame's metadata: how many entries of it were taken out whose flush waits, 32 bits. A CPU may read it through those, and nothing else.
    pub frame_waiting: AtomicU64,
    /// In an address space: the physical address of its root table, 64 bits.
    pub space_root: AtomicU64,
    /// In an address space: how many operations have begun and are not flushed yet, 64 bits.
    pub space_changes: AtomicU64,
    /// In an address space: not 0 while changes that others made by the reverse way are not flushed yet, 64 bits.
    pub space_batched: AtomicU64,
    /// In an address space: not 0 while some of its entries were taken out whose flush waits until their frames are needed, 64 bits.
    pub space_deferred: AtomicU64,
    /// For each CPU the address of the address space that it has loaded or is about to load; 0 before the first.
    pub loaded: [LoadedSpace; MAX_CPUS],
}

/// One CPU's line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LoadedSpace(pub AtomicU64);

impl Declaration {
    /// A declaration of nothing yet.
    #[allow(clippy::new_without_default, reason = "a value for one static, nobody needs another")]
    pub const fn new() -> Self {
        Self {
            magic: MAGIC,
            kernel_root: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            frame_count: AtomicU64::new(0),
            frame_stride: AtomicU64::new(0),
            frame_references: AtomicU64::new(0),
            frame_lock: AtomicU64::new(0),
            frame_waiting: AtomicU64::new(0),
            space_root: AtomicU64::new(0),
            space_changes: AtomicU64::new(0),
            space_batched: AtomicU64::new(0),
            space_deferred: AtomicU64::new(0),
            loaded: [const { LoadedSpace(AtomicU64::new(0)) }; MAX_CPUS],
        }
    }
}

/// What the sanitizer says: one JSON object in a line. At most one violation, or, when the machine ends in order, one summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// An access went through a translation that it must not have. The machine stands still.
    Violation(Violation),
    /// Nothing was found.
    Summary(Summary),
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Loads and stores that were checked.
    pub accesses: u64,
    /// Entries into blocks of the programs' instructions that were checked.
    pub fetches: u64,
    /// Of both: those through a translation that the tables no longer have, while the change was still under way. They are allowed.
    pub during_changes: u64,
}

/// What an access did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// It read data.
    Load,
    /// It wrote data.
    Store,
    /// It fetched instructions.
    Fetch,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    /// The frame belongs to nobody.
    FrameIsFree,
    /// The tables map nothing there.
    NotMapped,
    /// The tables map another frame there.
    OtherFrame,
    /// The tables do not allow the store.
    NotWritable,
    /// The tables do not allow the fetch.
    NotExecutable,
}

/// An access through a stale translation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What is wrong with it.
    pub wrong: Wrong,
    /// The CPU.
    pub cpu: u32,
    /// Address of the instruction; for a fetch, of the first one of the block.
    pub instruction: u64,
    /// Address that was accessed.
    pub address: u64,
    /// What was done.
    pub access: AccessKind,
    /// Physical address of the frame that the translation led to.
    pub frame: u64,
    /// References that the kernel counts to that frame, if it counts them.
    pub references: Option<u32>,
    /// The entry that the tables have for the address now, or the empty one of an upper table at which a walk ends.
    pub entry: u64,
    /// Operations on the address space that have begun and are not flushed yet.
    pub changes: u64,
    /// Where that frame is mapped now, in the address spaces that CPUs have loaded: the first few places found.
    pub mapped_at: Vec<Place>,
}

/// A page in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// A CPU that has the address space loaded.
    pub cpu: u32,
    /// Whether it is the one that the access was made in.
    pub same_space: bool,
    /// Address of the page.
    pub address: u64,
}
