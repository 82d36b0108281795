//! What can go wrong in an operation on memory.
//!
//! Two kinds, kept apart because they reach a program by different roads: an [`Error`] is the answer of a system
//! call and maps one to one to an errno; a [`Fault`] is the answer to an access and becomes a signal (or `EFAULT`
//! when the kernel made the access on the program's behalf).

/// Why an operation on an address space was refused. Each variant is one errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ENOMEM`: no memory, no room in the address space, over a limit, or a hole in a range that may have none.
    OutOfMemory,
    /// `EINVAL`: the arguments make no sense together.
    Invalid,
    /// `EACCES`: the mapped object does not allow these rights.
    NotAllowed,
    /// `EEXIST`: `MAP_FIXED_NOREPLACE` met an existing mapping.
    Exists,
    /// `EFAULT`: the range is not mapped.
    NotMapped,
    /// `EAGAIN`: try again later (over the limit of locked memory).
    Again,
    /// `EPERM`: never allowed for this caller.
    Permission,
    /// `EBUSY`: in use.
    Busy,
    /// `EOVERFLOW`: a number that has no room.
    Overflow,
    /// `ENOENT`: nothing there that a monitor may fill in.
    NotFound,
    /// `ESRCH`: the address space has ended.
    Ended,
}

/// Why an access to user memory could not be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is mapped there: `SIGSEGV` with `SEGV_MAPERR`.
    NotMapped,
    /// The mapping does not allow this access: `SIGSEGV` with `SEGV_ACCERR`.
    NotAllowed,
    /// The mapping's object has no page there: `SIGBUS` with `BUS_ADRERR`.
    Bus,
    /// The monitor that was asked had not answered when the program had to end. It is not going to look at what it gets.
    Abandoned,
    /// No frame could be had. The kernel picks a victim, names it and kills it; the access is then retried.
    OutOfMemory,
}

/// There was no frame to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Error::OutOfMemory
    }
}

impl From<OutOfMemory> for Fault {
    fn from(_: OutOfMemory) -> Self {
        Fault::OutOfMemory
    }
}
