//! Grace periods: the barrier that interrupts nobody, for those who have time.
//!
//! It begins with a fence and ends when every CPU has been outside user mode at some moment since. The argument is that of `barrier.rs` for a CPU
//! in the kernel, made at whatever moment that is: what user code did before is visible to whoever sees the end, and what it
//! does afterwards comes after the beginning. Whoever waits looks from time to time; who ends the user code's turns is
//! the kernel's business (its tick, say).

use crate::crossings::Crossing;
use crate::fault::Fault;
use crate::sync::{Ordering, fence};
use crate::{Coherence, CpuSet, MAX_CPUS, Platform};

/// A grace period in progress. See [`Coherence::begin_grace_period`].
#[derive(Debug)]
pub struct GracePeriod {
    /// CPUs that have been in user mode ever since.
    waiting: CpuSet,
    crossings: [Crossing; MAX_CPUS],
}

impl<P: Platform> Coherence<P> {
    /// Begins a grace period for what the CPUs of `cpus` do in user mode, in any space. A CPU that comes online later need not
    /// be among them, as it begins in the kernel.
    ///
    /// # Panics
    /// If the platform has no [`crossings`](Platform::crossings).
    pub fn begin_grace_period(&self, cpus: CpuSet) -> GracePeriod {
        // Full fence, between the caller's accesses and the crossings. It pairs with the one in `enter_user`.
        if !self.has_fault(Fault::NoFenceGracePeriod) {
            fence(Ordering::SeqCst);
        }
        let mut crossings = [Crossing::NONE; MAX_CPUS];
        for cpu in &cpus {
            crossings[cpu.index()] = self.crossing(cpu).expect("a grace period needs counted crossings");
        }
        let waiting = cpus.iter().filter(|cpu| crossings[cpu.index()].is_user()).collect();
        GracePeriod { waiting, crossings }
    }
}

impl GracePeriod {
    /// Whether it is over: then it stays so, and what user code did before is visible. Otherwise ask again later, of the same
    /// `coherence`. May be asked on any CPU.
    pub fn is_over<P: Platform>(&mut self, coherence: &Coherence<P>) -> bool {
        // Acquire (in `crossing`): a count that has moved on was stored after what user code did before.
        let stays = |cpu: &crate::CpuId| coherence.crossing(*cpu) == Some(self.crossings[cpu.index()]);
        self.waiting = self.waiting.iter().filter(stays).collect();
        self.waiting.is_empty()
    }
}
