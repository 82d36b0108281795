//! A guest run whose output is kept instead of shown.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::failure::Failure;
use crate::order::Prepared;
use crate::session::{Input, Outcome, Streams};

/// A run with everything that came out of it.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) ended: Result<Outcome, Failure>,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
}

impl Captured {
    /// Runs a guest once.
    pub(crate) fn run(prepared: &Prepared, input: Input, limit: Option<Duration>) -> Self {
        let (output, errors) = (Capture::default(), Capture::default());
        let streams = Streams {
            input,
            output: Box::new(output.clone()),
            errors: Box::new(errors.clone()),
            kernel_log: None,
        };
        let ended = prepared.run(streams, limit);
        Captured { ended, output: output.take(), errors: errors.take() }
    }

    /// A run that did not come about.
    pub(crate) fn none(failure: Failure) -> Self {
        Captured { ended: Err(failure), output: Vec::new(), errors: Vec::new() }
    }

    /// Standard output, as text.
    pub(crate) fn output_text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Standard error, as text.
    pub(crate) fn errors_text(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }
}

/// A sink that keeps what it gets.
#[derive(Clone, Debug, Default)]
struct Capture(Arc<Mutex<Vec<u8>>>);

impl Capture {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
