//! Sockets that nobody can reach any more, and how they go away.
//!
//! A socket that is under way in the queue of a socket that is under way may be held by nothing but such queues: one that was sent to itself and closed.
//! The collector finds those and empties their queues. It looks at sockets of AF_UNIX that are under way, and at no others:
//!
//! 1. Suspects are those whose references are all of descriptors under way, and whose queues or backlogs hold descriptors in turn: all others are on no cycle, or
//!    somebody has them.
//! 2. From the references of each, those are taken off that lie in the queues of the others. Who has some left is held from outside, and so is all that its
//!    queue leads to.
//! 3. The rest is garbage.
//!
//! **That nothing is taken that somebody gets meanwhile.** The numbers of 1 are read under the lock under which a socket's going under way is counted, so what
//! passes there has no reference but these; a new one comes only out of a queue or a backlog. Who takes one there, or looks (MSG_PEEK), holds a `Moving` from before
//! until somebody else can find what it took, and the collector gives up if one is held when it begins, or was begun by the time it has finished looking. One that
//! begins later takes from a queue that was seen full, whose socket somebody had. What else changes meanwhile only makes a reference disappear, which looks as if
//! it came from outside.
//!
//! **What it costs.** Each socket of AF_UNIX that is closed while any is under way pays for `PAID_BY_ONE` steps, and the collector runs when that is as much as
//! its last run took. So a few are collected at once, and many after as many closings as looking at them is worth. A run is also due when twice as many are
//! under way as its predecessor left, and before a user is told that it has too many.

use super::endpoint::Endpoint;
use crate::files::Description;
use crate::sync::{Mutex, SpinLock};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Steps of the collector that one closing pays for.
const PAID_BY_ONE: usize = 64;
/// As many under way are no reason to look.
const FEW: usize = 1024;

/// How often something was taken out of a queue or a backlog, or looked at, and how many are at it.
static MOVES: AtomicU64 = AtomicU64::new(0);
static MOVING: AtomicUsize = AtomicUsize::new(0);
/// The sockets of AF_UNIX that are under way, by the address of their endpoint.
static UNDER_WAY: SpinLock<BTreeMap<usize, UnderWay>> = SpinLock::new(BTreeMap::new());
/// How many these are.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static COLLECTING: Mutex<()> = Mutex::new(());
/// Steps that closings have paid for since the last run, and how many that took.
static PAID: AtomicUsize = AtomicUsize::new(0);
static PRICE: AtomicUsize = AtomicUsize::new(0);
/// With how many under way a run is due in any case.
static DUE: AtomicUsize = AtomicUsize::new(FEW);

struct UnderWay {
    endpoint: Weak<Endpoint>,
    description: Weak<Description>,
    /// How often: in how many messages.
    times: usize,
}

/// A socket that may be garbage.
struct Suspect {
    endpoint: Arc<Endpoint>,
    /// References that were not found in the queues of other suspects.
    references: usize,
    /// The sockets that its queue and its backlog hold.
    holds: Vec<usize>,
    reached: bool,
}

/// Held while descriptions or sockets leave a queue or a backlog, or are looked at there.
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

/// A message holds the socket from now on. Its reference is there already.
pub(super) fn enter(endpoint: &Arc<Endpoint>) {
    let Some(description) = endpoint.description() else { return };
    let mut under_way = UNDER_WAY.lock();
    let entry = under_way.entry(Arc::as_ptr(endpoint).addr()).or_insert_with(|| UnderWay {
        endpoint: Arc::downgrade(endpoint),
        description: description.clone(),
        times: 0,
    });
    entry.times += 1;
    COUNT.store(under_way.len(), Ordering::Relaxed);
}

/// A message holds the socket no more. Its reference goes later.
pub(super) fn leave(endpoint: &Arc<Endpoint>) {
    let key = Arc::as_ptr(endpoint).addr();
    let mut under_way = UNDER_WAY.lock();
    let Some(entry) = under_way.get_mut(&key) else { return };
    entry.times -= 1;
    let gone = if entry.times == 0 { under_way.remove(&key) } else { None };
    COUNT.store(under_way.len(), Ordering::Relaxed);
    drop(under_way);
    drop(gone);
}

/// Somebody closes a socket of AF_UNIX, and pays for its part of a run.
pub(super) fn pass_by() {
    let count = COUNT.load(Ordering::Relaxed);
    if count == 0 {
        return;
    }
    let paid = PAID.fetch_add(PAID_BY_ONE, Ordering::Relaxed) + PAID_BY_ONE;
    if paid >= PRICE.load(Ordering::Relaxed).max(count) {
        collect_unless_others_do();
    }
}

/// Somebody sends descriptors, whose number has nothing to do with what is closed.
pub(super) fn collect_if_due() {
    if COUNT.load(Ordering::Relaxed) >= DUE.load(Ordering::Relaxed) {
        collect_unless_others_do();
    }
}

fn collect_unless_others_do() {
    let collecting = COLLECTING.try_lock();
    let garbage = if collecting.is_some() { garbage() } else { Vec::new() };
    drop(collecting);
    empty(&garbage);
}

/// Looks for sockets that nobody can reach, and has them go away.
pub(super) fn collect() {
    let collecting = COLLECTING.lock();
    let garbage = garbage();
    drop(collecting);
    empty(&garbage);
}

/// Emptying them closes sockets, which comes back to `pass_by`. What nobody can reach stays so.
fn empty(garbage: &[Arc<Endpoint>]) {
    for endpoint in garbage {
        endpoint.empty();
    }
}

/// Endpoints that are held by queues only which nobody can read. For who holds `COLLECTING`.
fn garbage() -> Vec<Arc<Endpoint>> {
    let moves = MOVES.load(Ordering::SeqCst);
    if MOVING.load(Ordering::SeqCst) != 0 {
        return Vec::new();
    }
    let (mut suspects, mut steps) = suspects();
    for at in 0..suspects.len() {
        let (holds, looked_at) = suspects[at].1.endpoint.holds();
        steps += looked_at;
        for held in &holds {
            if let Some(held) = find(&suspects, *held) {
                suspects[held].1.references = suspects[held].1.references.saturating_sub(1);
            }
        }
        suspects[at].1.holds = holds;
        crate::task::yield_if_needed();
    }
    let mut next: Vec<usize> = (0..suspects.len()).filter(|&at| suspects[at].1.references > 0).collect();
    while let Some(at) = next.pop() {
        if core::mem::replace(&mut suspects[at].1.reached, true) {
            continue;
        }
        let holds = core::mem::take(&mut suspects[at].1.holds);
        steps += holds.len();
        crate::task::yield_if_needed();
        next.extend(
            holds.iter().filter_map(|held| find(&suspects, *held)).filter(|&held| !suspects[held].1.reached),
        );
    }
    PAID.store(0, Ordering::Relaxed);
    PRICE.store(steps, Ordering::Relaxed);
    DUE.store(FEW.max(2 * COUNT.load(Ordering::Relaxed)), Ordering::Relaxed);
    if MOVES.load(Ordering::SeqCst) != moves {
        return Vec::new();
    }
    suspects
        .into_iter()
        .filter(|(_, suspect)| !suspect.reached)
        .map(|(_, suspect)| suspect.endpoint)
        .collect()
}

fn find(suspects: &[(usize, Suspect)], key: usize) -> Option<usize> {
    suspects.binary_search_by_key(&key, |(key, _)| *key).ok()
}

/// The sockets to look at, by the addresses of their endpoints in rising order, and how many were asked.
fn suspects() -> (Vec<(usize, Suspect)>, usize) {
    let under_way = UNDER_WAY.lock();
    let steps = under_way.len();
    // Under the lock: nothing else than these messages holds them then.
    let unheld = under_way.iter().filter(|(_, one)| one.description.strong_count() == one.times);
    let unheld: Vec<_> = unheld.map(|(key, one)| (*key, one.endpoint.clone(), one.times)).collect();
    drop(under_way);
    let suspects = unheld.into_iter().filter_map(|(key, endpoint, references)| {
        let endpoint = endpoint.upgrade().filter(|endpoint| endpoint.leads_on())?;
        Some((key, Suspect { endpoint, references, holds: Vec::new(), reached: false }))
    });
    (suspects.collect(), steps)
}

impl Endpoint {
    /// Whether its queue or its backlog may hold sockets.
    fn leads_on(&self) -> bool {
        let state = self.state.lock();
        state.incoming.with_rights() > 0 || state.backlog().next().is_some()
    }

    /// The endpoints of AF_UNIX that its queue and those in its backlog hold, and how many steps it took to find them.
    fn holds(&self) -> (Vec<usize>, usize) {
        let (mut held, mut steps) = (Vec::new(), 0);
        let state = self.state.lock();
        steps += state.incoming.held_endpoints(&mut held);
        let waiting: Vec<_> = state.backlog().map(|socket| socket.endpoint().clone()).collect();
        drop(state);
        for endpoint in waiting {
            steps += 1 + endpoint.state.lock().incoming.held_endpoints(&mut held);
        }
        (held, steps)
    }

    /// Drops what has come in, which nobody can receive.
    fn empty(&self) {
        let mut state = self.state.lock();
        let dropped = (core::mem::take(&mut state.incoming), state.take_backlog());
        drop(state);
        drop(dropped);
    }
}

impl super::incoming::Incoming {
    /// Adds the addresses of the endpoints of AF_UNIX that its packets hold; how many packets and descriptors it has looked at.
    fn held_endpoints(&self, held: &mut Vec<usize>) -> usize {
        let (mut left, mut steps) = (self.with_rights(), 0);
        for packet in self.iter() {
            if left == 0 {
                break;
            }
            steps += 1 + packet.rights.count();
            left -= usize::from(!packet.rights.is_empty());
            held.extend(packet.rights.endpoints().map(|endpoint| Arc::as_ptr(endpoint).addr()));
        }
        steps
    }
}
