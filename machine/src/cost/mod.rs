//! The cost model: what interrupts and time coherence takes on machines that nobody here has, under kernels that nobody here built.
//!
//! A simulation of discrete events (`simulation/`): CPUs on sockets go through programs (`workload.rs`) whose changes of mappings are flushed
//! as a kernel would (`policy.rs`), at what that costs (`parameters.rs`). What our own kernel decides is asked of the real `coherence`
//! (`consultation.rs`). `calibration/` holds the model against published figures, and says which it does not reproduce.
//!
//! All of it is prediction. `docs/design/0017-cost-model.md` says what is modelled and what is not.

pub mod calibration;
mod consultation;
mod locks;
mod outcome;
mod parameters;
mod policy;
mod random;
mod simulation;
mod topology;
mod workload;

pub use consultation::{Request, Work, ask, ask_barrier};
pub use outcome::Outcome;
pub use parameters::{Basis, Description, Parameters, Platform};
pub use policy::{Means, NAMES, Policy, Reclaim, Standing};
pub use simulation::{Setup, decide, simulate};
pub use workload::{Beside, Case, Change, Kind, WORKLOADS, Workload};
