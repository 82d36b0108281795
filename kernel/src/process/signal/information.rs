//! What is known about one instance of a signal: Linux's `siginfo_t`.
//!
//! The kernel keeps the parts typed and lays them out only when they go to user memory. Information that came
//! from user mode (`rt_sigqueueinfo`) is kept as the bytes it came in, because only its sender knows their
//! meaning.

use super::set::Signal;

/// Size of `siginfo_t`.
pub(crate) const INFORMATION_SIZE: usize = 128;

/// Size of `struct signalfd_siginfo`.
pub(crate) const RECORD_SIZE: usize = 128;

/// Codes that say where a signal came from (`si_code`).
#[allow(missing_docs)] // the names are Linux's own
pub(crate) mod code {
    pub(crate) const SI_USER: i32 = 0;
    pub(crate) const SI_KERNEL: i32 = 0x80;
    pub(crate) const SI_TIMER: i32 = -2;
    pub(crate) const SI_MESGQ: i32 = -3;
    pub(crate) const SI_TKILL: i32 = -6;
    pub(crate) const SEGV_MAPERR: i32 = 1;
    pub(crate) const SEGV_ACCERR: i32 = 2;
    pub(crate) const BUS_ADRALN: i32 = 1;
    pub(crate) const BUS_ADRERR: i32 = 2;
    pub(crate) const FPE_INTDIV: i32 = 1;
    pub(crate) const FPE_FLTDIV: i32 = 3;
    pub(crate) const FPE_FLTOVF: i32 = 4;
    pub(crate) const FPE_FLTUND: i32 = 5;
    pub(crate) const FPE_FLTRES: i32 = 6;
    pub(crate) const FPE_FLTINV: i32 = 7;
    pub(crate) const ILL_ILLOPN: i32 = 2;
    pub(crate) const TRAP_TRACE: i32 = 2;
    pub(crate) const CLD_EXITED: i32 = 1;
    pub(crate) const CLD_KILLED: i32 = 2;
    pub(crate) const CLD_DUMPED: i32 = 3;
    pub(crate) const CLD_STOPPED: i32 = 5;
    pub(crate) const CLD_CONTINUED: i32 = 6;
}

/// The part of `siginfo_t` that depends on the signal's origin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// `kill`, `tkill`, `tgkill`, or the kernel itself (then both are 0).
    Sender {
        /// Process id of the sender.
        process: u32,
        /// Its real user id.
        user: u32,
    },
    /// A POSIX timer expired.
    Timer {
        /// The timer's id.
        timer: i32,
        /// Expirations that found the signal still pending.
        overrun: i32,
        /// `sigev_value`.
        value: u64,
    },
    /// A child changed state.
    Child {
        /// The child.
        process: u32,
        /// Its real user id.
        user: u32,
        /// Exit code, or the signal that killed, stopped or continued it.
        status: i32,
        /// User time in ticks of 10 ms.
        user_ticks: u64,
        /// System time in ticks of 10 ms.
        system_ticks: u64,
    },
    /// The processor raised it at this address.
    Fault {
        /// Address of the access or of the instruction.
        address: u64,
    },
    /// Bytes 16..128 as user mode gave them.
    Opaque([u8; INFORMATION_SIZE - 16]),
}

/// One instance of a signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Information {
    /// The signal.
    pub(crate) signal: Signal,
    /// `si_errno`: 0 unless a program queued another.
    pub(crate) error: i32,
    /// `si_code`.
    pub(crate) code: i32,
    /// The rest.
    pub(crate) origin: Origin,
}

impl Information {
    /// What the kernel itself sends, as SI_KERNEL.
    pub(crate) fn from_kernel(signal: Signal) -> Information {
        Information {
            signal,
            error: 0,
            code: code::SI_KERNEL,
            origin: Origin::Sender { process: 0, user: 0 },
        }
    }

    /// A `kill` by this process and user.
    pub(crate) fn from_user(signal: Signal, code: i32, process: u32, user: u32) -> Information {
        Information { signal, error: 0, code, origin: Origin::Sender { process, user } }
    }

    /// A value with its sender, as programs queue them too.
    pub(crate) fn queued(signal: Signal, code: i32, process: u32, user: u32, value: u64) -> Information {
        let mut rest = [0; INFORMATION_SIZE - 16];
        rest[..4].copy_from_slice(&process.to_le_bytes());
        rest[4..8].copy_from_slice(&user.to_le_bytes());
        rest[8..16].copy_from_slice(&value.to_le_bytes());
        Information { signal, error: 0, code, origin: Origin::Opaque(rest) }
    }

    /// A processor exception.
    pub(crate) fn fault(signal: Signal, code: i32, address: u64) -> Information {
        Information { signal, error: 0, code, origin: Origin::Fault { address } }
    }

    /// From the 128 bytes of a program's `siginfo_t`; the signal number in them is not looked at.
    pub(crate) fn from_bytes(signal: Signal, bytes: &[u8; INFORMATION_SIZE]) -> Information {
        let word = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut rest = [0; INFORMATION_SIZE - 16];
        rest.copy_from_slice(&bytes[16..]);
        Information { signal, error: word(4), code: word(8), origin: Origin::Opaque(rest) }
    }

    /// As `struct signalfd_siginfo`.
    pub(crate) fn to_record(self) -> [u8; RECORD_SIZE] {
        let mut bytes = [0; RECORD_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &u32::from(self.signal.number()).to_le_bytes());
        put(4, &self.error.to_le_bytes());
        put(8, &self.code.to_le_bytes());
        match self.origin {
            Origin::Sender { process, user } => {
                put(12, &process.to_le_bytes());
                put(16, &user.to_le_bytes());
            }
            Origin::Timer { timer, overrun, value } => {
                put(24, &timer.to_le_bytes());
                put(32, &overrun.to_le_bytes());
                put(44, &(value as u32).to_le_bytes());
                put(48, &value.to_le_bytes());
            }
            Origin::Child { process, user, status, user_ticks, system_ticks } => {
                put(12, &process.to_le_bytes());
                put(16, &user.to_le_bytes());
                put(40, &status.to_le_bytes());
                put(56, &user_ticks.to_le_bytes());
                put(64, &system_ticks.to_le_bytes());
            }
            Origin::Fault { address } => put(72, &address.to_le_bytes()),
            // A program's own: sender, user and value.
            Origin::Opaque(rest) => {
                put(12, &rest[..8]);
                put(44, &rest[8..12]);
                put(48, &rest[8..16]);
            }
        }
        bytes
    }

    /// As `siginfo_t`, in Linux's layout for x86-64.
    pub(crate) fn to_bytes(self) -> [u8; INFORMATION_SIZE] {
        let mut bytes = [0; INFORMATION_SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &i32::from(self.signal.number()).to_le_bytes());
        put(4, &self.error.to_le_bytes());
        put(8, &self.code.to_le_bytes());
        match self.origin {
            Origin::Sender { process, user } => {
                put(16, &process.to_le_bytes());
                put(20, &user.to_le_bytes());
            }
            Origin::Timer { timer, overrun, value } => {
                put(16, &timer.to_le_bytes());
                put(20, &overrun.to_le_bytes());
                put(24, &value.to_le_bytes());
            }
            Origin::Child { process, user, status, user_ticks, system_ticks } => {
                put(16, &process.to_le_bytes());
                put(20, &user.to_le_bytes());
                put(24, &status.to_le_bytes());
                put(32, &user_ticks.to_le_bytes());
                put(40, &system_ticks.to_le_bytes());
            }
            Origin::Fault { address } => put(16, &address.to_le_bytes()),
            Origin::Opaque(rest) => put(16, &rest),
        }
        bytes
    }
}
