//! Segments, the task state segment and the interrupt table.
//!
//! Each CPU has its own segment table (it holds its task state) and shares one interrupt table. All gates are interrupt
//! gates: handlers start with interrupts off. Double fault, non-maskable interrupt and machine check run on stacks of
//! their own, because the stack they interrupt may be unusable (double fault) or the GS register not yet the kernel's.
#![allow(unsafe_code)]

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;

pub(crate) const KERNEL_CODE: u16 = 0x10;
pub(crate) const KERNEL_DATA: u16 = 0x18;
const TASK_STATE: u16 = 0x40;
/// Interrupt-stack numbers (1-based, as gates name them).
pub(crate) const STACK_FATAL: u8 = 1;
pub(crate) const STACK_NMI: u8 = 2;

/// The 64-bit task state segment: the stacks that the CPU switches to.
#[repr(C, packed(4))]
pub(crate) struct TaskState {
    reserved_0: u32,
    pub(crate) privilege_stacks: [u64; 3],
    reserved_1: u64,
    pub(crate) interrupt_stacks: [u64; 7],
    reserved_2: u64,
    reserved_3: u16,
    port_map: u16,
}

/// One CPU's segment table and task state.
#[repr(C, align(16))]
pub(crate) struct Descriptors {
    segments: UnsafeCell<[u64; 10]>,
    task_state: UnsafeCell<TaskState>,
}

// SAFETY: each value belongs to one CPU, which is the only one to touch it.
unsafe impl Sync for Descriptors {}

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: u64,
}

impl Descriptors {
    pub(crate) const fn new() -> Self {
        Self {
            segments: UnsafeCell::new([
                0,
                0x00cf_9b00_0000_ffff, // kernel code, 32 bits (unused)
                0x00af_9b00_0000_ffff, // kernel code
                0x00cf_9300_0000_ffff, // kernel data
                0x00cf_fb00_0000_ffff, // user code, 32 bits (what SYSRET counts from)
                0x00cf_f300_0000_ffff, // user data
                0x00af_fb00_0000_ffff, // user code
                0,
                0, // task state, low half
                0, // task state, high half
            ]),
            task_state: UnsafeCell::new(TaskState {
                reserved_0: 0,
                privilege_stacks: [0; 3],
                reserved_1: 0,
                interrupt_stacks: [0; 7],
                reserved_2: 0,
                reserved_3: 0,
                port_map: size_of::<TaskState>() as u16,
            }),
        }
    }

    /// Loads this table on the running CPU, with the tops of its interrupt stacks. Leaves the GS base at zero.
    ///
    /// # Safety
    /// Called once per CPU, on that CPU, with `self` its own and the stacks mapped for good.
    pub(crate) unsafe fn load(&'static self, fatal_stack: u64, nmi_stack: u64) {
        let base = self.task_state.get() as u64;
        // SAFETY: only this CPU touches its descriptors, and no interrupt is on yet. The selectors loaded are those
        // written above; the far return continues at the next instruction in the same code with the new selector.
        unsafe {
            (*self.task_state.get()).interrupt_stacks[usize::from(STACK_FATAL) - 1] = fatal_stack;
            (*self.task_state.get()).interrupt_stacks[usize::from(STACK_NMI) - 1] = nmi_stack;
            let segments = &mut *self.segments.get();
            let limit = size_of::<TaskState>() as u64 - 1;
            segments[8] = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
            segments[9] = base >> 32;
            let pointer = TablePointer { limit: size_of::<[u64; 10]>() as u16 - 1, base: self.segments.get() as u64 };
            asm!(
                "lgdt [{pointer}]",
                "push {code}",
                "lea {scratch}, [rip + 2f]",
                "push {scratch}",
                "retfq",
                "2:",
                "mov ss, {data:e}",
                "mov ds, {data:e}",
                "mov es, {data:e}",
                "xor {scratch:e}, {scratch:e}",
                "mov fs, {scratch:e}",
                "mov gs, {scratch:e}",
                "ltr {task:x}",
                pointer = in(reg) &raw const pointer,
                code = in(reg) u64::from(KERNEL_CODE),
                data = in(reg) u64::from(KERNEL_DATA),
                task = in(reg) u64::from(TASK_STATE),
                scratch = out(reg) _,
            );
        }
    }

    /// Sets the stack on which the next entry from user mode begins. Called on the owning CPU only.
    pub(crate) fn set_kernel_stack(&self, top: u64) {
        let slot = self.task_state.get().cast::<u8>().wrapping_add(offset_of!(TaskState, privilege_stacks));
        // SAFETY: the slot lies in our task state, and only this CPU writes it; it is only 4-aligned.
        unsafe { slot.cast::<u64>().write_unaligned(top) }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    offset_low: u16,
    selector: u16,
    stack: u8,
    attributes: u8,
    offset_middle: u16,
    offset_high: u32,
    reserved: u32,
}

#[repr(C, align(16))]
struct InterruptTable(UnsafeCell<[Gate; 256]>);
// SAFETY: written by the boot CPU before any other CPU runs and before interrupts are on; read by hardware after that.
unsafe impl Sync for InterruptTable {}

static INTERRUPTS: InterruptTable = InterruptTable(UnsafeCell::new(
    [Gate { offset_low: 0, selector: 0, stack: 0, attributes: 0, offset_middle: 0, offset_high: 0, reserved: 0 }; 256],
));

/// Fills the interrupt table: `entry(vector)` is the address of a vector's entry code.
///
/// # Safety
/// Called once, on the boot CPU, before interrupts are on. The entries must be real entry code.
pub(crate) unsafe fn build_interrupt_table(entry: impl Fn(u8) -> u64) {
    // SAFETY: nobody else uses the table yet.
    let table = unsafe { &mut *INTERRUPTS.0.get() };
    for (vector, gate) in table.iter_mut().enumerate() {
        let offset = entry(vector as u8);
        let stack = match vector {
            2 => STACK_NMI,
            8 | 18 => STACK_FATAL,
            _ => 0,
        };
        // Breakpoint and overflow are instructions that user mode may execute; all other gates refuse it.
        let privilege = if matches!(vector, 3 | 4) { 3 << 5 } else { 0 };
        *gate = Gate {
            offset_low: offset as u16,
            selector: KERNEL_CODE,
            stack,
            attributes: 0x8e | privilege,
            offset_middle: (offset >> 16) as u16,
            offset_high: (offset >> 32) as u32,
            reserved: 0,
        };
    }
}

/// Points the running CPU at the interrupt table.
pub(crate) fn load_interrupt_table() {
    let pointer = TablePointer { limit: size_of::<[Gate; 256]>() as u16 - 1, base: INTERRUPTS.0.get() as u64 };
    // SAFETY: the table is a static filled by `build_interrupt_table`.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack, preserves_flags)) }
}
