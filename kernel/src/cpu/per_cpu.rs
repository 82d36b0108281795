//! One value for each CPU, on cache lines of their own.

use super::MAX_CPUS;

/// A value that shares no cache line with its neighbours (two lines, because CPUs fetch them in pairs).
#[repr(align(128))]
pub(crate) struct Aligned<T>(pub(crate) T);

/// One value for each CPU.
pub(crate) struct PerCpu<T>([Aligned<T>; MAX_CPUS]);

impl<T> PerCpu<T> {
    /// Usually `PerCpu::new([const { Aligned(VALUE) }; MAX_CPUS])`.
    pub(crate) const fn new(values: [Aligned<T>; MAX_CPUS]) -> Self {
        Self(values)
    }

    /// The running CPU's value. Stays the right one until the task may sleep or yield.
    pub(crate) fn here(&self) -> &T {
        &self.0[super::index()].0
    }

    /// The value of a CPU.
    pub(crate) fn of(&self, cpu: usize) -> &T {
        &self.0[cpu].0
    }
}
