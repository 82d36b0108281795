//! From the loader's jump to the first task.
//!
//! 1. `entry` reaches long mode on temporary tables and calls `start`.
//! 2. What the loader and the firmware left is read through the temporary map, before anything is overwritten: start
//!    information, command line, firmware tables.
//! 3. `map` builds the final kernel map; the allocator takes over memory.
//! 4. The boot CPU sets itself up and measures time; `processors` starts the others, all at once.
//! 5. The first kernel task runs `process::start_init`; the boot code becomes the idle task of CPU 0.

mod command_line;
mod entry;
mod firmware;
pub(crate) mod map;
mod processors;
mod start_info;

use crate::arch::{descriptor, entry as kernel_entry, io_apic};
use crate::sync::Once;
use crate::{block, console, cpu, declaration, files, frames, interrupt, process, self_check, task, time};

pub(crate) use command_line::command_line;
pub(crate) use start_info::FreeRanges;

/// The archive that the loader put into memory.
static ARCHIVE: Once<&'static [u8]> = Once::new();

/// The initramfs (empty without one).
pub(crate) fn initramfs() -> &'static [u8] {
    ARCHIVE.get().copied().unwrap_or(&[])
}

/// First Rust code, on the boot CPU, with interrupts off. `information` is the physical address of the start information.
extern "C" fn start(information: u64) -> ! {
    cpu::adopt(0);
    time::mark_start();
    console::initialise();
    let machine = start_info::read(information);
    command_line::initialise(machine.command_line());
    let processors = firmware::processors(machine.firmware_tables);

    map::build(&machine, processors.io_apic);
    frames::initialise(&machine.free_ranges(map::image(), map::used()));
    declaration::declare();
    ARCHIVE.set(machine.archive());

    io_apic::mask_legacy_controllers();
    fill_interrupt_table();
    cpu::initialise(processors.identifiers().len());
    time::calibrate();
    if !command_line().deterministic {
        time::read_clock();
    }
    if let Some(seed) = command_line().seed {
        interrupt::timer::set_seed(seed);
    }
    interrupt::shootdown::COHERENCE.set_switches(command_line().switches);
    interrupt::shootdown::COHERENCE.suppress(command_line().suppressed());

    task::become_idle();
    cpu::set_online();
    processors::start_others(&processors);
    console::input::initialise(processors.io_apic);
    block::initialise(processors.io_apic);
    log::info!("{} CPUs after {} us", cpu::count(), time::now() / 1000);
    task::spawn_kernel("init", || {
        self_check::run_if_asked();
        files::initialize(initramfs());
        process::start_init();
    });
    task::run_idle()
}

#[allow(unsafe_code)]
fn fill_interrupt_table() {
    // SAFETY: called once, on the boot CPU, with interrupts off; the addresses are the entry stubs.
    unsafe { descriptor::build_interrupt_table(kernel_entry::interrupt) }
}
