//! System calls: from the number in `rax` to the function that does it.
//!
//! One table (`table`), one file per family of calls. A call takes its six raw arguments, checks every one of them,
//! and returns a value or an [`Errno`].

mod errno;

pub use errno::Errno;
