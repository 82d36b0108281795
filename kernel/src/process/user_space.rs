//! An address space in the hands of processes.
//!
//! CPUs keep an `Arc` to the address space that they have loaded, also when they only borrow it, so the
//! number of references does not say whether a program can still run in it. [`UserSpace`] counts users:
//! threads' processes, and for a moment those who look at it from outside. When the last lets go, the
//! mappings and their frames are given back; the tables follow once no CPU has them loaded.

use crate::files::Running;
use crate::memory::AddressSpace;
use crate::sync::SpinLock;
use alloc::sync::Arc;
use core::ops::Range;

/// A counted use of an address space.
pub(crate) struct UserSpace {
    space: Arc<AddressSpace>,
    program: SpinLock<Program>,
}

/// What `execve` put there.
#[derive(Clone, Default)]
pub(crate) struct Program {
    /// The executable itself, for `/proc/PID/exe`.
    pub(crate) file: Option<Arc<Running>>,
    /// Where the argument strings are.
    pub(crate) arguments: Range<u64>,
    /// Where the environment strings are.
    pub(crate) environment: Range<u64>,
    /// Where the auxiliary vector's owner, the first stack pointer, was.
    pub(crate) stack_start: u64,
}

impl UserSpace {
    /// Takes over an address space that no one else uses.
    pub(crate) fn new(space: Arc<AddressSpace>, program: Program) -> Arc<UserSpace> {
        Arc::new(UserSpace { space, program: SpinLock::new(program) })
    }

    /// The address space itself, as the task and the memory calls want it.
    pub(crate) fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// What runs in it.
    pub(crate) fn program(&self) -> Program {
        self.program.lock().clone()
    }

    /// A copy for a forked child.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn fork(&self) -> Result<Arc<UserSpace>, memory::Error> {
        let space = self.space.fork()?;
        space.space().inherit_registrations(self.space.space());
        Ok(UserSpace::new(space, self.program()))
    }
}

impl Drop for UserSpace {
    fn drop(&mut self) {
        self.space.teardown_user();
    }
}
