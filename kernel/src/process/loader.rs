//! Putting a program into a new address space.
//!
//! Addresses are fixed, not random: the same program sees the same addresses in every run, which
//! deterministic mode needs and which costs nothing on a machine that boots for one program. A relocatable
//! program goes where Linux puts it without randomisation, its heap follows it, an interpreter goes below the
//! stack's room where `mmap` starts.

use super::image::{Image, PAGE, Placement, Segment, USER_END, page_ceiling, page_floor};
use super::initial_stack::{Arguments, Facts, InitialStack};
use super::credentials::Credentials;
use super::limits::{Limits, Resource};
use super::{random, signal};
use crate::arch::registers::cpuid;
use crate::cpu::features;
use crate::files::{Entry, Mapping};
use crate::memory::{AddressSpace, Backing, MapRequest, new_space};
use crate::syscall::Errno;
use ::memory::{AreaFlags, Place, Rights};
use alloc::sync::Arc;

/// Where relocatable programs go: two thirds of the user half, as on Linux.
const RELOCATED_BASE: u64 = 0x0000_5555_5555_4000;
/// Stack that is mapped at first; it grows down from there to its limit.
const INITIAL_STACK: u64 = 132 << 10;

/// What to load.
pub(super) struct Request<'a> {
    pub(super) program: (&'a Arc<Entry>, &'a Image),
    pub(super) interpreter: Option<(&'a Arc<Entry>, &'a Image)>,
    pub(super) path: &'a [u8],
    pub(super) arguments: &'a Arguments,
    /// Real and effective user, real and effective group.
    pub(super) identities: [u32; 4],
    pub(super) limits: &'a Limits,
    pub(super) credentials: &'a Credentials,
}

/// A program in its address space.
pub(super) struct Loaded {
    pub(super) space: Arc<AddressSpace>,
    /// First instruction: the interpreter's if there is one.
    pub(super) entry: u64,
    pub(super) stack: InitialStack,
}

/// Loads the program, its interpreter and its stack.
///
/// # Errors
/// ENOMEM if it does not fit, ENOEXEC if segments and address space contradict each other, E2BIG if the stack
/// is too small.
pub(super) fn load(request: Request<'_>) -> Result<Loaded, Errno> {
    let space = new_space().map_err(|_| Errno::ENOMEM)?;
    let (file, image) = request.program;
    let distance = match image.placement {
        Placement::Fixed => 0,
        Placement::Anywhere => aligned_base(image).wrapping_sub(image.extent().start),
    };
    map_image(&space, file, image, distance)?;
    space.set_heap_start(page_ceiling(image.extent().end.wrapping_add(distance)));
    let program_entry = image.entry.wrapping_add(distance);
    let (entry, interpreter_base) = match request.interpreter {
        None => (program_entry, 0),
        Some((file, image)) => {
            let base = load_interpreter(&space, file, image)?;
            (image.entry.wrapping_add(base), base)
        }
    };
    let headers = image.headers_address;
    let facts = Facts {
        headers_address: if headers == 0 { 0 } else { headers.wrapping_add(distance) },
        header_count: image.header_count,
        interpreter_base,
        entry: program_entry,
        identities: request.identities,
        hardware: u64::from(cpuid(1, 0).edx),
        // User mode may use RDFSBASE and its kin only if the kernel says so; ours enables them where they
        // exist.
        hardware_more: if features::fsgsbase() { 2 } else { 0 },
        signal_stack: signal::frame_size(),
        random: random_bytes(),
    };
    let stack = InitialStack::plan(USER_END, request.path, request.arguments);
    request.limits.enforce_in(&space, request.credentials);
    map_stack(&space, image, &stack, request.limits.get(Resource::STACK).soft)?;
    stack.write(request.path, request.arguments, &facts, &mut |address, bytes| {
        space.write_user(address, bytes).map_err(|_| Errno::E2BIG)
    })?;
    Ok(Loaded { space, entry, stack })
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    random::fill(&mut bytes);
    bytes
}

fn aligned_base(image: &Image) -> u64 {
    RELOCATED_BASE & !(image.alignment - 1)
}

/// Maps an interpreter wherever there is room; returns how far it was moved.
fn load_interpreter(space: &AddressSpace, file: &Arc<Entry>, image: &Image) -> Result<u64, Errno> {
    let distance = match image.placement {
        Placement::Fixed => 0,
        Placement::Anywhere => {
            let extent = image.extent();
            // Asks for a place by mapping it without rights; the segments then replace that.
            let reserved = space.map(MapRequest {
                place: Place::Anywhere { hint: 0 },
                length: extent.end - extent.start + (image.alignment - PAGE),
                rights: Rights::empty(),
                may: Rights::empty(),
                flags: AreaFlags::NO_RESERVE,
                object: None,
                populate: false,
            })?;
            space.unmap(reserved)?;
            let base = (reserved.start() + (image.alignment - 1)) & !(image.alignment - 1);
            base.wrapping_sub(extent.start)
        }
    };
    map_image(space, file, image, distance)?;
    Ok(distance)
}

fn map_image(space: &AddressSpace, file: &Arc<Entry>, image: &Image, distance: u64) -> Result<(), Errno> {
    let extent = image.extent();
    if extent.end.wrapping_add(distance) > USER_END {
        return Err(Errno::ENOMEM);
    }
    let backing = Mapping::of(file)?;
    for segment in &image.segments {
        let moved = Segment { address: segment.address.wrapping_add(distance), ..*segment };
        map_segment(space, &backing, &moved)?;
    }
    Ok(())
}

/// Maps one segment: whole pages of the file, then zeroes. The end of the last file page is zeroed too if the
/// program can write there; if not, the file's bytes show, as on Linux.
fn map_segment(space: &AddressSpace, backing: &Arc<Backing>, segment: &Segment) -> Result<(), Errno> {
    let pages = segment.pages();
    let file_end = segment.address + segment.file_size;
    let rights = rights_of(segment);
    let mut zero_start = pages.start;
    if segment.file_size > 0 {
        zero_start = page_ceiling(file_end);
        let object = Some((backing.clone(), page_floor(segment.file_offset) / PAGE));
        map(space, pages.start, zero_start - pages.start, rights, object)?;
    }
    if zero_start < pages.end {
        map(space, zero_start, pages.end - zero_start, rights, None)?;
    }
    if segment.file_size > 0 && segment.memory_size > segment.file_size && segment.writable {
        space.zero_user(file_end, (zero_start - file_end) as usize).map_err(|_| Errno::ENOEXEC)?;
    }
    Ok(())
}

fn map(
    space: &AddressSpace,
    address: u64,
    length: u64,
    rights: Rights,
    object: Option<(Arc<Backing>, u64)>,
) -> Result<(), Errno> {
    space.map(MapRequest {
        place: Place::Fixed(address),
        length,
        rights,
        may: Rights::all(),
        flags: AreaFlags::empty(),
        object,
        populate: false,
    })?;
    Ok(())
}

fn rights_of(segment: &Segment) -> Rights {
    let mut rights = Rights::empty();
    rights.set(Rights::READ, segment.readable);
    rights.set(Rights::WRITE, segment.writable);
    rights.set(Rights::EXECUTE, segment.executable);
    rights
}

fn map_stack(space: &AddressSpace, image: &Image, stack: &InitialStack, limit: u64) -> Result<(), Errno> {
    let used = USER_END - page_floor(stack.pointer);
    let size = (used + INITIAL_STACK).min(page_floor(limit).max(used));
    let mut rights = Rights::READ | Rights::WRITE;
    rights.set(Rights::EXECUTE, image.executable_stack);
    space.map(MapRequest {
        place: Place::Fixed(USER_END - size),
        length: size,
        rights,
        may: Rights::all(),
        flags: AreaFlags::GROWS_DOWN | AreaFlags::STACK,
        object: None,
        populate: false,
    })?;
    Ok(())
}
