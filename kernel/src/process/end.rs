//! The end of a process, for those who hold a file of it: whether it has come, and who wants to hear when it does.

use crate::files::{Observers, Readiness};
use crate::sync::SpinLock;

pub(crate) struct End {
    /// A lock and no atomic: who looks (`has_come`, after adding its observer) and who changes it (`announce`, before telling observers) must not
    /// miss each other, and it is the lock that orders them (`Observers::announce` says how). A store that releases and a load that acquires
    /// would let each see the other's old value.
    has_come: SpinLock<bool>,
    observers: Observers,
}

impl End {
    pub(super) fn new() -> End {
        End { has_come: SpinLock::new(false), observers: Observers::new() }
    }

    /// Whether the last thread is gone.
    pub(crate) fn has_come(&self) -> bool {
        *self.has_come.lock()
    }

    /// Who polls for it.
    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// It has: from here on it can be waited for.
    pub(super) fn announce(&self) {
        *self.has_come.lock() = true;
        self.observers.announce(Readiness::READABLE);
    }
}
