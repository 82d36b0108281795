//! A machine whose every step is chosen by the explorer, with the real `coherence` and `memory` running on it.
//!
//! * **Translation caches** (`caches.rs`) keep what they have until they are told to drop it: translations and, separately, the upper
//!   levels on the way to them, under tags if the machine has any. In some scenarios they lose one or the other by themselves.
//! * **Walkers** (`walker.rs`) fill them with whatever the tables allow at any moment, also on CPUs that only borrow a space, set
//!   the accessed bit before they cache, and the dirty bit in a locked step that looks at the entry again.
//! * **Stores wait** in buffers and **interrupts come late**; the crate `explorer` sees to both.
//! * **Invalidations travel** (`remote.rs`) to other CPUs without interrupts, on machines that broadcast and under hypervisors.
//! * **A hypervisor** (`hypervisor.rs`) may deschedule a CPU, and drop what it has cached before it runs again.
//! * **A device** (`device.rs`) may walk the tables too, with caches of its own.
//! * **The oracle** (`oracle.rs`) marks each cached entry when a promise makes it worthless, and speaks when it is used. What memory
//!   barriers promise is judged in `order.rs`, by the stores that wait and the instructions that are fetched.
//! * **Interrupts that cannot be masked** read the program's memory (`unmaskable.rs`), and **threads move** from CPU to CPU.
//! * **A monitor** (`monitor.rs`) is told of faults, and resolves them.
//! * **A small kernel** (`small_kernel.rs`) does what `memory` never does: it releases locks before it flushes.
//!
//! A [`Scenario`] says which CPUs do what on it; `check/` explores scenarios, and the past bugs, which are scenarios of which the
//! code under check has been broken in one place.

mod agents;
mod answers;
mod caches;
mod check;
mod device;
mod events;
mod fuzzing;
mod hypervisor;
mod locks;
mod machine;
mod monitor;
mod objects;
mod operation;
mod oracle;
mod order;
mod past_bug;
mod past_bugs;
mod platform;
mod probe;
mod program;
mod remote;
mod scenario;
mod scenarios;
mod sequence;
mod small_kernel;
mod swapping;
mod unmaskable;
mod user;
mod walker;

pub use check::{Check, main};
pub use fuzzing::Fuzzing;
pub use machine::{Machine, SimulatedEnvironment};
pub use past_bug::{HardwareMistake, KernelMistake, Mistake, PastBug};
pub use probe::{names, probe};
pub use scenario::Scenario;
