//! Who makes the choices.

use crate::Digest;
use crate::choice::Priced;

/// Makes the choices of one run after the other.
pub trait Strategy {
    /// Begins another run; `false` when there is no further one.
    fn begin(&mut self) -> bool;

    /// Chooses one of several offers, by its index. `state` tells where the run stands; it is some work to find out.
    fn choose(&mut self, offers: &[Priced], state: &dyn Fn() -> Digest) -> usize;
}
