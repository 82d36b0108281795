//! Descriptors on their way from one program to another (SCM_RIGHTS).
//!
//! A packet holds the descriptions that it carries. So a socket can be kept by a queue that nobody can read any more, as a socket that was sent to itself
//! and closed. Two things keep that from using up memory:
//!
//! - A user has no more descriptors under way than its limit of open files.
//! - `collect` finds endpoints that are held by nothing but packets in queues of such endpoints, and empties their queues. It starts from the sockets that
//!   somebody else holds too (`Arc::strong_count` against `in_flight`), marks what their queues lead to, and takes the rest. It runs when a socket is closed
//!   and something is under way, and before a user is told that too much is.
//!
//! That nothing is taken while it is received: whoever takes a description out of a queue, or a socket out of a backlog, holds a `Moving` from before until
//! somebody else can find what it took. `collect` gives up if one is held when it begins, or if another was begun by the time it has marked. One that begins
//! later takes from a queue that the marking saw full. A description is put into a queue and counted as in flight under one lock, which the marking takes, too.
//!
//! Dropping what was under way may drop sockets whose queues hold more: that goes through one list and not through ever deeper calls.

use super::endpoint::Endpoint;
use super::{Socket, listing};
use crate::files::Description;
use crate::sync::{Mutex, SpinLock};
use crate::syscall::Errno;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Most descriptors in one message.
pub(crate) const MOST_RIGHTS: usize = 253;

/// How often something was taken out of a queue or a backlog, and how many are at it.
static MOVES: AtomicU64 = AtomicU64::new(0);
static MOVING: AtomicUsize = AtomicUsize::new(0);
/// Descriptors under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// Of these, how many each user has sent.
static BY_USER: SpinLock<BTreeMap<u32, usize>> = SpinLock::new(BTreeMap::new());
static COLLECTING: Mutex<()> = Mutex::new(());
/// What is to be dropped, and whether somebody is at it.
static DISCARDED: SpinLock<Vec<Arc<Description>>> = SpinLock::new(Vec::new());
static DISCARDING: AtomicBool = AtomicBool::new(false);

/// Descriptions in a packet.
pub(crate) struct Rights {
    descriptions: Vec<Arc<Description>>,
    user: u32,
    /// Whether they count as in flight.
    departed: bool,
}

/// Held while descriptions or sockets leave a queue or a backlog.
pub(crate) struct Moving(());

impl Moving {
    pub(super) fn begin() -> Self {
        // In this order: who sees the move counted, and nobody at it, sees it done.
        MOVING.fetch_add(1, Ordering::SeqCst);
        MOVES.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        MOVING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The endpoint of AF_UNIX behind a description.
fn endpoint_of(description: &Description) -> Option<&Arc<Endpoint>> {
    description.file_as::<Socket>().map(Socket::endpoint).filter(|endpoint| endpoint.is_unix())
}

impl Rights {
    pub(crate) const fn none() -> Self {
        Self { descriptions: Vec::new(), user: 0, departed: false }
    }

    /// Descriptions that `user` sends.
    ///
    /// # Errors
    /// ETOOMANYREFS if more than `most` of the user's would be under way.
    pub(crate) fn new(descriptions: Vec<Arc<Description>>, user: u32, most: u64) -> Result<Self, Errno> {
        if descriptions.is_empty() {
            return Ok(Self::none());
        }
        if !count_for(user, descriptions.len(), most) {
            collect();
            if !count_for(user, descriptions.len(), most) {
                return Err(Errno::ETOOMANYREFS);
            }
        }
        UNDER_WAY.fetch_add(descriptions.len(), Ordering::Relaxed);
        Ok(Self { descriptions, user, departed: false })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.descriptions.is_empty()
    }

    fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.descriptions.iter().filter_map(|description| endpoint_of(description))
    }

    /// They are put into a queue. Under the lock of that queue.
    pub(super) fn depart(&mut self) {
        self.departed = true;
        self.endpoints().for_each(|endpoint| {
            endpoint.in_flight.fetch_add(1, Ordering::SeqCst);
        });
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
        if self.departed {
            self.endpoints().for_each(|endpoint| {
                endpoint.in_flight.fetch_sub(1, Ordering::SeqCst);
            });
        }
        UNDER_WAY.fetch_sub(self.descriptions.len(), Ordering::Relaxed);
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

fn count_for(user: u32, count: usize, most: u64) -> bool {
    let mut users = BY_USER.lock();
    let own = users.entry(user).or_default();
    let allowed = (*own + count) as u64 <= most;
    if allowed {
        *own += count;
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

/// Looks for endpoints that nobody can reach, if there could be any.
pub(super) fn collect_if_any() {
    if UNDER_WAY.load(Ordering::Relaxed) > 0 {
        collect();
    }
}

fn collect() {
    // Emptying them closes sockets, which comes back here. What nobody can reach stays so.
    for endpoint in unreachable() {
        endpoint.empty();
    }
}

/// Endpoints that are held by queues only which nobody can read.
fn unreachable() -> Vec<Arc<Endpoint>> {
    let _collecting = COLLECTING.lock();
    let moves = MOVES.load(Ordering::SeqCst);
    if MOVING.load(Ordering::SeqCst) != 0 {
        return Vec::new();
    }
    let mut reached = BTreeSet::new();
    let mut next: Vec<Arc<Endpoint>> = Vec::new();
    let mut found: Vec<Arc<Endpoint>> = Vec::new();
    for endpoint in listing::all_unix() {
        // In this order: a reference that goes into flight in between makes it look held.
        let in_flight = endpoint.in_flight.load(Ordering::SeqCst);
        // What has no description waits in a backlog, and is reached through it.
        let Some(references) = endpoint.references() else { continue };
        if references > in_flight {
            reached.insert(Arc::as_ptr(&endpoint).addr());
            next.push(endpoint);
        } else {
            found.push(endpoint);
        }
    }
    if found.is_empty() {
        return found;
    }
    while let Some(endpoint) = next.pop() {
        for held in endpoint.holds() {
            if reached.insert(Arc::as_ptr(&held).addr()) {
                next.push(held);
            }
        }
    }
    found.retain(|endpoint| !reached.contains(&Arc::as_ptr(endpoint).addr()));
    if MOVES.load(Ordering::SeqCst) == moves { found } else { Vec::new() }
}

impl Endpoint {
    /// The endpoints of AF_UNIX that its queue and its backlog lead to.
    fn holds(&self) -> Vec<Arc<Endpoint>> {
        let state = self.state.lock();
        let mut held: Vec<Arc<Endpoint>> = Vec::new();
        for packet in state.incoming.iter() {
            held.extend(packet.rights.descriptions.iter().filter_map(|description| endpoint_of(description).cloned()));
        }
        held.extend(state.backlog().map(|socket| socket.endpoint().clone()));
        held
    }

    /// Drops what has come in, which nobody can receive.
    fn empty(&self) {
        let mut state = self.state.lock();
        let dropped = (core::mem::take(&mut state.incoming), state.take_backlog());
        drop(state);
        drop(dropped);
    }
}
