//! Which address space this CPU has loaded, and changing it: the kernel's side of `coherence`'s switch.
//!
//! Each CPU keeps a counted reference to the space it has loaded, also while a kernel task or the idle loop only borrows
//! it, and also after `coherence` has let go of it in a handler. The reference is dropped after the next real switch, by
//! the task that runs then: never in an interrupt handler, never with interrupts off.
#![allow(unsafe_code)]

use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};

use coherence::Space;

use super::{Current, Task};
use crate::arch::registers::{disable_interrupts, enable_interrupts};
use crate::cpu::{Aligned, MAX_CPUS, PerCpu};
use crate::declaration;
use crate::interrupt::shootdown::COHERENCE;
use crate::memory::AddressSpace;

struct Loaded {
    space: UnsafeCell<Option<Arc<AddressSpace>>>,
    /// The space before, until `drop_retired`.
    retired: UnsafeCell<Option<Arc<AddressSpace>>>,
    /// A switch is half done: requests wait until it is whole.
    switching: Cell<bool>,
}

// SAFETY: each value is used by its own CPU only: changed with interrupts off, read where the kernel cannot be switched away.
unsafe impl Sync for Loaded {}

static LOADED: PerCpu<Loaded> = PerCpu::new(
    [const { Aligned(Loaded { space: UnsafeCell::new(None), retired: UnsafeCell::new(None), switching: Cell::new(false) }) };
        MAX_CPUS],
);

/// Runs `work` with what this CPU has loaded, for `coherence`. `work` must not sleep.
pub(crate) fn with_loaded<R>(work: impl FnOnce(Option<&Space>) -> R) -> R {
    // SAFETY: the value changes only in `load`, on this CPU, which cannot run inside `work`.
    let loaded = unsafe { &*LOADED.here().space.get() };
    work(loaded.as_ref().map(|space| space.space()))
}

/// Whether this CPU is in the middle of a switch.
pub(crate) fn is_switching() -> bool {
    LOADED.here().switching.get()
}

/// Makes the CPU ready for `task`: activates its space, or borrows what is loaded. Interrupts are off.
pub(super) fn prepare_for(task: &Task) {
    let here = LOADED.here();
    here.switching.set(true);
    match &*task.space.lock() {
        Some(entering) => load(here, entering),
        // SAFETY: our own CPU's value, interrupts off.
        None => if let Some(loaded) = unsafe { &*here.space.get() } {
            COHERENCE.go_lazy(loaded.space());
        },
    }
    here.switching.set(false);
}

fn load(here: &Loaded, entering: &Arc<AddressSpace>) {
    // SAFETY: our own CPU's values, interrupts off; no other reference lives.
    let (space, retired) = unsafe { (&mut *here.space.get(), &mut *here.retired.get()) };
    let same = space.as_ref().is_some_and(|loaded| Arc::ptr_eq(loaded, entering));
    if !same {
        declaration::declare_loaded(entering.space());
    }
    entering.activate(space.as_ref().map(|loaded| loaded.space()));
    if !same {
        let before = space.replace(entering.clone());
        debug_assert!(retired.is_none(), "two switches without a drop between them");
        *retired = before;
    }
}

/// Drops the reference to the space that the last switch left. In a task, after the switch; turns interrupts on while it drops.
pub(super) fn drop_retired() {
    // SAFETY: our own CPU's value, interrupts off.
    let retired = unsafe { &mut *LOADED.here().retired.get() }.take();
    if let Some(space) = retired {
        enable_interrupts();
        drop(space);
        disable_interrupts();
    }
}

/// Gives the running task another space, or none, and makes the CPU follow. Returns the task's old one.
fn exchange(task: &Current, space: Option<Arc<AddressSpace>>) -> Option<Arc<AddressSpace>> {
    disable_interrupts();
    let old = core::mem::replace(&mut *task.space.lock(), space);
    prepare_for(task);
    drop_retired();
    enable_interrupts();
    old
}

pub(super) fn replace(task: &Current, space: Arc<AddressSpace>) -> Option<Arc<AddressSpace>> {
    exchange(task, Some(space))
}

pub(super) fn give_up(task: &Current) -> Option<Arc<AddressSpace>> {
    exchange(task, None)
}
