//! Everything that is x86-64: registers, ports, segments, entry and exit code, floating-point state, interrupt controllers.
//!
//! The rest of the kernel sees typed functions; the machine's rules (which order, which bits) stay in here.

pub(crate) mod apic;
pub(crate) mod descriptor;
pub(crate) mod entry;
pub(crate) mod floating_point;
pub(crate) mod io_apic;
pub(crate) mod layout;
pub(crate) mod port;
pub(crate) mod registers;
pub(crate) mod switch;
pub(crate) mod trap_frame;

pub(crate) use floating_point::FpuState;
pub(crate) use layout::USER_END;
pub(crate) use trap_frame::{SYSTEM_CALL, TrapFrame};
