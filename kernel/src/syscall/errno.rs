//! Errors as Linux numbers them.
//!
//! An [`Errno`] is what a system call hands back to user mode, negated in `rax`. The numbers come from the
//! ABI crate; this file only gives them a type, so that a count of bytes and an error cannot be taken for
//! each other.
//!
//! Four numbers beyond the ABI never reach user mode. A call that was interrupted by a signal returns one of
//! them to say what is to happen afterwards, and signal delivery (`process::signal::deliver`) turns it into
//! EINTR or into a second run of the call:
//!
//! | value | a handler runs | no handler runs |
//! |---|---|---|
//! | `ERESTARTSYS` | again if the handler has SA_RESTART, else EINTR | again |
//! | `ERESTARTNOINTR` | again | again |
//! | `ERESTARTNOHAND` | EINTR | again |
//! | `ERESTART_RESTARTBLOCK` | EINTR | `restart_syscall`, which goes on with what was left (see `process::restart`) |

use core::fmt;
use linux_raw_sys::errno as abi;

/// An error number of Linux, always in 1..=4095.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Errno(u16);

macro_rules! errors {
    ($($name:ident)*) => {
        impl Errno {
            $(#[allow(missing_docs)] pub(crate) const $name: Errno = Errno(abi::$name as u16);)*

            fn name(self) -> Option<&'static str> {
                match self {
                    $(Errno::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

errors! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY
    EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK
    EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENODATA ETIME EPROTO
    EBADMSG EOVERFLOW EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT
    ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH
    ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETIMEDOUT ECONNREFUSED EHOSTDOWN
    EHOSTUNREACH EALREADY ETOOMANYREFS EINPROGRESS ESTALE EDQUOT ECANCELED ELIBBAD EOWNERDEAD ENOTRECOVERABLE
}

impl Errno {
    /// Interrupted; run again unless a handler without SA_RESTART ran.
    pub(crate) const ERESTARTSYS: Errno = Errno(512);
    /// Interrupted; always run again.
    pub(crate) const ERESTARTNOINTR: Errno = Errno(513);
    /// Interrupted; run again only if no handler ran.
    pub(crate) const ERESTARTNOHAND: Errno = Errno(514);
    /// Interrupted; if no handler ran, go on through `restart_syscall`.
    pub(crate) const ERESTART_RESTARTBLOCK: Errno = Errno(516);

    /// Whether it is one of the four above.
    pub(crate) const fn is_restart(self) -> bool {
        matches!(self.0, 512..=516)
    }

    /// As programs know it.
    pub(crate) const fn number(self) -> i32 {
        self.0 as i32
    }

    /// The value for `rax`: the number negated, in two's complement.
    pub(crate) const fn to_register(self) -> u64 {
        -(self.0 as i64) as u64
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "Errno({})", self.0),
        }
    }
}

impl From<memory::Error> for Errno {
    fn from(error: memory::Error) -> Errno {
        match error {
            memory::Error::OutOfMemory => Errno::ENOMEM,
            memory::Error::Invalid => Errno::EINVAL,
            memory::Error::NotAllowed => Errno::EACCES,
            memory::Error::Exists => Errno::EEXIST,
            memory::Error::NotMapped => Errno::EFAULT,
            memory::Error::Again => Errno::EAGAIN,
            memory::Error::Permission => Errno::EPERM,
            memory::Error::Busy => Errno::EBUSY,
            memory::Error::Overflow => Errno::EOVERFLOW,
            memory::Error::NotFound => Errno::ENOENT,
            memory::Error::Ended => Errno::ESRCH,
        }
    }
}
