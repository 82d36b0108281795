//! What each CPU has of its own, reached through the GS register while the kernel runs.
//!
//! A CPU is named by its index: 0 is the one that booted, the others follow the order of the firmware's table. The kernel
//! is not preemptible, so the index is stable between two points where a task may sleep or yield.
#![allow(unsafe_code)]

pub(crate) mod features;
mod per_cpu;
mod set;

use core::arch::asm;
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use coherence::Crossings;

use crate::arch::descriptor::{self, Descriptors};
use crate::arch::registers::{self, msr};
use crate::arch::{apic, entry, floating_point};
use crate::task::{KernelStack, Task};

pub(crate) use per_cpu::{Aligned, PerCpu};
pub(crate) use set::CpuSet;

/// CPUs that the kernel can use; the rest of a larger machine stays asleep.
pub(crate) const MAX_CPUS: usize = 64;
/// Bytes, and alignment, of a stack for the exceptions that need their own. The last word points to the CPU.
pub(crate) const INTERRUPT_STACK_BYTES: usize = 8192;

/// One CPU. The entry code knows the offsets of the first fields.
#[repr(C, align(128))]
pub(crate) struct Cpu {
    this: Cell<*const Cpu>,
    /// Where the system-call entry puts the program's stack pointer for a moment.
    pub(crate) user_stack: Cell<u64>,
    /// Top of the current task's kernel stack.
    pub(crate) stack_top: Cell<u64>,
    /// The running task; owned by the scheduler, which holds a reference for it.
    pub(crate) current: Cell<*const Task>,
    /// Advanced by the entry code on the way from and to user mode.
    pub(crate) crossings: Crossings,
    index: Cell<u32>,
    /// Depth of interrupt handlers on this CPU, to know what code may do.
    pub(crate) handlers: Cell<u32>,
    apic_identifier: AtomicU32,
    apic_logical_name: AtomicU32,
    descriptors: Descriptors,
}

// SAFETY: the cells are used by the CPU they belong to only, with interrupts off or in ways that an interrupt handler
// does not disturb; what other CPUs read is atomic.
unsafe impl Sync for Cpu {}

static CPUS: [Cpu; MAX_CPUS] = [const { Cpu::new() }; MAX_CPUS];
/// CPUs that run tasks, as bits.
static ONLINE: AtomicU64 = AtomicU64::new(0);

impl Cpu {
    const fn new() -> Self {
        Self {
            this: Cell::new(null()),
            user_stack: Cell::new(0),
            stack_top: Cell::new(0),
            current: Cell::new(null()),
            crossings: Crossings::new(),
            index: Cell::new(0),
            handlers: Cell::new(0),
            apic_identifier: AtomicU32::new(0),
            apic_logical_name: AtomicU32::new(0),
            descriptors: Descriptors::new(),
        }
    }

    /// Makes entries from user mode begin at `top`. For the running CPU.
    pub(crate) fn set_kernel_stack(&self, top: u64) {
        self.stack_top.set(top);
        self.descriptors.set_kernel_stack(top);
    }
}

/// The running CPU.
pub(crate) fn this() -> &'static Cpu {
    let pointer: *const Cpu;
    // SAFETY: GS points at this CPU's entry of `CPUS` from the first moments of boot on, and `this` is its first field.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
        &*pointer
    }
}

/// Index of the running CPU.
pub(crate) fn index() -> usize {
    let index: u32;
    // SAFETY: as in `this`.
    unsafe {
        asm!("mov {:e}, gs:[{}]", out(reg) index, const offset_of!(Cpu, index), options(nostack, preserves_flags, readonly));
    }
    index as usize
}

/// The running task's address, for `task::current`.
pub(crate) fn current_task() -> *const Task {
    let task: *const Task;
    // SAFETY: as in `this`. One instruction, so that an interrupt cannot put another CPU between two halves.
    unsafe {
        asm!("mov {}, gs:[{}]", out(reg) task, const offset_of!(Cpu, current), options(nostack, preserves_flags, readonly));
    }
    task
}

/// Whether an interrupt handler is running on this CPU.
pub(crate) fn in_interrupt() -> bool {
    this().handlers.get() != 0
}

/// The CPUs that run tasks.
pub(crate) fn online() -> CpuSet {
    CpuSet::from_bits(ONLINE.load(Ordering::Acquire))
}

/// Number of CPUs that run tasks.
pub(crate) fn count() -> usize {
    online().len()
}

/// How often a CPU has crossed between kernel and user mode.
pub(crate) fn crossings(cpu: usize) -> &'static Crossings {
    &CPUS[cpu].crossings
}

/// Name of a CPU's interrupt controller, once the CPU has been online.
pub(crate) fn apic_name(cpu: usize) -> apic::Name {
    apic::Name {
        identifier: CPUS[cpu].apic_identifier.load(Ordering::Relaxed),
        logical: CPUS[cpu].apic_logical_name.load(Ordering::Relaxed),
    }
}

/// Announces that the running CPU takes part.
pub(crate) fn set_online() {
    ONLINE.fetch_or(1 << index(), Ordering::AcqRel);
}

/// Points GS at the CPU's entry, so that `this` works. The first thing that a CPU does in Rust.
pub(crate) fn adopt(cpu: usize) {
    let entry = &CPUS[cpu];
    entry.this.set(entry);
    entry.index.set(cpu as u32);
    // SAFETY: the kernel reads through GS only what `Cpu` has; user GS starts at zero.
    unsafe {
        registers::write_msr(msr::GS_BASE, &raw const *entry as u64);
        registers::write_msr(msr::KERNEL_GS_BASE, 0);
    }
}

/// Sets up everything that the running CPU has of its own: features, segments, interrupt stacks, system-call entry,
/// floating point, interrupt controller. Interrupts stay off. `count` says how many CPUs there will be at most.
pub(crate) fn initialise(count: usize) {
    features::enable_on_this_cpu();
    let [fatal, nmi] = [(); 2].map(|()| interrupt_stack());
    let this = this();
    // SAFETY: once per CPU, on that CPU, with its own descriptors; the stacks are never given back. GS is set again below.
    unsafe { this.descriptors.load(fatal, nmi) }
    adopt(this.index.get() as usize);
    descriptor::load_interrupt_table();
    // SAFETY: the entry code expects exactly these selectors, and a cleared interrupt, trap, direction and check flag.
    unsafe {
        let user_base = u64::from(crate::arch::trap_frame::USER_CODE as u16 - 16);
        registers::write_msr(msr::STAR, user_base << 48 | u64::from(descriptor::KERNEL_CODE) << 32);
        registers::write_msr(msr::LSTAR, entry::system_call());
        registers::write_msr(msr::SYSCALL_MASK, 0x4_7700);
    }
    floating_point::enable_on_this_cpu();
    let name = apic::enable_on_this_cpu(index(), count, crate::interrupt::SPURIOUS);
    this.apic_identifier.store(name.identifier, Ordering::Relaxed);
    this.apic_logical_name.store(name.logical, Ordering::Relaxed);
}

/// A stack for an exception, with this CPU's address in its last word. Returns where the CPU shall begin to push.
fn interrupt_stack() -> u64 {
    let top = KernelStack::allocate(INTERRUPT_STACK_BYTES).leak();
    // SAFETY: the stack is mapped, unused, and ours for good.
    unsafe { ((top - 8) as *mut u64).write(&raw const *this() as u64) }
    top - 16
}
