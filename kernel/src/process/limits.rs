//! Resource limits: sixteen pairs of a soft and a hard bound.
//!
//! What is enforced: STACK (its size at `execve`), NOFILE (descriptors, by `files`), AS and DATA (by `memory`'s calls), FSIZE (by
//! `files`), CORE and NICE and RTPRIO only as values. The rest is kept and reported.

use crate::syscall::Errno;

/// No bound.
pub const INFINITY: u64 = u64::MAX;
const COUNT: usize = 16;

/// Which resource, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource(usize);

#[allow(dead_code, missing_docs)] // the full list reads better than the part that is used
impl Resource {
    pub const CPU: Resource = Resource(0);
    pub const FSIZE: Resource = Resource(1);
    pub const DATA: Resource = Resource(2);
    pub const STACK: Resource = Resource(3);
    pub const CORE: Resource = Resource(4);
    pub const NPROC: Resource = Resource(6);
    pub const NOFILE: Resource = Resource(7);
    pub const MEMLOCK: Resource = Resource(8);
    pub const AS: Resource = Resource(9);
    pub const SIGPENDING: Resource = Resource(11);
    pub const MSGQUEUE: Resource = Resource(12);
    pub const NICE: Resource = Resource(13);
    pub const RTPRIO: Resource = Resource(14);

    /// By Linux's number.
    ///
    /// # Errors
    /// EINVAL beyond the last.
    pub fn new(number: u64) -> Result<Resource, Errno> {
        // Linux takes an unsigned int: the upper half of the register is ignored.
        let number = number as u32 as usize;
        if number < COUNT { Ok(Resource(number)) } else { Err(Errno::EINVAL) }
    }
}

/// One pair, `struct rlimit64`.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
)]
#[repr(C)]
pub struct Limit {
    /// In force.
    pub soft: u64,
    /// The most that `soft` may be set to without privilege.
    pub hard: u64,
}

/// All pairs of a process.
#[derive(Clone, Debug)]
pub struct Limits([Limit; COUNT]);

impl Limits {
    /// What Debian gives to root's first process.
    pub fn new() -> Limits {
        let free = Limit { soft: INFINITY, hard: INFINITY };
        let mut limits = Limits([free; COUNT]);
        let mut set = |resource: Resource, soft, hard| limits.0[resource.0] = Limit { soft, hard };
        set(Resource::STACK, 8 << 20, INFINITY);
        set(Resource::CORE, 0, INFINITY);
        set(Resource::NPROC, 32768, 32768);
        set(Resource::NOFILE, 1024, 1 << 20);
        set(Resource::MEMLOCK, 8 << 20, 8 << 20);
        set(Resource::SIGPENDING, 32768, 32768);
        set(Resource::MSGQUEUE, 819_200, 819_200);
        set(Resource::NICE, 0, 0);
        set(Resource::RTPRIO, 0, 0);
        limits
    }

    /// The pair for `resource`.
    pub fn get(&self, resource: Resource) -> Limit {
        self.0[resource.0]
    }

    /// Changes a pair.
    ///
    /// # Errors
    /// EINVAL if soft is above hard; EPERM if hard would rise without `privileged`, or NOFILE above the machine's most.
    pub fn set(&mut self, resource: Resource, limit: Limit, privileged: bool) -> Result<(), Errno> {
        if limit.soft > limit.hard {
            return Err(Errno::EINVAL);
        }
        if limit.hard > self.0[resource.0].hard && !privileged {
            return Err(Errno::EPERM);
        }
        if resource == Resource::NOFILE && limit.hard > 1 << 20 {
            return Err(Errno::EPERM);
        }
        self.0[resource.0] = limit;
        Ok(())
    }
}
