//! What went wrong, as one sentence and an exit status.
//!
//! Statuses are part of the interface (`docs/guide/run.md`): below 128 and not listed here they are the program's own.

use std::fmt::Display;

/// A reason to end other than the program's own end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for cannot be: a flag, a file, a program. Nothing was started. Status 2.
    Usage(String),
    /// The guest panicked, hung, reset itself or ended without a report. Status 3.
    Guest(String),
    /// This machine lacks something, or refused something. Status 4.
    Host(String),
    /// A signal asked us to stop; nothing is printed. Status 128 + signal.
    Signal(i32),
    /// A program of the project that was started has said what is wrong, and this was its status.
    Told(u8),
}

impl Failure {
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Failure::Usage(sentence.into())
    }

    /// "cannot `attempt`: `cause`".
    pub(crate) fn host(attempt: impl Display, cause: impl Display) -> Self {
        Failure::Host(format!("cannot {attempt}: {cause}"))
    }

    /// The exit status of the command that failed so.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Guest(_) => 3,
            Failure::Host(_) => 4,
            Failure::Told(status) => *status,
            Failure::Signal(signal) => 128u8.saturating_add(u8::try_from(*signal).unwrap_or(0)),
        }
    }

    /// The sentence to print; `None` when the user already knows.
    pub(crate) fn sentence(&self) -> Option<&str> {
        match self {
            Failure::Usage(sentence) | Failure::Guest(sentence) | Failure::Host(sentence) => Some(sentence),
            Failure::Signal(_) | Failure::Told(_) => None,
        }
    }
}
