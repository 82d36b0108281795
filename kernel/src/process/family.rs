//! Who is whose child: ids, parents, process groups, sessions, and children that nobody has waited for yet.
//!
//! All of it is one structure under one lock. These relations change together (an exit touches parent,
//! children, group and zombie state), are looked up rarely, and never under a fault, so a finer division
//! would buy nothing.
//!
//! The kernel itself is process 1: orphans whose ancestors have all ended become its children, and it reaps
//! them at once. The main program is its child too.
//!
//! Ids of threads, processes, groups and sessions come from one space and an id is used again only when none
//! of the four still bears it.

use super::exit::MAIN;
use super::signal::Signal;
use super::{ExitStatus, Process, Thread, Usage};
use crate::sync::SpinLock;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The kernel's own process id.
pub(crate) const REAPER: u32 = 1;
/// Ids are below this (`/proc/sys/kernel/pid_max` on machines of this size).
pub(crate) const ID_LIMIT: u32 = 32768;

/// The one family of this machine.
pub(super) static FAMILY: SpinLock<Family> = SpinLock::new(Family::new());

/// A change of state that `waitpid` has not reported yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Stopped(Signal),
    Continued,
}

/// What is left of a process that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) usage: Usage,
}

/// A process and its relations.
pub(super) struct Member {
    pub(super) process: Arc<Process>,
    pub(super) parent: u32,
    pub(super) children: Vec<u32>,
    pub(super) group: u32,
    pub(super) session: u32,
    /// What the parent is sent at the end; `None` for a child made without.
    pub(super) exit_signal: Option<Signal>,
    pub(super) change: Option<Change>,
    pub(super) ended: Option<Ended>,
}

/// All processes and threads.
pub(super) struct Family {
    members: BTreeMap<u32, Member>,
    threads: BTreeMap<u32, Arc<Thread>>,
    next: u32,
    /// Processes made since boot.
    forks: u64,
}

impl Family {
    const fn new() -> Family {
        Family { members: BTreeMap::new(), threads: BTreeMap::new(), next: REAPER + 1, forks: 0 }
    }

    /// An id that nothing bears.
    pub(super) fn allocate_id(&mut self) -> Option<u32> {
        for _ in 0..ID_LIMIT {
            let id = self.next;
            self.next = if id + 1 < ID_LIMIT { id + 1 } else { REAPER + 1 };
            if !self.is_used(id) {
                return Some(id);
            }
        }
        None
    }

    fn is_used(&self, id: u32) -> bool {
        self.members.contains_key(&id)
            || self.threads.contains_key(&id)
            || self.members.values().any(|member| member.group == id || member.session == id)
    }

    /// Adds a process as a child of `parent`.
    pub(super) fn add(&mut self, member: Member) {
        self.forks += 1;
        let id = member.process.id();
        member.process.parent.store(member.parent, Ordering::Relaxed);
        if let Some(parent) = self.members.get_mut(&member.parent) {
            parent.children.push(id);
        }
        self.members.insert(id, member);
    }

    /// Makes a thread findable by its id.
    pub(super) fn add_thread(&mut self, thread: Arc<Thread>) {
        self.threads.insert(thread.id(), thread);
    }

    /// Forgets a thread.
    pub(super) fn remove_thread(&mut self, id: u32) -> Option<Arc<Thread>> {
        self.threads.remove(&id)
    }

    /// The process with this id, zombies included.
    pub(super) fn member(&self, id: u32) -> Option<&Member> {
        self.members.get(&id)
    }

    /// The same, to change.
    pub(super) fn member_mut(&mut self, id: u32) -> Option<&mut Member> {
        self.members.get_mut(&id)
    }

    /// All processes, zombies included, by id.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// The living thread with this id.
    pub(super) fn thread(&self, id: u32) -> Option<&Arc<Thread>> {
        self.threads.get(&id)
    }

    /// How many threads live.
    pub(super) fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// How many processes were made since boot.
    pub(super) fn forks(&self) -> u64 {
        self.forks
    }

    /// Removes a process that ended and was waited for.
    pub(super) fn remove(&mut self, id: u32) -> Option<Member> {
        let member = self.members.remove(&id)?;
        if let Some(parent) = self.members.get_mut(&member.parent) {
            parent.children.retain(|&child| child != id);
        }
        Some(member)
    }

    /// Gives the children of `id` to the nearest ancestor that reaps orphans, else to the kernel. Returns
    /// them.
    pub(super) fn disown_children(&mut self, id: u32) -> Vec<u32> {
        let heir = self.heir(id);
        let Some(member) = self.members.get_mut(&id) else { return Vec::new() };
        let children = core::mem::take(&mut member.children);
        for child in &children {
            if let Some(child) = self.members.get_mut(child) {
                child.parent = heir;
                child.process.parent.store(heir, Ordering::Relaxed);
            }
        }
        if let Some(heir) = self.members.get_mut(&heir) {
            heir.children.extend(&children);
        }
        children
    }

    fn heir(&self, id: u32) -> u32 {
        let mut ancestor = self.members.get(&id).map_or(REAPER, |member| member.parent);
        while let Some(member) = self.members.get(&ancestor) {
            let reaps = member.process.reaps_orphans.load(Ordering::Relaxed);
            if member.ended.is_none() && reaps {
                return ancestor;
            }
            ancestor = member.parent;
        }
        REAPER
    }

    /// Whether no living member of `group` has a parent in another group of the same session: nobody is left
    /// who could continue it, so it may not be stopped from the terminal. `except` is treated as if it had
    /// ended.
    pub(super) fn is_orphaned(&self, group: u32, except: Option<u32>) -> bool {
        !self.members.values().any(|member| {
            member.group == group
                && member.ended.is_none()
                && Some(member.process.id()) != except
                && self.has_outside_parent(member)
        })
    }

    /// Whether a member's parent belongs to another group of its session. That of the main program does: the
    /// kernel is its shell. It is nobody else's; orphans that it adopts are orphans.
    pub(super) fn has_outside_parent(&self, member: &Member) -> bool {
        match self.members.get(&member.parent) {
            Some(parent) => parent.session == member.session && parent.group != member.group,
            None => member.session == REAPER && MAIN.get() == Some(&member.process.id()),
        }
    }
}

/// Ids of all processes, zombies included, in order.
pub(crate) fn process_ids() -> Vec<u32> {
    FAMILY.lock().members.keys().copied().collect()
}

/// The process with this id, unless it was waited for.
pub(crate) fn find_process(id: u32) -> Option<Arc<Process>> {
    FAMILY.lock().member(id).map(|member| member.process.clone())
}

/// The living thread with this id.
pub(crate) fn find_thread(id: u32) -> Option<Arc<Thread>> {
    FAMILY.lock().thread(id).cloned()
}

/// Relations of a process as `/proc` and the id calls show them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relations {
    /// Parent, 1 for the kernel.
    pub(crate) parent: u32,
    /// Process group.
    pub(crate) group: u32,
    /// Session.
    pub(crate) session: u32,
    /// It ended and nobody has waited for it.
    pub(crate) zombie: bool,
}

/// The relations of process `id`.
pub(crate) fn relations(id: u32) -> Option<Relations> {
    FAMILY.lock().member(id).map(|member| Relations {
        parent: member.parent,
        group: member.group,
        session: member.session,
        zombie: member.ended.is_some(),
    })
}

/// Living processes of a group.
pub(crate) fn group_members(group: u32) -> Vec<Arc<Process>> {
    let family = FAMILY.lock();
    let members = family.members().filter(|member| member.group == group && member.ended.is_none());
    members.map(|member| member.process.clone()).collect()
}

/// Numbers of the whole machine, for `sysinfo` and `/proc/stat`.
pub(crate) fn counts() -> (usize, u64) {
    let family = FAMILY.lock();
    (family.thread_count(), family.forks())
}
