//! Ctrl-C and its relatives while a measurement goes on: noted at any time, asked for between runs.
//!
//! A run that is under way hears of the signal itself (`session`) and ends its guest. Between runs nobody would, and the default
//! is to die at once with everything measured lost: so the signals are caught from the first preparation to the last written file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// The signal that asked us to stop, if one did.
#[derive(Debug)]
pub(super) struct Interruption {
    /// Its number; zero for none.
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// Listens from now on.
    ///
    /// # Errors
    /// A host failure when the system refuses.
    pub(super) fn listen() -> Result<Self, Failure> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_usize(number, signal.clone(), number.unsigned_abs() as usize)
                .map_err(|error| Failure::host("listen for signals", error))?;
        }
        Ok(Interruption { signal })
    }

    /// The signal that came.
    pub(super) fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|signal| *signal != 0)
    }

    /// Ends with the failure of that signal, if one came.
    ///
    /// # Errors
    /// A signal failure.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.signal().map_or(Ok(()), |signal| Err(Failure::Signal(signal)))
    }
}
