//! What a CPU is about to do when it stops to let the schedule decide.

use std::panic::Location;

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Load,
    /// A plain store, which may wait in the buffer.
    Store,
    /// A locked operation.
    Locked,
}

/// The next step of a CPU.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// It has not begun yet.
    Begin,
    /// An access to shared memory, at that line of the code.
    Memory {
        /// Where.
        address: usize,
        /// How.
        access: Access,
        /// The line.
        line: &'static Location<'static>,
    },
    /// A full fence.
    Fence {
        /// The line.
        line: &'static Location<'static>,
    },
    /// Something asked of the hardware; the number is the hardware's own.
    Machine {
        /// Which.
        number: u64,
        /// Whether it is a plain store, which may wait in the buffer.
        stores: bool,
    },
    /// It waits until something that it read last has changed.
    Wait,
    /// Its program is over; it takes interrupts.
    Idle,
    /// It found something wrong.
    Failed,
}

impl Step {
    /// Whether another CPU's hardware can depend on it: it changes memory, or is the hardware's own business.
    pub fn changes_memory(&self) -> bool {
        matches!(
            self,
            Step::Memory { access: Access::Store | Access::Locked, .. }
                | Step::Fence { .. }
                | Step::Machine { .. }
        )
    }
}
