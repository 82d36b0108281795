//! Kernel stacks, each with an unmapped page below it: running over the end is a double fault, not silent damage.
//!
//! Stacks lie in an address range of their own, `SLOT` apart. A slot's pages are mapped when it is first used and never
//! unmapped, so no CPU ever holds a stale translation of one; free stacks are kept for the next task.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use crate::arch::layout::{PAGE_BYTES, STACKS};
use crate::arch::{SYSTEM_CALL, TrapFrame, switch};
use crate::boot::map;
use crate::sync::InterruptLock;

/// Bytes of a task's stack.
pub(super) const TASK_BYTES: usize = 16 * 1024;
/// Distance between two stacks: the largest stack, and at least one page for the guard; aligned so that the
/// interrupt stacks are aligned to their size.
const SLOT: u64 = 32 * 1024;

struct Slots {
    next: u64,
    /// Tops of free stacks of `TASK_BYTES`.
    free: Vec<u64>,
}

static SLOTS: InterruptLock<Slots> = InterruptLock::new(Slots { next: STACKS, free: Vec::new() });

/// A stack nobody else uses.
pub(crate) struct KernelStack {
    top: u64,
    bytes: usize,
}

impl KernelStack {
    /// A mapped stack of `bytes` (a multiple of the page size, at most half a slot), or `None` if memory is short.
    pub(crate) fn try_allocate(bytes: usize) -> Option<Self> {
        let mut slots = SLOTS.lock();
        if bytes == TASK_BYTES
            && let Some(top) = slots.free.pop()
        {
            return Some(Self { top, bytes });
        }
        let slot = slots.next;
        let top = slot + SLOT;
        slots.next = top;
        drop(slots);
        // A failure leaves the slot unused for ever; address space is plentiful.
        (0..bytes as u64 / PAGE_BYTES).try_for_each(|page| map::add_kernel_page(top - (page + 1) * PAGE_BYTES))?;
        Some(Self { top, bytes })
    }

    /// As `try_allocate`, during boot.
    ///
    /// # Panics
    /// If memory is short.
    pub(crate) fn allocate(bytes: usize) -> Self {
        Self::try_allocate(bytes).expect("there is memory for kernel stacks at boot")
    }

    /// A boot stack, which is not in a slot and is never freed.
    pub(super) fn foreign() -> Self {
        Self { top: 0, bytes: 0 }
    }

    /// The address above the first word.
    pub(crate) fn top(&self) -> u64 {
        self.top
    }

    /// Keeps the stack for ever. Returns its top.
    pub(crate) fn leak(self) -> u64 {
        let top = self.top;
        core::mem::forget(self);
        top
    }

    /// Makes the unused stack begin in `function`; returns the stack pointer to switch to.
    pub(super) fn prepare_kernel(&self, function: extern "C" fn() -> !) -> u64 {
        // SAFETY: the stack is mapped and ours.
        unsafe { switch::prepare_kernel(self.top, function) }
    }

    /// Makes the unused stack return to user mode with `frame`; returns the stack pointer to switch to.
    pub(super) fn prepare_user(&self, frame: &TrapFrame) -> u64 {
        // SAFETY: the stack is mapped and ours.
        unsafe { switch::prepare_user(self.top, frame) }
    }

    /// Whether the running user task, whose stack this is, is in the kernel by a system call.
    pub(super) fn is_in_system_call(&self) -> bool {
        let frame = self.top - size_of::<TrapFrame>() as u64;
        // SAFETY: the frame of the entry from user mode lies at the top of a user task's stack for as long as the task is in the kernel.
        unsafe { (*(frame as *const TrapFrame)).vector == SYSTEM_CALL }
    }
}

impl Drop for KernelStack {
    fn drop(&mut self) {
        if self.bytes == TASK_BYTES {
            SLOTS.lock().free.push(self.top);
        }
    }
}
