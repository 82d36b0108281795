//! What a process does about each signal: its table of handlers.
//!
//! Shared between processes only by `clone(CLONE_SIGHAND)` without CLONE_THREAD; `execve` unshares it.

use super::set::{DefaultAction, Signal, SignalSet};
use alloc::vec;
use alloc::vec::Vec;

bitflags::bitflags! {
    /// `sa_flags` of `rt_sigaction`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct ActionFlags: u64 {
        /// No SIGCHLD when a child stops.
        const NO_CHILD_STOP = 0x1;
        /// Children leave no zombie.
        const NO_CHILD_WAIT = 0x2;
        /// The handler takes three arguments. (The frame is the same without.)
        const INFORMATION = 0x4;
        /// `restorer` is valid; glibc, musl and Go always set it on x86-64.
        const RESTORER = 0x0400_0000;
        /// Run on the alternate stack if there is one.
        const ON_STACK = 0x0800_0000;
        /// Run an interrupted call again.
        const RESTART = 0x1000_0000;
        /// Do not block the signal while its handler runs.
        const NO_DEFER = 0x4000_0000;
        /// Back to the default once the handler starts.
        const RESET = 0x8000_0000;
    }
}

/// Where a signal goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Disposition {
    /// SIG_DFL.
    Default,
    /// SIG_IGN.
    Ignore,
    /// A function in user mode.
    Handler(u64),
}

impl Disposition {
    /// From `sa_handler`.
    pub(crate) fn from_register(value: u64) -> Disposition {
        match value {
            0 => Disposition::Default,
            1 => Disposition::Ignore,
            address => Disposition::Handler(address),
        }
    }

    /// As `sa_handler`.
    pub(crate) fn to_register(self) -> u64 {
        match self {
            Disposition::Default => 0,
            Disposition::Ignore => 1,
            Disposition::Handler(address) => address,
        }
    }
}

/// One entry of the table, `struct sigaction` of the kernel's ABI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    /// Where the signal goes.
    pub(crate) disposition: Disposition,
    /// How.
    pub(crate) flags: ActionFlags,
    /// Where the handler returns to; calls `rt_sigreturn`.
    pub(crate) restorer: u64,
    /// Blocked besides while the handler runs.
    pub(crate) mask: SignalSet,
}

impl Action {
    const DEFAULT: Action = Action {
        disposition: Disposition::Default,
        flags: ActionFlags::empty(),
        restorer: 0,
        mask: SignalSet::EMPTY,
    };

    /// Whether an instance of `signal` under this action changes nothing at all.
    pub(crate) fn ignores(&self, signal: Signal) -> bool {
        match self.disposition {
            Disposition::Ignore => true,
            Disposition::Default => signal.default_action() == DefaultAction::Ignore,
            Disposition::Handler(_) => false,
        }
    }
}

/// The actions for all signals; in the heap, as two kilobytes are much for a kernel stack.
#[derive(Clone)]
pub(crate) struct Actions(Vec<Action>);

impl Actions {
    /// Every signal at its default.
    pub(crate) fn new() -> Actions {
        Actions(vec![Action::DEFAULT; 64])
    }

    /// The action for `signal`.
    pub(crate) fn get(&self, signal: Signal) -> Action {
        self.0[signal.index()]
    }

    /// Sets the action for `signal`.
    pub(crate) fn set(&mut self, signal: Signal, action: Action) {
        self.0[signal.index()] = action;
    }

    /// Back to the default, keeping the flags as SA_RESETHAND does.
    pub(crate) fn reset_disposition(&mut self, signal: Signal) {
        self.0[signal.index()].disposition = Disposition::Default;
    }

    /// What `execve` and CLONE_CLEAR_SIGHAND leave: no handlers; ignored signals stay ignored.
    pub(crate) fn without_handlers(&self) -> Actions {
        let mut kept = Actions::new();
        for (new, old) in kept.0.iter_mut().zip(&self.0) {
            if old.disposition == Disposition::Ignore {
                new.disposition = Disposition::Ignore;
            }
        }
        kept
    }
}
