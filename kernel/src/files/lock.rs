//! Advisory locks: `flock`, and `fcntl`'s record locks of processes and of open file descriptions.
//!
//! All locks of the machine are in one table by inode; there are few and they are short. `flock` locks and
//! record locks do not see each other, as on Linux. Record locks of a process go away when it closes *any*
//! descriptor of the file, those of a description with the description.

use super::{Description, Inode, waiting};
use crate::sync::{SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Who holds a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A process, by its id: `F_SETLK`.
    Process(u32),
    /// An open file description, by its address: `F_OFD_SETLK`.
    Description(usize),
    /// Likewise, but for `flock`.
    WholeFile(usize),
}

impl Owner {
    pub(crate) fn description(description: &Description) -> Self {
        Self::Description(core::ptr::from_ref(description).addr())
    }

    pub(crate) fn whole_file(description: &Description) -> Self {
        Self::WholeFile(core::ptr::from_ref(description).addr())
    }

    fn same_kind(self, other: Self) -> bool {
        matches!(self, Self::WholeFile(_)) == matches!(other, Self::WholeFile(_))
    }
}

/// A lock on the bytes `start..=end`.
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    pub(crate) owner: Owner,
    pub(crate) exclusive: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Lock {
    fn overlaps(&self, other: &Lock) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    fn conflicts(&self, other: &Lock) -> bool {
        self.owner != other.owner
            && self.owner.same_kind(other.owner)
            && (self.exclusive || other.exclusive)
            && self.overlaps(other)
    }
}

static LOCKS: SpinLock<BTreeMap<usize, Vec<Lock>>> = SpinLock::new(BTreeMap::new());
static RELEASED: WaitQueue = WaitQueue::new();

fn key(inode: &Arc<Inode>) -> usize {
    Arc::as_ptr(inode).addr()
}

/// The first lock that stands in the way of `wanted`.
pub(crate) fn conflict(inode: &Arc<Inode>, wanted: &Lock) -> Option<Lock> {
    LOCKS.lock().get(&key(inode))?.iter().find(|held| held.conflicts(wanted)).copied()
}

/// Takes `wanted`, in place of what its owner holds of the same bytes. Waits for others, or fails with
/// EAGAIN.
pub(crate) fn acquire(inode: &Arc<Inode>, wanted: Lock, wait: bool) -> Result<(), Errno> {
    let attempt = || {
        let mut locks = LOCKS.lock();
        let held = locks.entry(key(inode)).or_default();
        if held.iter().any(|held| held.conflicts(&wanted)) {
            return None;
        }
        cut(held, &wanted);
        held.push(wanted);
        Some(())
    };
    let patience = if wait { super::file::Patience::Wait } else { super::file::Patience::Refuse };
    waiting::attempt(&RELEASED, patience, attempt)?;
    // A lock that became shared lets others in.
    RELEASED.wake_all();
    Ok(())
}

/// Gives up what `released.owner` holds of the bytes.
pub(crate) fn release(inode: &Arc<Inode>, released: &Lock) {
    let mut locks = LOCKS.lock();
    let Some(held) = locks.get_mut(&key(inode)) else { return };
    cut(held, released);
    if held.is_empty() {
        locks.remove(&key(inode));
    }
    drop(locks);
    RELEASED.wake_all();
}

/// Takes the bytes of `hole` out of what its owner holds.
fn cut(held: &mut Vec<Lock>, hole: &Lock) {
    let mut rests = Vec::new();
    held.retain(|lock| {
        if lock.owner != hole.owner || !lock.overlaps(hole) {
            return true;
        }
        if lock.start < hole.start {
            rests.push(Lock { end: hole.start - 1, ..*lock });
        }
        if lock.end > hole.end {
            rests.push(Lock { start: hole.end + 1, ..*lock });
        }
        false
    });
    held.append(&mut rests);
}

/// A process closed a descriptor of the file.
pub(crate) fn release_process(inode: &Arc<Inode>, process: u32) {
    release(inode, &Lock { owner: Owner::Process(process), exclusive: false, start: 0, end: u64::MAX });
}

/// A process has ended: all that it held is free.
pub(crate) fn release_all(process: u32) {
    let owner = Owner::Process(process);
    let mut locks = LOCKS.lock();
    if locks.is_empty() {
        return;
    }
    locks.retain(|_, held| {
        held.retain(|lock| lock.owner != owner);
        !held.is_empty()
    });
    drop(locks);
    RELEASED.wake_all();
}

/// A description of the file is going away.
pub(super) fn release_description(inode: &Arc<Inode>, description: &Description) {
    for owner in [Owner::description(description), Owner::whole_file(description)] {
        release(inode, &Lock { owner, exclusive: false, start: 0, end: u64::MAX });
    }
}
