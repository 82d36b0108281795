//! Scheduling: yielding, affinity, policies and priorities.

use super::process::read_extensible;
use super::time::Timespec;
use super::{Arguments, Errno};
use crate::cpu::{self, CpuSet};
use crate::memory::user;
use crate::process::credentials::CAP_SYS_NICE;
use crate::process::limits::Resource;
use crate::process::{
    Process, Thread, current, find_process, find_thread, group_members, process_ids, relations,
};
use crate::task::{self, Class, Task};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const RESET_ON_FORK: u32 = 0x4000_0000;
/// Time slice that is reported for SCHED_RR.
const ROUND_ROBIN_SLICE: u64 = 100_000_000;
/// Time slice that is reported for the fair policies.
const FAIR_SLICE: u64 = 4_000_000;

/// `sched_yield()`.
pub(super) fn sched_yield(_arguments: &Arguments) -> Result<usize, Errno> {
    task::yield_now();
    Ok(0)
}

/// `getcpu(cpu, node)`.
pub(super) fn getcpu(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[0] != 0 {
        user::write(arguments[0], &(cpu::index() as u32))?;
    }
    if arguments[1] != 0 {
        user::write(arguments[1], &0u32)?;
    }
    Ok(0)
}

fn thread_of(id: u64) -> Result<Arc<Thread>, Errno> {
    match id as u32 as i32 {
        0 => Ok(current()),
        id if id < 0 => Err(Errno::EINVAL),
        id => find_thread(id as u32).ok_or(Errno::ESRCH),
    }
}

fn task_of(thread: &Thread) -> Result<Arc<Task>, Errno> {
    thread.task().ok_or(Errno::ESRCH)
}

/// `sched_setaffinity(thread, size, mask)`.
pub(super) fn sched_setaffinity(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, size, mask, ..] = *arguments;
    let id = if (id as i32) < 0 { return Err(Errno::ESRCH) } else { id };
    let thread = thread_of(id)?;
    let mut bytes = [0; 8];
    let length = (size as u32 as usize).min(bytes.len());
    user::read_bytes(mask, &mut bytes[..length])?;
    let set = CpuSet::from_bits(u64::from_le_bytes(bytes));
    if task::set_affinity(&*task_of(&thread)?, set) { Ok(0) } else { Err(Errno::EINVAL) }
}

/// `sched_getaffinity(thread, size, mask)`: returns how many bytes it wrote.
pub(super) fn sched_getaffinity(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, size, mask, ..] = *arguments;
    let id = if (id as i32) < 0 { return Err(Errno::ESRCH) } else { id };
    let size = size as u32;
    if u64::from(size) * 8 < cpu::count() as u64 || !size.is_multiple_of(8) {
        return Err(Errno::EINVAL);
    }
    let set = task_of(&*thread_of(id)?)?.affinity().and(cpu::online());
    user::write(mask, &set.bits())?;
    Ok(8)
}

fn policy_of(class: Class) -> u32 {
    match class {
        Class::Normal { .. } => abi::SCHED_NORMAL,
        Class::Batch { .. } => abi::SCHED_BATCH,
        Class::Idle { .. } => abi::SCHED_IDLE,
        Class::Fifo { .. } => abi::SCHED_FIFO,
        Class::RoundRobin { .. } => abi::SCHED_RR,
    }
}

fn priority_of(class: Class) -> u32 {
    match class {
        Class::Fifo { priority } | Class::RoundRobin { priority } => u32::from(priority),
        _ => 0,
    }
}

fn nice_of(class: Class) -> i8 {
    match class {
        Class::Normal { nice } | Class::Batch { nice } | Class::Idle { nice } => nice,
        Class::Fifo { .. } | Class::RoundRobin { .. } => 0,
    }
}

fn class_of(policy: u32, priority: u32, nice: i8) -> Result<Class, Errno> {
    let real_time = matches!(policy, abi::SCHED_FIFO | abi::SCHED_RR);
    if real_time != (1..=99).contains(&priority) || (!real_time && priority != 0) {
        return Err(Errno::EINVAL);
    }
    let priority = priority as u8;
    match policy {
        abi::SCHED_NORMAL => Ok(Class::Normal { nice }),
        abi::SCHED_BATCH => Ok(Class::Batch { nice }),
        abi::SCHED_IDLE => Ok(Class::Idle { nice }),
        abi::SCHED_FIFO => Ok(Class::Fifo { priority }),
        abi::SCHED_RR => Ok(Class::RoundRobin { priority }),
        _ => Err(Errno::EINVAL),
    }
}

fn set_class(thread: &Thread, policy: u32, priority: u32, nice: Option<i8>) -> Result<(), Errno> {
    let target = task_of(thread)?;
    let nice = nice.unwrap_or(nice_of(target.class()));
    let class = class_of(policy & !RESET_ON_FORK, priority, nice)?;
    let thread_limit = u64::from(priority) > thread.process().limit(Resource::RTPRIO).soft;
    if priority > 0 && thread_limit && !current().process().credentials().has(CAP_SYS_NICE) {
        return Err(Errno::EPERM);
    }
    thread.resets_schedule.store(policy & RESET_ON_FORK != 0, Ordering::Relaxed);
    task::set_class(&target, class);
    Ok(())
}

/// `sched_setscheduler(thread, policy, parameter)`.
pub(super) fn sched_setscheduler(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, policy, parameter, ..] = *arguments;
    if (policy as i32) < 0 || parameter == 0 {
        return Err(Errno::EINVAL);
    }
    let priority: u32 = user::read(parameter)?;
    set_class(&*thread_of(id)?, policy as u32, priority, None)?;
    Ok(0)
}

/// `sched_setparam(thread, parameter)`.
pub(super) fn sched_setparam(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[1] == 0 {
        return Err(Errno::EINVAL);
    }
    let priority: u32 = user::read(arguments[1])?;
    let thread = thread_of(arguments[0])?;
    let policy = policy_of(task_of(&thread)?.class());
    set_class(&thread, policy, priority, None)?;
    Ok(0)
}

/// `sched_getscheduler(thread)`.
pub(super) fn sched_getscheduler(arguments: &Arguments) -> Result<usize, Errno> {
    let thread = thread_of(arguments[0])?;
    let reset = if thread.resets_schedule.load(Ordering::Relaxed) { RESET_ON_FORK } else { 0 };
    Ok((policy_of(task_of(&thread)?.class()) | reset) as usize)
}

/// `sched_getparam(thread, result)`.
pub(super) fn sched_getparam(arguments: &Arguments) -> Result<usize, Errno> {
    if arguments[1] == 0 {
        return Err(Errno::EINVAL);
    }
    let class = task_of(&*thread_of(arguments[0])?)?.class();
    user::write(arguments[1], &priority_of(class))?;
    Ok(0)
}

/// `sched_get_priority_max(policy)`.
pub(super) fn sched_get_priority_max(arguments: &Arguments) -> Result<usize, Errno> {
    priority_bound(arguments[0], 99)
}

/// `sched_get_priority_min(policy)`.
pub(super) fn sched_get_priority_min(arguments: &Arguments) -> Result<usize, Errno> {
    priority_bound(arguments[0], 1)
}

fn priority_bound(policy: u64, real_time: usize) -> Result<usize, Errno> {
    match policy as u32 {
        abi::SCHED_FIFO | abi::SCHED_RR => Ok(real_time),
        abi::SCHED_NORMAL | abi::SCHED_BATCH | abi::SCHED_IDLE | abi::SCHED_DEADLINE => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

/// `sched_rr_get_interval(thread, result)`.
pub(super) fn sched_rr_get_interval(arguments: &Arguments) -> Result<usize, Errno> {
    let slice = match task_of(&*thread_of(arguments[0])?)?.class() {
        Class::RoundRobin { .. } => ROUND_ROBIN_SLICE,
        Class::Fifo { .. } => 0,
        _ => FAIR_SLICE,
    };
    user::write(arguments[1], &Timespec::from_nanoseconds(slice))?;
    Ok(0)
}

/// `struct sched_attr` in its first form.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Of SCHED_DEADLINE, which is not offered.
    deadline: [u64; 3],
}

/// `sched_setattr(thread, attributes, flags)`.
pub(super) fn sched_setattr(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, pointer, flags, ..] = *arguments;
    if pointer == 0 || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let size = match user::read::<u32>(pointer)? {
        0 => size_of::<Attributes>() as u64,
        size => u64::from(size),
    };
    let wanted = read_extensible::<Attributes>(pointer, size, size_of::<Attributes>() as u64)
        .map_err(|error| if error == Errno::EINVAL { Errno::E2BIG } else { error })?;
    if wanted.flags & !1 != 0 {
        return Err(Errno::EINVAL);
    }
    let reset = if wanted.flags & 1 != 0 { RESET_ON_FORK } else { 0 };
    let nice = wanted.nice.clamp(-20, 19) as i8;
    set_class(&*thread_of(id)?, wanted.policy | reset, wanted.priority, Some(nice))?;
    Ok(0)
}

/// `sched_getattr(thread, result, size, flags)`.
pub(super) fn sched_getattr(arguments: &Arguments) -> Result<usize, Errno> {
    let [id, pointer, size, flags, ..] = *arguments;
    let least = size_of::<Attributes>() as u64;
    if pointer == 0 || flags != 0 || size > 4096 || size < least {
        return Err(Errno::EINVAL);
    }
    let thread = thread_of(id)?;
    let class = task_of(&thread)?.class();
    let attributes = Attributes {
        size: least as u32,
        policy: policy_of(class),
        flags: u64::from(thread.resets_schedule.load(Ordering::Relaxed)),
        nice: i32::from(nice_of(class)),
        priority: priority_of(class),
        deadline: [0; 3],
    };
    user::write(pointer, &attributes)?;
    Ok(0)
}

/// The processes that `getpriority` and `setpriority` mean.
fn processes_of(which: u64, who: u64) -> Result<Vec<Arc<Process>>, Errno> {
    let who = who as u32;
    match which as u32 {
        abi::PRIO_PGRP => {
            let own = relations(current().process().id()).ok_or(Errno::ESRCH)?.group;
            Ok(group_members(if who == 0 { own } else { who }))
        }
        abi::PRIO_USER => {
            let own = current().process().credentials().user.real;
            let user = if who == 0 { own } else { who };
            let all = process_ids().into_iter().filter_map(find_process);
            Ok(all.filter(|process| process.credentials().user.real == user).collect())
        }
        _ => Err(Errno::EINVAL),
    }
}

fn threads_of(which: u64, who: u64) -> Result<Vec<Arc<Thread>>, Errno> {
    let threads = if which as u32 == abi::PRIO_PROCESS {
        alloc::vec![thread_of(who).map_err(|_| Errno::ESRCH)?]
    } else {
        processes_of(which, who)?.iter().flat_map(|process| process.threads()).collect()
    };
    if threads.is_empty() { Err(Errno::ESRCH) } else { Ok(threads) }
}

/// `getpriority(which, who)`: returns 20 minus the lowest nice value, so that it is never negative.
pub(super) fn getpriority(arguments: &Arguments) -> Result<usize, Errno> {
    let threads = threads_of(arguments[0], arguments[1])?;
    let lowest = threads.iter().filter_map(|thread| thread.task()).map(|task| nice_of(task.class())).min();
    Ok((20 - i64::from(lowest.ok_or(Errno::ESRCH)?)) as usize)
}

/// `setpriority(which, who, nice)`.
pub(super) fn setpriority(arguments: &Arguments) -> Result<usize, Errno> {
    let nice = (arguments[2] as i32).clamp(-20, 19) as i8;
    let privileged = current().process().credentials().has(CAP_SYS_NICE);
    for thread in threads_of(arguments[0], arguments[1])? {
        let Some(task) = thread.task() else { continue };
        let class = match task.class() {
            Class::Normal { .. } => Class::Normal { nice },
            Class::Batch { .. } => Class::Batch { nice },
            Class::Idle { .. } => Class::Idle { nice },
            real_time => real_time,
        };
        let ceiling = 20 - thread.process().limit(Resource::NICE).soft.min(40) as i64;
        if nice < nice_of(task.class()) && !privileged && i64::from(nice) < ceiling {
            return Err(Errno::EACCES);
        }
        task::set_class(&task, class);
    }
    Ok(0)
}
