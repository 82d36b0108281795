//! Calls that name a process by a descriptor (`files::ProcessFile`) and not by its id.
//!
//! Arguments are checked in the order of Linux 6.1.

use super::path::{self, install, usable_description};
use super::transfer::stretches;
use super::{Arguments, Errno, signal};
use crate::files::{Description, ProcessFile};
use crate::process::credentials::CAP_SYS_NICE;
use crate::process::{Process, current, find_process, find_thread};
use alloc::sync::Arc;
use linux_raw_sys::general as abi;

/// The file of a process behind a descriptor.
///
/// # Errors
/// EBADF if it is anything else.
pub(super) fn process_file(description: &Description) -> Result<&ProcessFile, Errno> {
    description.file_as::<ProcessFile>().ok_or(Errno::EBADF)
}

/// `pidfd_open(process, flags)`.
pub(super) fn pidfd_open(arguments: &Arguments) -> Result<usize, Errno> {
    let (id, flags) = (arguments[0] as i32, arguments[1] as u32);
    // The one flag is `open`'s O_NONBLOCK.
    if flags & !abi::O_NONBLOCK != 0 || id <= 0 {
        return Err(Errno::EINVAL);
    }
    let process = find_process(id as u32).ok_or_else(|| match find_thread(id as u32) {
        // A thread that is not its process's first.
        Some(_) => Errno::EINVAL,
        None => Errno::ESRCH,
    })?;
    install(ProcessFile::open(process, flags), true)
}

/// `pidfd_send_signal(descriptor, signal, information, flags)`. A descriptor of the process's directory in `/proc` will do as well.
pub(super) fn pidfd_send_signal(arguments: &Arguments) -> Result<usize, Errno> {
    let [descriptor, number, information, flags, ..] = *arguments;
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let description = usable_description(descriptor)?;
    let (id, process) = match description.file_as::<ProcessFile>() {
        Some(file) => (file.id(), file.process()),
        None => {
            let id = crate::files::process_of_directory(description.inode()).ok_or(Errno::EBADF)?;
            (id, find_process(id).ok_or(Errno::ESRCH))
        }
    };
    signal::send_by_descriptor(id, process, number, information)
}

/// `pidfd_getfd(descriptor, target, flags)`: a copy of another process's descriptor.
pub(super) fn pidfd_getfd(arguments: &Arguments) -> Result<usize, Errno> {
    let [descriptor, target, flags, ..] = *arguments;
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let process = process_file(&*usable_description(descriptor)?)?.process()?;
    let caller = current();
    if !caller.process().may_look_into(&process, |credentials| (credentials.user.real, credentials.group.real)) {
        return Err(Errno::EPERM);
    }
    let files = process.leader().and_then(|thread| thread.files()).ok_or(Errno::EBADF)?;
    path::install(files.get(target as i32)?, true)
}

/// `process_madvise(descriptor, stretches, count, advice, flags)`: about how many bytes it could advise.
pub(super) fn process_madvise(arguments: &Arguments) -> Result<usize, Errno> {
    let [descriptor, vector, count, advice, flags, _] = *arguments;
    if flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let stretches = stretches(vector, count)?;
    let process = process_file(&*usable_description(descriptor)?)?.process()?;
    ::memory::calls::remote_advice(advice)?;
    let memory = process.memory().ok_or(Errno::ESRCH)?;
    let caller = current();
    check_memory_access(caller.process(), &process)?;
    if !caller.process().credentials().has(CAP_SYS_NICE) {
        return Err(Errno::EPERM);
    }
    let advised = memory.space().process_madvise(&stretches, advice)?;
    Ok(advised as usize)
}

fn check_memory_access(caller: &Arc<Process>, process: &Arc<Process>) -> Result<(), Errno> {
    let ids = |credentials: &crate::process::credentials::Credentials| {
        (credentials.user.file_system, credentials.group.file_system)
    };
    if caller.may_look_into(process, ids) { Ok(()) } else { Err(Errno::EACCES) }
}
