//! Where a process stands in the tree, and as whom.
//!
//! Threads share one `Context` (CLONE_FS) or have their own; a path walk works on a snapshot of it, so a
//! `chdir` in another thread cannot change a walk under way.

use super::Entry;
use crate::sync::SpinLock;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Working directory, root and file creation mask of a process.
pub(crate) struct Context {
    state: SpinLock<State>,
}

#[derive(Clone)]
struct State {
    root: Arc<Entry>,
    working: Arc<Entry>,
    umask: u32,
}

impl Context {
    pub(crate) fn new(root: Arc<Entry>) -> Self {
        Self { state: SpinLock::new(State { working: root.clone(), root, umask: 0o022 }) }
    }

    /// A copy that changes independently, for a new process.
    pub(crate) fn duplicate(&self) -> Self {
        Self { state: SpinLock::new(self.state.lock().clone()) }
    }

    pub(crate) fn root(&self) -> Arc<Entry> {
        self.state.lock().root.clone()
    }

    pub(crate) fn working(&self) -> Arc<Entry> {
        self.state.lock().working.clone()
    }

    pub(crate) fn umask(&self) -> u32 {
        self.state.lock().umask
    }

    /// Sets the mask to the low nine bits of `umask` and returns the former one.
    pub(crate) fn set_umask(&self, umask: u32) -> u32 {
        core::mem::replace(&mut self.state.lock().umask, umask & 0o777)
    }

    pub(crate) fn set_working(&self, entry: Arc<Entry>) {
        let former = core::mem::replace(&mut self.state.lock().working, entry);
        drop(former);
    }

    pub(crate) fn set_root(&self, entry: Arc<Entry>) {
        let former = core::mem::replace(&mut self.state.lock().root, entry);
        drop(former);
    }
}

/// As whom a file is looked at: the identity that permission checks use.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) groups: Vec<u32>,
}

impl Caller {
    /// The kernel itself, and files that nobody made.
    pub(crate) const fn root() -> Self {
        Self { user: 0, group: 0, groups: Vec::new() }
    }

    pub(crate) fn is_member(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
