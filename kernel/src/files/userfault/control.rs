//! The `ioctl`s. Arguments are checked in Linux's order.

use super::context::Context;
use crate::memory::{AddressSpace, Kernel, user};
use crate::process::credentials::CAP_SYS_PTRACE;
use crate::process;
use crate::syscall::Errno;
use ::memory::{Error, FrameRef, Monitor, PAGE_SIZE, PageRange, Watch, is_aligned};
use alloc::sync::Arc;
use alloc::vec;
use linux_raw_sys::{general as abi, ioctl};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What Linux 6.1 offers, without large pages of their own file system, which are not there.
const FEATURES: u32 = abi::UFFD_FEATURE_PAGEFAULT_FLAG_WP
    | abi::UFFD_FEATURE_EVENT_FORK
    | abi::UFFD_FEATURE_EVENT_REMAP
    | abi::UFFD_FEATURE_EVENT_REMOVE
    | abi::UFFD_FEATURE_EVENT_UNMAP
    | abi::UFFD_FEATURE_MISSING_SHMEM
    | abi::UFFD_FEATURE_SIGBUS
    | abi::UFFD_FEATURE_THREAD_ID
    | abi::UFFD_FEATURE_MINOR_SHMEM
    | abi::UFFD_FEATURE_EXACT_ADDRESS
    | abi::UFFD_FEATURE_WP_HUGETLBFS_SHMEM;

const GENERAL_REQUESTS: u64 =
    1 << abi::_UFFDIO_REGISTER | 1 << abi::_UFFDIO_UNREGISTER | 1 << abi::_UFFDIO_API;
const RANGE_REQUESTS: u64 = 1 << abi::_UFFDIO_WAKE | 1 << abi::_UFFDIO_COPY | 1 << abi::_UFFDIO_ZEROPAGE;

const DO_NOT_WAKE: u64 = abi::UFFDIO_COPY_MODE_DONTWAKE as u64;
const GUARDED_COPY: u64 = abi::UFFDIO_COPY_MODE_WP as u64;
const GUARD: u64 = 1;
const GUARD_DO_NOT_WAKE: u64 = 2;

/// `struct uffdio_api`.
#[derive(Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    requests: u64,
}

/// What the other requests begin with: two words that name a range, and one of flags (but for `UFFDIO_COPY`). What they answer lies
/// behind that.
type Words<const COUNT: usize> = [u64; COUNT];

pub(super) fn control(context: &Arc<Context>, request: u32, argument: u64) -> Result<usize, Errno> {
    if request == ioctl::UFFDIO_API {
        return enable(context, argument);
    }
    if !context.is_enabled() {
        return Err(Errno::EINVAL);
    }
    match request {
        ioctl::UFFDIO_REGISTER => register(context, argument),
        ioctl::UFFDIO_UNREGISTER => unregister(context, argument),
        ioctl::UFFDIO_WAKE => wake(context, argument),
        ioctl::UFFDIO_COPY => copy(context, argument),
        ioctl::UFFDIO_ZEROPAGE => zero(context, argument),
        ioctl::UFFDIO_WRITEPROTECT => guard(context, argument),
        // The library of the ABI has the numbers of the others only.
        UFFDIO_CONTINUE => map_own(context, argument),
        _ => Err(Errno::EINVAL),
    }
}

/// `_IOWR(0xaa, 7, struct uffdio_continue)`.
const UFFDIO_CONTINUE: u32 = 3 << 30 | 32 << 16 | abi::UFFDIO << 8 | abi::_UFFDIO_CONTINUE;

fn enable(context: &Context, argument: u64) -> Result<usize, Errno> {
    let asked: Api = user::read(argument)?;
    let agreed = agree(context, argument, &asked);
    if let Err(Errno::EINVAL | Errno::EPERM) = agreed {
        user::write(argument, &Api::default())?;
    }
    agreed
}

fn agree(context: &Context, argument: u64, asked: &Api) -> Result<usize, Errno> {
    if asked.api != u64::from(abi::UFFD_API) || asked.features & !u64::from(FEATURES) != 0 {
        return Err(Errno::EINVAL);
    }
    let features = asked.features as u32;
    if features & abi::UFFD_FEATURE_EVENT_FORK != 0 && !may_watch_the_kernel() {
        return Err(Errno::EPERM);
    }
    let offered = Api { api: asked.api, features: FEATURES.into(), requests: GENERAL_REQUESTS };
    user::write(argument, &offered)?;
    if context.enable(features) { Ok(0) } else { Err(Errno::EINVAL) }
}

/// Whether the caller may hold up the kernel's own accesses, and other programs.
pub(crate) fn may_watch_the_kernel() -> bool {
    process::current().process().credentials().has(CAP_SYS_PTRACE)
}

/// The pages that a request names.
fn range([start, length]: [u64; 2]) -> Result<PageRange, Errno> {
    if !is_aligned(length) {
        return Err(Errno::EINVAL);
    }
    PageRange::new(start, length).map_err(|_| Errno::EINVAL)
}

fn register(context: &Arc<Context>, argument: u64) -> Result<usize, Errno> {
    let [start, length, mode]: Words<3> = user::read(argument)?;
    let watch = Watch::from_bits(mode).filter(|watch| !watch.is_empty()).ok_or(Errno::EINVAL)?;
    let range = range([start, length])?;
    context.space().ok_or(Errno::ENOMEM)?.watch(range, context, watch)?;
    let mut requests = RANGE_REQUESTS;
    if watch.contains(Watch::STORES) {
        requests |= 1 << abi::_UFFDIO_WRITEPROTECT;
    }
    if watch.contains(Watch::MINOR) {
        requests |= 1 << abi::_UFFDIO_CONTINUE;
    }
    user::write(argument + 24, &requests)?;
    Ok(0)
}

fn unregister(context: &Context, argument: u64) -> Result<usize, Errno> {
    let range = range(user::read(argument)?)?;
    context.space().ok_or(Errno::ENOMEM)?.unwatch(range)?;
    Ok(0)
}

fn wake(context: &Context, argument: u64) -> Result<usize, Errno> {
    let range = range(user::read(argument)?)?;
    context.wake(range);
    Ok(0)
}

fn check_unchanging(context: &Context) -> Result<(), Errno> {
    if context.is_changing() { Err(Errno::EAGAIN) } else { Ok(()) }
}

fn check_mode(mode: u64, known: u64) -> Result<(), Errno> {
    if mode & !known == 0 { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The address space, for requests whose error says that it is gone.
fn living(context: &Context) -> Result<Arc<AddressSpace>, Errno> {
    context.space().ok_or(Errno::ESRCH)
}

/// Tells how many bytes were filled in, or the error, where the program looks for it, and wakes who waits for them.
fn conclude(
    context: &Context,
    answer: u64,
    range: PageRange,
    mode: u64,
    filled: Result<u64, Error>,
) -> Result<usize, Errno> {
    if let Err(Error::Ended) = filled {
        return Err(Errno::ESRCH);
    }
    let filled = filled.map_err(Errno::from);
    let word = match filled {
        Ok(bytes) => bytes,
        Err(error) => error.to_register(),
    };
    user::write(answer, &word)?;
    let bytes = filled?;
    if mode & DO_NOT_WAKE == 0
        && let Ok(part) = PageRange::new(range.start(), bytes)
    {
        context.wake(part);
    }
    if bytes == range.length() { Ok(0) } else { Err(Errno::EAGAIN) }
}

fn copy(context: &Context, argument: u64) -> Result<usize, Errno> {
    check_unchanging(context)?;
    let [target, source, length, mode]: Words<4> = user::read(argument)?;
    let range = range([target, length])?;
    if source.wrapping_add(length) <= source {
        return Err(Errno::EINVAL);
    }
    check_mode(mode, DO_NOT_WAKE | GUARDED_COPY)?;
    let mut bytes = vec![0; PAGE_SIZE as usize];
    let read = |distance: u64, frame: &FrameRef<Kernel>| {
        user::read_bytes(source + distance, &mut bytes).map_err(|_| Error::NotMapped)?;
        frame.write(0, &bytes);
        Ok(())
    };
    let is_guarded = mode & GUARDED_COPY != 0;
    let filled = living(context)?.fill_with_copies(context, range, is_guarded, read);
    conclude(context, argument + 32, range, mode, filled)
}

fn zero(context: &Context, argument: u64) -> Result<usize, Errno> {
    check_unchanging(context)?;
    let [start, length, mode]: Words<3> = user::read(argument)?;
    let range = range([start, length])?;
    check_mode(mode, DO_NOT_WAKE)?;
    let filled = living(context)?.fill_with_zeroes(context, range);
    conclude(context, argument + 24, range, mode, filled)
}

fn map_own(context: &Context, argument: u64) -> Result<usize, Errno> {
    check_unchanging(context)?;
    let [start, length, mode]: Words<3> = user::read(argument)?;
    let range = range([start, length])?;
    check_mode(mode, DO_NOT_WAKE)?;
    let filled = living(context)?.fill_with_own(context, range);
    conclude(context, argument + 24, range, mode, filled)
}

fn guard(context: &Context, argument: u64) -> Result<usize, Errno> {
    check_unchanging(context)?;
    let [start, length, mode]: Words<3> = user::read(argument)?;
    let range = range([start, length])?;
    check_mode(mode, GUARD | GUARD_DO_NOT_WAKE)?;
    if mode == GUARD | GUARD_DO_NOT_WAKE {
        return Err(Errno::EINVAL);
    }
    living(context)?.guard(context, range, mode == GUARD)?;
    if mode == 0 {
        context.wake(range);
    }
    Ok(0)
}
