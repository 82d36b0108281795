//! Robust futexes: locks whose owner may die.
//!
//! A thread keeps a list of the locks that it holds in its own memory and tells the kernel where the list
//! starts. When the thread ends, every lock in the list that still bears its id gets FUTEX_OWNER_DIED, and
//! one waiter is woken. The list is user data: it may be circular, wild or half changed, so the walk is
//! bounded and stops at the first bad address.

use super::Thread;
use super::futex;
use crate::memory::current_space;
use crate::memory::user;
use ::memory::Access;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::{FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Size that `set_robust_list` must be given.
pub(crate) const HEAD_SIZE: u64 = size_of::<Head>() as u64;
/// Most entries that are looked at.
const ENTRIES_MAX: usize = 2048;
/// Bit 0 of a list pointer marks a priority-inheriting lock.
const PRIORITY_BIT: u64 = 1;

/// `struct robust_list_head`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Head {
    first: u64,
    /// From a list entry to its lock word.
    offset: i64,
    /// A lock that is just being taken or released.
    in_progress: u64,
}

/// Walks the list of a thread that is about to end.
pub(super) fn release(thread: &Thread) {
    let list = thread.robust_list.swap(0, Ordering::Relaxed);
    if list == 0 {
        return;
    }
    let Ok(head) = user::read::<Head>(list) else { return };
    let in_progress = head.in_progress & !PRIORITY_BIT;
    let lock_of = |entry: u64| (entry & !PRIORITY_BIT).wrapping_add(head.offset as u64);
    let mut entry = head.first;
    for _ in 0..ENTRIES_MAX {
        if entry & !PRIORITY_BIT == list {
            break;
        }
        // Read on before the lock is given away: its next owner may change the entry.
        let next = user::read::<u64>(entry & !PRIORITY_BIT);
        if entry & !PRIORITY_BIT != in_progress && !abandon(lock_of(entry), thread.id(), false) {
            break;
        }
        match next {
            Ok(next) => entry = next,
            Err(_) => break,
        }
        crate::task::yield_if_needed();
    }
    if in_progress != 0 {
        abandon(lock_of(in_progress), thread.id(), true);
    }
}

/// Marks one lock as left behind by its owner and wakes a waiter. Returns false if its word cannot be
/// reached.
fn abandon(word: u64, owner: u32, in_progress: bool) -> bool {
    if !word.is_multiple_of(4) {
        return false;
    }
    let Some(space) = current_space() else { return false };
    let outcome = space.atomic_user(word, Access::WRITE, |value| {
        let mut seen = value.load(Ordering::SeqCst);
        while seen & FUTEX_TID_MASK == owner {
            let marked = seen & FUTEX_WAITERS | FUTEX_OWNER_DIED;
            match value.compare_exchange(seen, marked, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return seen & FUTEX_WAITERS != 0,
                Err(now) => seen = now,
            }
        }
        // A lock that was released but whose waiter was not woken yet: the dead thread owed that wake.
        in_progress && seen == 0
    });
    match outcome {
        Ok(wake) => {
            if wake {
                let _ = futex::wake_address(word);
            }
            true
        }
        Err(_) => false,
    }
}
