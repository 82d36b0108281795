//! Descriptors on their way from one program to another (SCM_RIGHTS).
//!
//! A packet holds the descriptions that it carries. So a socket can be kept by a queue that nobody can read any more, as a socket that was sent to itself
//! and closed. Two things keep that from using up memory: a user without privileges has about as many descriptors under way as it may have open files, and the
//! `collector`, which is told here of each socket that a message begins or ends to hold.
//!
//! Dropping what was under way may drop sockets whose queues hold more: that goes through one list and not through ever deeper calls.

use super::endpoint::Endpoint;
use super::{Socket, collector};
use crate::files::Description;
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// Most descriptors in one message.
pub(crate) const MOST_RIGHTS: usize = 253;

/// How many descriptors under way each user has sent.
static BY_USER: SpinLock<BTreeMap<u32, usize>> = SpinLock::new(BTreeMap::new());
/// What is to be dropped, and whether somebody is at it.
static DISCARDED: SpinLock<Vec<Arc<Description>>> = SpinLock::new(Vec::new());
static DISCARDING: AtomicBool = AtomicBool::new(false);

/// Descriptions in a packet.
pub(crate) struct Rights {
    descriptions: Vec<Arc<Description>>,
    user: u32,
}

/// The endpoint of AF_UNIX behind a description.
pub(super) fn endpoint_of(description: &Description) -> Option<&Arc<Endpoint>> {
    description.file_as::<Socket>().map(Socket::endpoint).filter(|endpoint| endpoint.is_unix())
}

impl Rights {
    pub(crate) const fn none() -> Self {
        Self { descriptions: Vec::new(), user: 0 }
    }

    /// Descriptions that `user` sends.
    ///
    /// # Errors
    /// ETOOMANYREFS if more than `most` of the user's are under way already; None is no bound.
    pub(crate) fn new(
        descriptions: Vec<Arc<Description>>,
        user: u32,
        most: Option<u64>,
    ) -> Result<Self, Errno> {
        if descriptions.is_empty() {
            return Ok(Self::none());
        }
        collector::collect_if_due();
        if !count_for(user, descriptions.len(), most) {
            collector::collect();
            if !count_for(user, descriptions.len(), most) {
                return Err(Errno::ETOOMANYREFS);
            }
        }
        let rights = Self { descriptions, user };
        rights.endpoints().for_each(collector::enter);
        Ok(rights)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.descriptions.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.descriptions.len()
    }

    /// The endpoints of AF_UNIX among them.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.descriptions.iter().filter_map(|description| endpoint_of(description))
    }

    /// Copies for a receiver that only looks.
    pub(super) fn peek(&self) -> Vec<Arc<Description>> {
        self.descriptions.clone()
    }

    /// Takes the descriptions, which are in a queue no more.
    pub(super) fn arrive(mut self) -> Vec<Arc<Description>> {
        self.take()
    }

    fn take(&mut self) -> Vec<Arc<Description>> {
        if self.is_empty() {
            return Vec::new();
        }
        self.endpoints().for_each(collector::leave);
        let mut users = BY_USER.lock();
        let left = users.get(&self.user).map_or(0, |count| count.saturating_sub(self.descriptions.len()));
        if left == 0 {
            users.remove(&self.user);
        } else {
            users.insert(self.user, left);
        }
        drop(users);
        core::mem::take(&mut self.descriptions)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        if !self.is_empty() {
            discard(self.take());
        }
    }
}

/// As Linux has it, what is added does not count: whoever has room for one has room for a whole message.
fn count_for(user: u32, count: usize, most: Option<u64>) -> bool {
    let mut users = BY_USER.lock();
    let own = users.get(&user).copied().unwrap_or(0);
    let allowed = most.is_none_or(|most| own as u64 <= most);
    if allowed {
        users.insert(user, own + count);
    }
    allowed
}

/// Drops descriptions, and whatever that makes fall, one after the other.
fn discard(descriptions: Vec<Arc<Description>>) {
    DISCARDED.lock().extend(descriptions);
    // Whoever is at it looks again after it has said that it no longer is.
    while !DISCARDED.lock().is_empty() && !DISCARDING.swap(true, Ordering::AcqRel) {
        loop {
            let next = DISCARDED.lock().pop();
            match next {
                Some(description) => drop(description),
                None => break,
            }
        }
        DISCARDING.store(false, Ordering::Release);
    }
}
