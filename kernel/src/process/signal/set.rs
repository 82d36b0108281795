//! Signals by number, and sets of them.
//!
//! A [`Signal`] is always in 1..=64. A [`SignalSet`] has the layout of Linux's `sigset_t` on x86-64: bit n-1
//! stands for signal n. Linux has 32 real-time signals, 32..=64 in the kernel's own count (libc keeps the
//! first few to itself).

use core::fmt;
use core::ops::{BitAnd, BitOr, Not};

/// One signal, 1..=64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signal(u8);

/// What happens when a signal is delivered whose action is SIG_DFL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DefaultAction {
    /// Ends the process.
    Terminate,
    /// Ends the process and leaves a core file if RLIMIT_CORE allows one.
    Core,
    /// Nothing.
    Ignore,
    /// Stops every thread of the process.
    Stop,
    /// Lets a stopped process run again (done when the signal is sent; its delivery does nothing).
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:literal)*) => {
        #[allow(dead_code, missing_docs)] // the full list reads better than the part that is used
        impl Signal {
            $(pub(crate) const $name: Signal = Signal($number);)*
        }
    };
}

signals! {
    SIGHUP = 1 SIGINT = 2 SIGQUIT = 3 SIGILL = 4 SIGTRAP = 5 SIGABRT = 6 SIGBUS = 7 SIGFPE = 8 SIGKILL = 9
    SIGUSR1 = 10 SIGSEGV = 11 SIGUSR2 = 12 SIGPIPE = 13 SIGALRM = 14 SIGTERM = 15 SIGSTKFLT = 16 SIGCHLD = 17
    SIGCONT = 18 SIGSTOP = 19 SIGTSTP = 20 SIGTTIN = 21 SIGTTOU = 22 SIGURG = 23 SIGXCPU = 24 SIGXFSZ = 25
    SIGVTALRM = 26 SIGPROF = 27 SIGWINCH = 28 SIGIO = 29 SIGPWR = 30 SIGSYS = 31
}

impl Signal {
    /// The first signal that queues: those below are only pending or not.
    const FIRST_REAL_TIME: u8 = 32;

    /// The signal with this number, if there is one.
    pub(crate) fn new(number: u64) -> Option<Signal> {
        if (1..=64).contains(&number) { Some(Signal(number as u8)) } else { None }
    }

    /// The number, 1..=64.
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The number counted from zero, as an index of tables.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0) - 1
    }

    /// Whether several instances can be pending at once.
    pub(crate) fn is_real_time(self) -> bool {
        self.0 >= Self::FIRST_REAL_TIME
    }

    /// What SIG_DFL means for it.
    pub(crate) fn default_action(self) -> DefaultAction {
        match self {
            Signal::SIGCHLD | Signal::SIGURG | Signal::SIGWINCH => DefaultAction::Ignore,
            Signal::SIGCONT => DefaultAction::Continue,
            Signal::SIGSTOP | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU => DefaultAction::Stop,
            Signal::SIGQUIT
            | Signal::SIGILL
            | Signal::SIGTRAP
            | Signal::SIGABRT
            | Signal::SIGBUS
            | Signal::SIGFPE
            | Signal::SIGSEGV
            | Signal::SIGXCPU
            | Signal::SIGXFSZ
            | Signal::SIGSYS => DefaultAction::Core,
            _ => DefaultAction::Terminate,
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "signal {}", self.0)
    }
}

/// A set of signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SignalSet(u64);

impl SignalSet {
    /// No signal.
    pub(crate) const EMPTY: SignalSet = SignalSet(0);
    /// The two that cannot be blocked, caught or ignored.
    pub(crate) const UNBLOCKABLE: SignalSet =
        SignalSet(1 << (Signal::SIGKILL.0 - 1) | 1 << (Signal::SIGSTOP.0 - 1));
    /// The four that stop a process.
    pub(crate) const STOPPING: SignalSet = SignalSet(
        1 << (Signal::SIGSTOP.0 - 1)
            | 1 << (Signal::SIGTSTP.0 - 1)
            | 1 << (Signal::SIGTTIN.0 - 1)
            | 1 << (Signal::SIGTTOU.0 - 1),
    );
    /// Those that the processor raises: taken before others, so that a handler sees the fault that it caused.
    pub(crate) const SYNCHRONOUS: SignalSet = SignalSet(
        1 << (Signal::SIGSEGV.0 - 1)
            | 1 << (Signal::SIGBUS.0 - 1)
            | 1 << (Signal::SIGILL.0 - 1)
            | 1 << (Signal::SIGTRAP.0 - 1)
            | 1 << (Signal::SIGFPE.0 - 1)
            | 1 << (Signal::SIGSYS.0 - 1),
    );

    /// From the bits of a `sigset_t`.
    pub(crate) const fn from_bits(bits: u64) -> SignalSet {
        SignalSet(bits)
    }

    /// The bits of a `sigset_t`.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// The set of one.
    pub(crate) const fn of(signal: Signal) -> SignalSet {
        SignalSet(1 << (signal.0 - 1))
    }

    /// Whether `signal` is in it.
    pub(crate) const fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << (signal.0 - 1)) != 0
    }

    /// Whether it is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// With `signal` in it.
    pub(crate) fn insert(&mut self, signal: Signal) {
        self.0 |= SignalSet::of(signal).0;
    }

    /// Without `signal`.
    pub(crate) fn remove(&mut self, signal: Signal) {
        self.0 &= !SignalSet::of(signal).0;
    }

    /// The member to deliver next: synchronous ones first, then by number.
    pub(crate) fn next(self) -> Option<Signal> {
        let urgent = self & SignalSet::SYNCHRONOUS;
        let bits = if urgent.is_empty() { self.0 } else { urgent.0 };
        if bits == 0 { None } else { Some(Signal(bits.trailing_zeros() as u8 + 1)) }
    }
}

impl BitAnd for SignalSet {
    type Output = SignalSet;
    fn bitand(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & other.0)
    }
}

impl BitOr for SignalSet {
    type Output = SignalSet;
    fn bitor(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 | other.0)
    }
}

impl Not for SignalSet {
    type Output = SignalSet;
    fn not(self) -> SignalSet {
        SignalSet(!self.0)
    }
}
