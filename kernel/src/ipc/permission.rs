//! Who made an object, whose it is, and what others may do with it.

use crate::process::credentials::{CAP_IPC_OWNER, CAP_SYS_ADMIN, Credentials};
use crate::process::current;
use crate::syscall::Errno;
use alloc::format;
use alloc::string::String;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The nine bits of a mode that are rights.
const RIGHTS: u32 = 0o777;

/// `struct ipc64_perm`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Record {
    key: i32,
    user: u32,
    group: u32,
    creating_user: u32,
    creating_group: u32,
    mode: u32,
    sequence: u16,
    padding: [u16; 3],
    unused: [u64; 2],
}

/// The owner and the rights that `IPC_SET` gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    user: u32,
    group: u32,
    mode: u32,
}

impl Record {
    /// What of it `IPC_SET` takes.
    pub(crate) fn change(&self) -> Change {
        Change { user: self.user, group: self.group, mode: self.mode & RIGHTS }
    }

    /// Key, number and mode as `/proc/sysvipc` shows them.
    pub(super) fn columns(&self, number: i32) -> String {
        format!("{:10} {number:10}  {:4o}", self.key, self.mode)
    }

    /// User, group, and those of the creator as `/proc/sysvipc` shows them.
    pub(super) fn owners(&self) -> String {
        format!("{:5} {:5} {:5} {:5}", self.user, self.group, self.creating_user, self.creating_group)
    }
}

/// Who may do what with one object. Its record has no marks in the mode.
#[derive(Clone, Debug)]
pub(crate) struct Permission(Record);

impl Permission {
    /// The caller's own object.
    pub(super) fn new(key: i32, mode: u32, sequence: u16) -> Self {
        let credentials = current().process().credentials();
        let (user, group) = (credentials.user.effective, credentials.group.effective);
        Self(Record {
            key,
            user,
            group,
            creating_user: user,
            creating_group: group,
            mode: mode & RIGHTS,
            sequence,
            padding: [0; 3],
            unused: [0; 2],
        })
    }

    pub(crate) fn key(&self) -> i32 {
        self.0.key
    }

    /// From now on no key finds it.
    pub(super) fn forget_key(&mut self) {
        self.0.key = super::PRIVATE;
    }

    pub(super) fn set(&mut self, change: Change) {
        (self.0.user, self.0.group, self.0.mode) = (change.user, change.group, change.mode);
    }

    /// With marks in the mode, too.
    pub(super) fn record(&self, marks: u32) -> Record {
        Record { mode: self.0.mode | marks, ..self.0 }
    }

    /// Whether the caller has all rights of `wanted`, in whichever of its three groups of bits they stand.
    ///
    /// # Errors
    /// EACCES.
    pub(crate) fn check(&self, wanted: u32) -> Result<(), Errno> {
        let own = current().process().credentials();
        let wanted = (wanted >> 6 | wanted >> 3 | wanted) & 7;
        let is_member = |group| own.group.effective == group || own.groups.contains(&group);
        let granted = if self.is_of(&own) {
            self.0.mode >> 6
        } else if is_member(self.0.group) || is_member(self.0.creating_group) {
            self.0.mode >> 3
        } else {
            self.0.mode
        };
        if wanted & !granted == 0 || own.has(CAP_IPC_OWNER) { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Whether the caller may change or remove it.
    ///
    /// # Errors
    /// EPERM.
    pub(crate) fn check_owner(&self) -> Result<(), Errno> {
        let own = current().process().credentials();
        if self.is_of(&own) || own.has(CAP_SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
    }

    fn is_of(&self, credentials: &Credentials) -> bool {
        let user = credentials.user.effective;
        user == self.0.user || user == self.0.creating_user
    }
}
