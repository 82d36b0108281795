//! POSIX message queues. The queues are `files::MessageQueue`s; here are the calls.

use super::path::{caller, check_flags, context, description, reserve};
use super::time::read_timeout;
use super::{Arguments, Errno};
use crate::files::{Access, Description, Entry, Making, Message, MessageQueue, News, QUEUE_BOUNDS, QueueFile, Room};
use crate::memory::user;
use crate::process::credentials::CAP_SYS_RESOURCE;
use crate::process::current;
use crate::process::limits::Resource;
use crate::process::signal::Signal;
use crate::time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// For who has the privilege.
const LARGEST_ROOM: Room = Room { messages: 65536, bytes: 16 << 20 };
const PRIORITIES: u32 = 32768;
const LONGEST_NAME: usize = 255;

/// `struct mq_attr`.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Attributes {
    flags: i64,
    messages: i64,
    bytes: i64,
    count: i64,
    reserved: [i64; 4],
}

/// `struct sigevent`, the parts that are looked at.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    rest: [u64; 6],
}

fn name(address: u64) -> Result<Vec<u8>, Errno> {
    let name = user::read_string(address, LONGEST_NAME + 1, Errno::ENAMETOOLONG)?;
    match name.len() {
        0 => Err(Errno::ENOENT),
        length if length > LONGEST_NAME => Err(Errno::ENAMETOOLONG),
        _ if name.contains(&b'/') => Err(Errno::EACCES),
        _ => Ok(name),
    }
}

/// `mq_open(name, flags, mode, attributes)`.
pub(super) fn mq_open(&[address, flags, mode, attributes, ..]: &Arguments) -> Result<usize, Errno> {
    let flags = flags as u32;
    let creates = flags & abi::O_CREAT != 0;
    let asked = match attributes {
        0 => None,
        pointer if creates => Some(user::read::<Attributes>(pointer)?),
        _ => None,
    };
    let name = name(address)?;
    // A queue that is made and has no number would stay behind.
    let number = reserve(true)?;
    let wanted = match flags & abi::O_ACCMODE {
        abi::O_RDONLY => Access::READ,
        abi::O_WRONLY => Access::WRITE,
        abi::O_RDWR => Access(Access::READ.0 | Access::WRITE.0),
        _ => return Err(Errno::EINVAL),
    };
    let who = caller();
    let mode = mode as u32 & 0o777 & !context()?.umask();
    // Who opens one that is there need not say how large it is.
    let is_there = MessageQueue::open(&name, wanted, &who, None, false);
    let queue = match is_there {
        Ok(queue) if !(creates && flags & abi::O_EXCL != 0) => queue,
        Err(error) if !creates || error != Errno::ENOENT => return Err(error),
        Ok(_) => return Err(Errno::EEXIST),
        Err(_) => {
            let most = current().process().limit(Resource::MSGQUEUE).soft;
            let making = Making { mode, room: room(asked)?, most };
            MessageQueue::open(&name, wanted, &who, Some(making), flags & abi::O_EXCL != 0)?
        }
    };
    let shown = [b"/", &*name].concat();
    let entry = Entry::unplaced(&shown, queue.inode().clone());
    let description = Description::new(entry, Box::new(QueueFile::new(queue)), flags & (abi::O_ACCMODE | abi::O_NONBLOCK));
    Ok(number.fill(description))
}

/// The size of a new queue of the caller's.
fn room(asked: Option<Attributes>) -> Result<Room, Errno> {
    let is_privileged = current().process().credentials().has(CAP_SYS_RESOURCE);
    let most = if is_privileged { LARGEST_ROOM } else { QUEUE_BOUNDS.most() };
    let Some(asked) = asked else { return Ok(QUEUE_BOUNDS.usual()) };
    let fitting = |value: i64, most: usize| usize::try_from(value).ok().filter(|value| (1..=most).contains(value));
    let messages = fitting(asked.messages, most.messages).ok_or(Errno::EINVAL)?;
    Ok(Room { messages, bytes: fitting(asked.bytes, most.bytes).ok_or(Errno::EINVAL)? })
}

/// `mq_unlink(name)`.
pub(super) fn mq_unlink(&[address, ..]: &Arguments) -> Result<usize, Errno> {
    MessageQueue::unlink(&name(address)?, &caller())?;
    Ok(0)
}

fn queue(description: &Arc<Description>) -> Result<&MessageQueue, Errno> {
    description.file_as::<QueueFile>().map(QueueFile::queue).ok_or(Errno::EBADF)
}

/// A time of the wall clock, in nanoseconds since boot.
fn deadline(pointer: u64) -> Result<Option<u64>, Errno> {
    Ok(read_timeout(pointer)?.map(|at| at.saturating_sub(time::realtime_offset())))
}

/// `mq_timedsend(queue, message, length, priority, timeout)`.
pub(super) fn mq_timedsend(&[number, message, length, priority, timeout, _]: &Arguments) -> Result<usize, Errno> {
    let deadline = deadline(timeout)?;
    if priority as u32 >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let description = description(number)?;
    let queue = queue(&description)?;
    if !description.is_writable() {
        return Err(Errno::EBADF);
    }
    if length > queue.room().bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let message = Message::read(message, length as usize)?;
    queue.send(message, priority as u32, description.patience(), deadline)?;
    Ok(0)
}

/// `mq_timedreceive(queue, message, length, priority, timeout)`.
pub(super) fn mq_timedreceive(
    &[number, message, length, priority, timeout, _]: &Arguments,
) -> Result<usize, Errno> {
    let deadline = deadline(timeout)?;
    let description = description(number)?;
    let queue = queue(&description)?;
    if !description.is_readable() {
        return Err(Errno::EBADF);
    }
    if length < queue.room().bytes as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let (received, found) = queue.receive(description.patience(), deadline)?;
    if priority != 0 {
        user::write(priority, &found)?;
    }
    received.write(message)?;
    Ok(received.length())
}

/// `mq_notify(queue, event)`.
pub(super) fn mq_notify(&[number, event, ..]: &Arguments) -> Result<usize, Errno> {
    let news = match event {
        0 => None,
        pointer => {
            let event: Event = user::read(pointer)?;
            Some(match event.notify as u32 {
                abi::SIGEV_NONE => News::None,
                abi::SIGEV_SIGNAL => {
                    News::Signal(Signal::new(event.signal as u64).ok_or(Errno::EINVAL)?, event.value)
                }
                // That of threads needs a socket of a kind that is not there.
                _ => return Err(Errno::EINVAL),
            })
        }
    };
    let description = description(number)?;
    queue(&description)?.notify(news)?;
    Ok(0)
}

/// `mq_getsetattr(queue, new, old)`.
pub(super) fn mq_getsetattr(&[number, new, old, ..]: &Arguments) -> Result<usize, Errno> {
    let wanted = match new {
        0 => None,
        pointer => Some(user::read::<Attributes>(pointer)?.flags as u32),
    };
    wanted.map_or(Ok(()), |flags| check_flags(flags, abi::O_NONBLOCK))?;
    let description = description(number)?;
    let queue = queue(&description)?;
    let flags = description.flags();
    if old != 0 {
        let attributes = Attributes {
            flags: i64::from(flags & abi::O_NONBLOCK),
            messages: queue.room().messages as i64,
            bytes: queue.room().bytes as i64,
            count: queue.count() as i64,
            reserved: [0; 4],
        };
        user::write(old, &attributes)?;
    }
    if let Some(wanted) = wanted {
        description.set_flags(flags & !abi::O_NONBLOCK | wanted);
    }
    Ok(0)
}
