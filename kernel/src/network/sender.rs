//! Who sent a message, or made a connection.

use crate::process;

/// Who sent something, with Linux's layout (`struct ucred`).
#[derive(Clone, Copy, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) process: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Sender {
    /// What is said of somebody who is not known.
    pub(crate) const NOBODY: Self = Self { process: 0, user: u32::MAX, group: u32::MAX };

    /// The caller with its effective ids.
    pub(crate) fn effective() -> Self {
        let process = process::current().process().clone();
        let credentials = process.credentials();
        Self { process: process.id(), user: credentials.user.effective, group: credentials.group.effective }
    }

    /// The caller with its real ids, as messages have them.
    pub(crate) fn real() -> Self {
        let process = process::current().process().clone();
        let credentials = process.credentials();
        Self { process: process.id(), user: credentials.user.real, group: credentials.group.real }
    }
}
