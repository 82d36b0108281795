//! `userfaultfd`: a program that resolves the page faults of others, or its own.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | the file: reading, polling, its end |
//! | `control.rs` | its `ioctl`s |
//! | `context.rs` | what the areas' faults go to: `memory`'s monitor, and the waiting |
//! | `queue.rs` | who waits, and what has been read of them |
//!
//! A fault is in the queue from when it is told until it is answered, and is read by one reader. Any other event is in it until it has been read.
//! The file holds the context; areas hold it too, and let go when the file is closed: all who wait then look again, and find an area
//! that nobody watches.

mod context;
mod control;
mod queue;

use super::file::{File, Patience};
use super::filesystem::ANONYMOUS;
use super::open::anonymous;
use super::readiness::{Observers, Readiness};
use super::transfer::Destination;
use super::{Description, waiting};
use crate::process;
use crate::process::limits::Resource;
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general as abi;
use zerocopy::IntoBytes;

pub(crate) use context::Context;
pub(crate) use control::may_watch_the_kernel;
use queue::{Message, Taken};

/// Flags of the call that are those of opening.
const OPENING: u32 = abi::O_CLOEXEC | abi::O_NONBLOCK;

/// The file.
pub(crate) struct Userfault(Arc<Context>);

/// Makes one for the running program: its description, and whether `execve` closes it.
///
/// # Errors
/// EINVAL for flags that are none.
pub(crate) fn userfault(flags: u32) -> Result<(Arc<Description>, bool), Errno> {
    if flags & !(OPENING | abi::UFFD_USER_MODE_ONLY) != 0 {
        return Err(Errno::EINVAL);
    }
    let space = crate::memory::current_space().ok_or(Errno::ENOMEM)?;
    Ok(describe(Context::new(&Arc::downgrade(&space), flags)))
}

fn describe(context: Arc<Context>) -> (Arc<Description>, bool) {
    let flags = context.flags();
    let file = Box::new(Userfault(context));
    let description =
        anonymous(&ANONYMOUS, b"anon_inode:[userfaultfd]", file, abi::O_RDONLY | flags & OPENING);
    (description, flags & abi::O_CLOEXEC != 0)
}

impl Userfault {
    /// The next thing to be read, which is then no longer to be read by others.
    fn take(&self, patience: Patience) -> Result<Message, Errno> {
        match waiting::attempt(self.0.arrivals(), patience, || self.0.take())? {
            Taken::Message(message) => Ok(message),
            Taken::Fork { ticket, child } => {
                let installed = install(child);
                self.0.settle_fork(ticket, installed.is_ok());
                Ok(Message::fork(installed?))
            }
        }
    }
}

/// Gives the reader a descriptor for a child's context.
fn install(child: Arc<Context>) -> Result<i32, Errno> {
    let thread = process::current();
    let limit = thread.process().limit(Resource::NOFILE).soft;
    let (description, close_on_exec) = describe(child);
    let table = thread.files().ok_or(Errno::EBADF)?;
    table.insert(description, close_on_exec, 0, usize::try_from(limit).unwrap_or(usize::MAX))
}

impl File for Userfault {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if !self.0.is_enabled() {
            return Err(Errno::EINVAL);
        }
        let mut done = 0;
        while to.remaining() >= size_of::<Message>() {
            // Only the first is waited for.
            let patience = if done == 0 { patience } else { Patience::Refuse };
            let put = self.take(patience).and_then(|message| to.put(message.as_bytes()));
            match put {
                Ok(count) if count == size_of::<Message>() => done += count,
                Ok(_) if done == 0 => return Err(Errno::EFAULT),
                Err(error) if done == 0 => return Err(error),
                _ => return Ok(done),
            }
        }
        if done == 0 { Err(Errno::EINVAL) } else { Ok(done) }
    }

    fn readiness(&self) -> Readiness {
        if !self.0.is_enabled() {
            Readiness::ERROR
        } else if self.0.has_unread() {
            Readiness::INPUT
        } else {
            Readiness::empty()
        }
    }

    /// That something is there to read does not say that a reader will not wait: it may be answered before. So who would wait cannot poll.
    fn polled(&self, patience: Patience) -> Readiness {
        if patience == Patience::Wait { Readiness::ERROR } else { self.readiness() }
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(self.0.observers()), None]
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        control::control(&self.0, request, argument)
    }
}

impl Drop for Userfault {
    fn drop(&mut self) {
        self.0.release();
    }
}
