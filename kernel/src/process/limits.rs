//! Resource limits: sixteen pairs of a soft and a hard bound.
//!
//! What is enforced: STACK (its size at `execve`), NOFILE (descriptors, by `files`), AS, DATA and MEMLOCK (by
//! `memory`'s calls), FSIZE (by `files`), CPU (by an alarm, `timers`), NPROC (by `clone`), CORE (by `core_file`), MSGQUEUE (by `mq_open`), NICE and RTPRIO only as values.
//! The rest is kept and reported.

use super::credentials::{CAP_IPC_LOCK, Credentials};
use crate::memory::AddressSpace;
use crate::syscall::Errno;
use ::memory::Limit as SpaceLimit;

/// No bound.
pub(crate) const INFINITY: u64 = u64::MAX;
const COUNT: usize = 16;

/// Which resource, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resource(usize);

#[allow(dead_code, missing_docs)] // the full list reads better than the part that is used
impl Resource {
    pub(crate) const CPU: Resource = Resource(0);
    pub(crate) const FSIZE: Resource = Resource(1);
    pub(crate) const DATA: Resource = Resource(2);
    pub(crate) const STACK: Resource = Resource(3);
    pub(crate) const CORE: Resource = Resource(4);
    pub(crate) const NPROC: Resource = Resource(6);
    pub(crate) const NOFILE: Resource = Resource(7);
    pub(crate) const MEMLOCK: Resource = Resource(8);
    pub(crate) const AS: Resource = Resource(9);
    pub(crate) const SIGPENDING: Resource = Resource(11);
    pub(crate) const MSGQUEUE: Resource = Resource(12);
    pub(crate) const NICE: Resource = Resource(13);
    pub(crate) const RTPRIO: Resource = Resource(14);

    /// By Linux's number.
    ///
    /// # Errors
    /// EINVAL beyond the last.
    pub(crate) fn new(number: u64) -> Result<Resource, Errno> {
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
pub(crate) struct Limit {
    /// In force.
    pub(crate) soft: u64,
    /// The most that `soft` may be set to without privilege.
    pub(crate) hard: u64,
}

/// All pairs of a process.
#[derive(Clone, Debug)]
pub(crate) struct Limits([Limit; COUNT]);

impl Limits {
    /// What Debian gives to root's first process.
    pub(crate) fn new() -> Limits {
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

    /// Gives an address space its copy of those that it enforces. Who may lock freely has no bound on that.
    pub(crate) fn enforce_in(&self, space: &AddressSpace, credentials: &Credentials) {
        let enforced = [
            (Resource::AS, SpaceLimit::AddressSpace),
            (Resource::DATA, SpaceLimit::Data),
            (Resource::STACK, SpaceLimit::Stack),
            (Resource::MEMLOCK, SpaceLimit::Locked),
        ];
        for (resource, limit) in enforced {
            let exempt = resource == Resource::MEMLOCK && credentials.has(CAP_IPC_LOCK);
            space.set_limit(limit, if exempt { INFINITY } else { self.get(resource).soft });
        }
    }

    /// The pair for `resource`.
    pub(crate) fn get(&self, resource: Resource) -> Limit {
        self.0[resource.0]
    }

    /// Changes a pair.
    ///
    /// # Errors
    /// EINVAL if soft is above hard; EPERM if hard would rise without `privileged`, or NOFILE above the
    /// machine's most.
    pub(crate) fn set(&mut self, resource: Resource, limit: Limit, privileged: bool) -> Result<(), Errno> {
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
