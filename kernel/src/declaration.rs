//! Where an observer outside of the machine finds what it must know of our memory: see `protocol::sanitizer`.
//!
//! The observer finds [`DECLARATION`] by its name in the image's symbols. Nothing in the kernel reads it. It is filled in every
//! boot, so that a watched run is the same as any other, to the last instruction.

use core::sync::atomic::Ordering::{Relaxed, Release};

use coherence::Space;
use protocol::sanitizer::{DIRECT_MAP, Declaration, IMAGE_BASE, KERNEL_PAGES, MAX_CPUS, PAGE_BYTES};

use crate::arch::layout;
use crate::boot::map;
use crate::cpu;
use crate::frames::FRAMES;

const _: () = assert!(
    DIRECT_MAP == layout::DIRECT_MAP
        && IMAGE_BASE == layout::KERNEL_BASE
        && KERNEL_PAGES == layout::STACKS
        && PAGE_BYTES == layout::PAGE_BYTES
        && MAX_CPUS == cpu::MAX_CPUS
);

/// The one declaration of this kernel. (`used`: no code reads it, which must not be a reason to leave it out.)
#[used]
static DECLARATION: Declaration = Declaration::new();

/// Says where things are. Called once, when the final map is loaded and the frames have been taken over.
pub(crate) fn declare() {
    let layout = FRAMES.layout();
    for (word, value) in [
        (&DECLARATION.frames, layout.start),
        (&DECLARATION.frame_count, layout.count),
        (&DECLARATION.frame_stride, layout.stride),
        (&DECLARATION.frame_references, layout.references),
        (&DECLARATION.frame_lock, layout.lock),
        (&DECLARATION.frame_waiting, layout.waiting),
        (&DECLARATION.space_root, Space::ROOT_OFFSET as u64),
        (&DECLARATION.space_changes, Space::GATHERS_OFFSET as u64),
        (&DECLARATION.space_batched, Space::BATCHED_OFFSET as u64),
        (&DECLARATION.space_deferred, Space::DEFERRED_OFFSET as u64),
    ] {
        word.store(value, Relaxed);
    }
    // Release: whoever finds it finds the others.
    DECLARATION.kernel_root.store(map::kernel_root(), Release);
}

/// Says that this CPU is about to load an address space, which it keeps alive until it has declared another one.
pub(crate) fn declare_loaded(space: &Space) {
    let address = core::ptr::from_ref(space).addr() as u64;
    DECLARATION.loaded[cpu::index()].0.store(address, Relaxed);
}
