//! What the crate needs from its surroundings.

use coherence::{Coherence, CpuId, Platform};
use lock_api::{RawMutex, RawRwLock};

use crate::frames::Frames;
use crate::monitor::Monitor;
use crate::swap::Swap;
use crate::sync::AtomicU64;
use crate::waiting::Waiting;

/// The surroundings of all address spaces of one machine: its physical memory, its coherence, its locks.
///
/// A cheap handle (in a kernel a unit struct, in a test an `Arc`), cloned into everything that must find its way back.
pub trait Environment: Clone + Send + Sync + 'static {
    /// The machine, as `coherence` sees it.
    type Platform: Platform + 'static;
    /// Locks the areas of one address space. It may sleep; page faults take it shared. Interrupts stay on while it is
    /// held, and while it is waited for.
    type AreaLock: RawRwLock + Send + Sync + 'static;
    /// Locks one page table, one object, one cache of frames. It spins, with interrupts left as they are; if they are
    /// off, its waiting loop answers shootdown requests (flushes are requested while table locks are held).
    type TableLock: RawMutex + Send + Sync + 'static;
    /// Who may be told of faults: [`Unmonitored`](crate::Unmonitored) where nobody is.
    type Monitor: Monitor<Self>;

    /// The one coherence of the machine.
    fn coherence(&self) -> &Coherence<Self::Platform>;

    /// The machine's physical memory.
    fn frames(&self) -> &Frames<Self::TableLock>;

    /// Where private pages go that there is no room for.
    fn swap(&self) -> &Swap<Self>;
    /// The machine's pages whose flush waits.
    fn waiting(&self) -> &Waiting<Self>;

    /// Writes the kernel's entries into the upper half (entries 256 to 511) of a fresh root table.
    fn fill_kernel_half(&self, upper_half: &[AtomicU64]);

    /// The CPU that runs this. A stale answer costs speed only.
    fn current_cpu(&self) -> CpuId;

    /// A number for the thread that runs this: mappings of threads with other numbers are placed apart from its own, as far as that goes.
    fn current_thread(&self) -> u64 {
        self.current_cpu().index() as u64
    }

    /// Called now and then in long loops, with only an area lock held: lets others run.
    fn yield_if_needed(&self) {}
}
