//! Epoll: a standing list of files, and which of them became ready.
//!
//! Each registered descriptor is an `Interest`, an observer of its file. When the file announces a change
//! that the interest is about, the interest puts itself on the instance's ready list and wakes the waiters.
//! `epoll_wait` takes interests off that list, asks each file what it is ready for *now*, reports that, and
//! puts level-triggered ones back on: they leave the list once the file is found not to be ready. An
//! edge-triggered interest comes back only with the file's next announcement.
//!
//! Who holds whom: the instance holds its interests, a file's observer list holds them too; an interest
//! holds instance and description weakly. Whichever of the two goes away first takes the interest out.
//!
//! Lock order: interests of an instance, then a file's observer list, then the ready list.

use super::file::File;
use super::readiness::{Observer, Observers, Readiness};
use super::{Description, waiting};
use crate::sync::{InterruptLock, Mutex, SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use linux_raw_sys::general as abi;

/// How many instances may watch each other in a chain, besides the first: asking the outermost asks all of them,
/// each inside the other.
const MOST_NESTING: usize = 4;
/// Flags in an event mask that are not events.
const MODES: u32 = abi::EPOLLET | abi::EPOLLONESHOT | abi::EPOLLWAKEUP | abi::EPOLLEXCLUSIVE;

/// What a program asked to be told about one descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) events: u32,
    /// Handed back with each event.
    pub(crate) data: u64,
}

/// The part of an instance that its interests reach.
struct Ready {
    list: InterruptLock<VecDeque<Arc<Interest>>>,
    arrived: WaitQueue,
    observers: Observers,
    /// The instances that watch this one; only looked at and changed under `NESTING`.
    watchers: SpinLock<Vec<Weak<Ready>>>,
}

impl Ready {
    /// How many instances watch each other above this one, on the longest way.
    fn height(&self) -> usize {
        let watchers: Vec<_> = self.watchers.lock().iter().filter_map(Weak::upgrade).collect();
        watchers.iter().map(|watcher| watcher.height() + 1).max().unwrap_or(0)
    }

    /// Makes room for `count` interests: queueing happens in interrupts too and must not allocate.
    fn reserve(&self, count: usize) {
        // Allocated before the lock turns interrupts off.
        let mut larger = VecDeque::with_capacity(count.next_power_of_two());
        let mut list = self.list.lock();
        if list.capacity() < count {
            larger.extend(list.drain(..));
            core::mem::swap(&mut *list, &mut larger);
        }
        drop(list);
    }
}

pub(crate) struct Epoll {
    interests: Arc<Mutex<Interests>>,
    ready: Arc<Ready>,
}

/// By descriptor number and description: the same number may come to stand for another file.
type Interests = BTreeMap<(i32, usize), Arc<Interest>>;

/// One descriptor in one instance.
pub(crate) struct Interest {
    key: (i32, usize),
    description: Weak<Description>,
    /// Looked at in interrupts.
    request: InterruptLock<Request>,
    queued: AtomicBool,
    ready: Weak<Ready>,
    /// The instance's list, to be left when the description goes away.
    home: Weak<Mutex<Interests>>,
    itself: Weak<Interest>,
}

/// Registering and nesting checks see one state of all instances.
static NESTING: Mutex<()> = Mutex::new(());

impl Interest {
    /// The events that it now reports.
    fn mask(&self) -> Readiness {
        let request = *self.request.lock();
        if request.events & !MODES == 0 {
            // A one-shot that has fired.
            return Readiness::empty();
        }
        Readiness::from_bits_truncate(request.events & !MODES) | Readiness::ALWAYS
    }

    /// It is reported; says what was asked. Of a one-shot only its modes are left.
    fn fire(&self) -> Request {
        let mut request = self.request.lock();
        let asked = *request;
        if asked.events & abi::EPOLLONESHOT != 0 {
            request.events &= MODES;
        }
        asked
    }

    fn queue(self: &Arc<Self>) {
        let Some(ready) = self.ready.upgrade() else { return };
        if !self.queued.swap(true, Ordering::AcqRel) {
            ready.list.lock().push_back(self.clone());
        }
        ready.arrived.wake_one();
        ready.observers.announce(Readiness::READABLE);
    }

    /// Stops watching `file`, which is this interest's.
    fn leave(self: &Arc<Self>, file: &dyn File) {
        let observer: Arc<dyn Observer> = self.clone();
        for observers in file.observers().into_iter().flatten() {
            observers.remove(&observer);
        }
        // Marked as queued for good, so that it never is again.
        if self.queued.swap(true, Ordering::AcqRel)
            && let Some(ready) = self.ready.upgrade()
        {
            let mut list = ready.list.lock();
            let at = list.iter().position(|other| Arc::ptr_eq(other, self));
            let left = at.and_then(|at| list.remove(at));
            drop(list);
            drop(left);
        }
    }

    /// The description is being dropped.
    pub(super) fn file_is_gone(self: &Arc<Self>, file: &dyn File) {
        self.leave(file);
        if let Some(home) = self.home.upgrade() {
            let removed = home.lock().remove(&self.key);
            drop(removed);
        }
    }
}

impl Observer for Interest {
    fn notify(&self, change: Readiness) {
        if self.mask().intersects(change)
            && let Some(itself) = self.itself.upgrade()
        {
            itself.queue();
        }
    }
}

fn key_of(descriptor: i32, description: &Arc<Description>) -> (i32, usize) {
    (descriptor, Arc::as_ptr(description).addr())
}

impl Epoll {
    pub(crate) fn new() -> Self {
        let ready = Ready {
            list: InterruptLock::new(VecDeque::new()),
            arrived: WaitQueue::new(),
            observers: Observers::new(),
            watchers: SpinLock::new(Vec::new()),
        };
        Self { interests: Arc::new(Mutex::new(BTreeMap::new())), ready: Arc::new(ready) }
    }

    /// Starts watching. EEXIST if the descriptor is watched already, EPERM for files that cannot be, ELOOP if
    /// instances would watch each other in a circle or too deeply.
    pub(crate) fn add(&self, descriptor: i32, description: &Arc<Description>, request: Request) -> Result<(), Errno> {
        let file = description.file();
        if file.observers()[0].is_none() {
            return Err(Errno::EPERM);
        }
        let _nesting = NESTING.lock();
        let inner = description.file_as::<Epoll>();
        if let Some(inner) = inner
            && self.ready.height() + 1 + inner.depth(self)? > MOST_NESTING
        {
            return Err(Errno::ELOOP);
        }
        let mut interests = self.interests.lock();
        let key = key_of(descriptor, description);
        if interests.contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        let interest = Arc::new_cyclic(|itself| Interest {
            key,
            description: Arc::downgrade(description),
            request: InterruptLock::new(request),
            queued: AtomicBool::new(false),
            ready: Arc::downgrade(&self.ready),
            home: Arc::downgrade(&self.interests),
            itself: itself.clone(),
        });
        // Room for it before anybody can tell it anything.
        self.ready.reserve(interests.len() + 1);
        let mut lists = file.observers().into_iter().flatten();
        if let Err(error) = lists.try_for_each(|observers| observers.add(interest.clone())) {
            interest.leave(file);
            return Err(error);
        }
        interests.insert(key, interest.clone());
        description.note_interest(&interest);
        if let Some(inner) = inner {
            let mut watchers = inner.ready.watchers.lock();
            watchers.retain(|watcher| watcher.strong_count() > 0);
            watchers.push(Arc::downgrade(&self.ready));
        }
        drop(interests);
        // What was ready before the registration is an event too.
        interest.notify(description.readiness());
        Ok(())
    }

    /// Changes what is watched for; ENOENT if the descriptor is not watched.
    pub(crate) fn modify(&self, descriptor: i32, description: &Arc<Description>, request: Request) -> Result<(), Errno> {
        let interest =
            self.interests.lock().get(&key_of(descriptor, description)).cloned().ok_or(Errno::ENOENT)?;
        *interest.request.lock() = request;
        interest.notify(description.readiness());
        Ok(())
    }

    /// Stops watching; ENOENT if the descriptor is not watched.
    pub(crate) fn remove(&self, descriptor: i32, description: &Arc<Description>) -> Result<(), Errno> {
        let _nesting = NESTING.lock();
        let interest =
            self.interests.lock().remove(&key_of(descriptor, description)).ok_or(Errno::ENOENT)?;
        interest.leave(description.file());
        if let Some(inner) = description.file_as::<Epoll>() {
            let mut watchers = inner.ready.watchers.lock();
            if let Some(at) = watchers.iter().position(|watcher| watcher.as_ptr() == Arc::as_ptr(&self.ready)) {
                watchers.swap_remove(at);
            }
        }
        Ok(())
    }

    /// How many instances watch each other below this one, on the longest way. ELOOP if `outer` is among them.
    fn depth(&self, outer: &Epoll) -> Result<usize, Errno> {
        if core::ptr::eq(self, outer) {
            return Err(Errno::ELOOP);
        }
        let watched: Vec<_> =
            self.interests.lock().values().filter_map(|interest| interest.description.upgrade()).collect();
        let mut depth = 0;
        for inner in watched.iter().filter_map(|description| description.file_as::<Epoll>()) {
            depth = depth.max(inner.depth(outer)? + 1);
        }
        Ok(depth)
    }

    /// Up to `most` events, without waiting.
    fn collect(&self, most: usize) -> Vec<Request> {
        let mut events = Vec::new();
        let mut again = Vec::new();
        // Each queued interest once: those put back on the list are for the next call.
        let queued = self.ready.list.lock().len();
        for _ in 0..queued {
            if events.len() == most {
                break;
            }
            let Some(interest) = self.ready.list.lock().pop_front() else { break };
            // Before the file is asked: a change after that queues it again.
            interest.queued.store(false, Ordering::Release);
            let Some(description) = interest.description.upgrade() else { continue };
            let found = description.readiness() & interest.mask();
            if found.is_empty() {
                continue;
            }
            let asked = interest.fire();
            events.push(Request { events: found.bits(), data: asked.data });
            if asked.events & (abi::EPOLLONESHOT | abi::EPOLLET) == 0 {
                again.push(interest.clone());
            }
        }
        for interest in again {
            if !interest.queued.swap(true, Ordering::AcqRel) {
                self.ready.list.lock().push_back(interest);
            }
        }
        events
    }

    /// Waits until something is ready or `deadline` (nanoseconds since boot) has passed.
    pub(crate) fn wait(&self, most: usize, deadline: Option<u64>) -> Result<Vec<Request>, Errno> {
        loop {
            let events = self.collect(most);
            if !events.is_empty() {
                return Ok(events);
            }
            let queued = || (!self.ready.list.lock().is_empty()).then_some(());
            if waiting::wait_until(&self.ready.arrived, deadline, queued)?.is_none() {
                return Ok(Vec::new());
            }
        }
    }
}

impl File for Epoll {
    fn readiness(&self) -> Readiness {
        let queued: Vec<_> = self.ready.list.lock().iter().cloned().collect();
        let any = queued.iter().any(|interest| {
            let description = interest.description.upgrade();
            description.is_some_and(|description| description.readiness().intersects(interest.mask()))
        });
        if any { Readiness::READABLE } else { Readiness::empty() }
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.ready.observers), None]
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        let interests = core::mem::take(&mut *self.interests.lock());
        for interest in interests.values() {
            // A description that is going away itself takes the interest out of its file.
            if let Some(description) = interest.description.upgrade() {
                interest.leave(description.file());
            }
        }
    }
}
