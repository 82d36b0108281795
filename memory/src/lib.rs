//! Address spaces, built on `coherence`.
//!
//! An [`AddressSpace`] is a set of *areas* (what the program asked for) and a tree of *page tables* (what hardware is
//! told so far). Operations change areas at once and entries as late as they can. This crate decides what changes;
//! `coherence` decides who must be told of it and when the frames that were taken out may be used again. It is generic
//! over an [`Environment`]: the kernel provides one, the tests provide another with simulated CPUs.
//!
//! The rules that everything here keeps:
//! * A frame, or a page table, that was taken out of the tables goes back to the allocator only through a finished
//!   gather (`changes`), with one exception that is argued where it stands: an address space that nobody will ever
//!   run in again.
//! * A new copy of a page is mapped only after the old one is unwritable everywhere, and unreachable for CPUs that
//!   will see the new one (`copy_on_write`, `fork`).
//! * One operation is one gather: at most one round of interrupts, and none where nothing could be cached.
//! * A number from a program is checked once and is a typed range from then on (`range`).
//!
//! `docs/design/0007-memory.md` tells the same at more length.
#![no_std]
#![deny(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod access;
mod address_space;
mod advise;
#[cfg(simulated)]
mod agent;
mod announcements;
mod area;
mod areas;
mod backing;
mod buddy;
pub mod calls;
mod changes;
mod clean;
mod cold;
mod collapse;
mod copy_on_write;
mod departures;
mod entry;
mod environment;
mod error;
mod evictions;
mod fault;
mod fork;
mod frame;
mod frame_layout;
mod frame_list;
mod frames;
mod heap;
mod hole;
mod homes;
mod incore;
mod large;
mod large_entry;
mod large_frames;
mod large_pages;
mod leaf;
mod limits;
mod lock;
mod map;
mod mappings;
mod merge;
mod mistake;
mod monitor;
mod object;
mod other_pages;
mod overview;
mod own_tables;
mod page_batch;
mod page_lists;
mod page_table;
mod populate;
mod protect;
mod range;
mod reclaim;
mod relocation;
mod remap;
mod rights;
mod scan;
mod slot_owners;
mod split;
mod store;
mod stored;
mod swap;
mod swap_disk;
mod swap_in;
mod swap_out;
mod sync;
mod synchronize;
mod trail;
mod truncate;
mod unmap;
mod userfault;
mod userfault_fill;
mod userfault_guard;
mod waiting;

pub use access::FutexKey;
pub use address_space::{AddressSpace, Sizes};
pub use advise::Advice;
pub use area::{AreaFlags, AreaSnapshot};
pub use backing::{Backing, BackingError, BackingRef, Identity};
pub use buddy::MAX_ORDER;
pub use environment::Environment;
pub use error::{Error, Fault, OutOfMemory};
pub use frame::{FrameNumber, FrameRef};
pub use frame_layout::FrameLayout;
pub use frames::{FrameStatistics, Frames};
pub use large_pages::{LargePageCounts, LargePages, LargePolicy};
pub use limits::Limit;
pub use map::{MapRequest, Place};
#[cfg(simulated)]
pub use mistake::{Mistake, make_mistake};
pub use monitor::{Event, Monitor, Origin, Reason, Unmonitored, Waited, Watch, WatchedFault, Wishes};
pub use object::MemoryObject;
pub use page_lists::PageCounts;
pub use range::{PAGE_SIZE, PageRange, RangeError, USER_END, is_aligned, round_down, round_up};
pub use remap::{MoveTo, RemapRequest};
pub use rights::{Access, Rights};
pub use scan::{Scanned, put_by, take_back};
pub use store::{Direction, Store, StoreFailed, Transfer};
pub use swap::{MOST_SWAP_DISKS, Swap, SwapCounts, SwapDiskCounts, SwapRefused};
pub use swap_out::swap_out;
pub use trail::Trail;
pub use waiting::Waiting;
