//! POSIX message queues: what `mq_open` makes and finds.
//!
//! A queue has a name of its own, in no directory, and stays until it is unlinked and nobody has it open. Messages go by priority, and among equal ones in
//! the order in which they came. One process can ask for news of the next message that meets an empty queue for which nobody waits.

use super::file::{File, Patience};
use super::filesystem::MESSAGE_QUEUES;
use super::readiness::{Observers, Readiness};
use super::{Access, Caller, Content, FileContent, Inode, Message, waiting};
use crate::process::signal::{Information, Signal, code, send_to_process};
use crate::process::{Process, current};
use crate::sync::{Mutex, SpinLock, WaitQueue};
use crate::syscall::Errno;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicU64, Ordering};

/// The bounds of `/proc/sys/fs/mqueue`, which a program with the right to may change.
pub(crate) struct QueueBounds {
    /// `queues_max`: queues with a name.
    pub(crate) queues: AtomicU64,
    /// `msg_max` and `msgsize_max`: the largest queue for who has no privilege.
    pub(crate) messages: AtomicU64,
    /// See `messages`.
    pub(crate) bytes: AtomicU64,
    /// `msg_default` and `msgsize_default`: the queue that is made if nobody says how large.
    pub(crate) usual_messages: AtomicU64,
    /// See `usual_messages`.
    pub(crate) usual_bytes: AtomicU64,
}

/// The bounds in force, at first Linux's.
pub(crate) static QUEUE_BOUNDS: QueueBounds = QueueBounds {
    queues: AtomicU64::new(256),
    messages: AtomicU64::new(10),
    bytes: AtomicU64::new(8192),
    usual_messages: AtomicU64::new(10),
    usual_bytes: AtomicU64::new(8192),
};

impl QueueBounds {
    /// The largest queue for who has no privilege.
    pub(crate) fn most(&self) -> Room {
        Room { messages: number(&self.messages), bytes: number(&self.bytes) }
    }

    /// The queue that is made if nobody says how large: not larger than the largest.
    pub(crate) fn usual(&self) -> Room {
        let most = self.most();
        Room {
            messages: number(&self.usual_messages).min(most.messages),
            bytes: number(&self.usual_bytes).min(most.bytes),
        }
    }
}

fn number(bound: &AtomicU64) -> usize {
    bound.load(Ordering::Relaxed) as usize
}

/// The queues that have a name.
static NAMED: Mutex<BTreeMap<Vec<u8>, Arc<MessageQueue>>> = Mutex::new(BTreeMap::new());

/// Bytes that the queues of each user may come to hold, for as long as anybody has them open.
static CHARGED: SpinLock<BTreeMap<u32, u64>> = SpinLock::new(BTreeMap::new());

/// What a queue counts for against the limit of the user who made it.
struct Charge {
    user: u32,
    bytes: u64,
}

impl Charge {
    /// EMFILE if the user's queues would come to more than `most`.
    fn new(user: u32, bytes: u64, most: u64) -> Result<Self, Errno> {
        let mut charged = CHARGED.lock();
        let before = charged.get(&user).copied().unwrap_or(0);
        let after = before.checked_add(bytes).filter(|after| *after <= most).ok_or(Errno::EMFILE)?;
        charged.insert(user, after);
        Ok(Self { user, bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut charged = CHARGED.lock();
        let left = charged.get(&self.user).map_or(0, |bytes| bytes - self.bytes);
        if left == 0 {
            charged.remove(&self.user);
        } else {
            charged.insert(self.user, left);
        }
    }
}

/// What is asked of a queue that is to be made.
pub(crate) struct Making {
    /// Permissions.
    pub(crate) mode: u32,
    /// Its size.
    pub(crate) room: Room,
    /// RLIMIT_MSGQUEUE.
    pub(crate) most: u64,
}

/// How large a queue is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Messages that it holds.
    pub(crate) messages: usize,
    /// Bytes of one of them.
    pub(crate) bytes: usize,
}

/// What a process hears of the next message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// Nothing: only nobody else does.
    None,
    /// This signal with this value.
    Signal(Signal, u64),
}

struct Registration {
    process: Weak<Process>,
    news: News,
}

struct State {
    /// By priority, then by age.
    messages: BTreeMap<(Reverse<u32>, u64), Message>,
    next: u64,
    receivers: usize,
    registration: Option<Registration>,
}

pub(crate) struct MessageQueue {
    inode: Arc<Inode>,
    room: Room,
    _charge: Charge,
    state: SpinLock<State>,
    arrived: WaitQueue,
    taken: WaitQueue,
    observers: Observers,
}

impl MessageQueue {
    /// The queue of that name, made if `creates` says how and there is none; `exclusive` wants a new one.
    ///
    /// # Errors
    /// As `mq_open`'s.
    pub(crate) fn open(
        name: &[u8],
        wanted: Access,
        who: &Caller,
        creates: Option<Making>,
        exclusive: bool,
    ) -> Result<Arc<Self>, Errno> {
        let mut named = NAMED.lock();
        match (named.get(name), creates) {
            (Some(_), Some(_)) if exclusive => Err(Errno::EEXIST),
            (Some(queue), _) => queue.inode.check(who, wanted).map(|()| queue.clone()),
            (None, None) => Err(Errno::ENOENT),
            (None, Some(_)) if named.len() >= number(&QUEUE_BOUNDS.queues) && who.user != 0 => Err(Errno::ENOSPC),
            (None, Some(making)) => {
                let queue = Arc::new(Self::new(&making, who)?);
                named.insert(name.to_vec(), queue.clone());
                Ok(queue)
            }
        }
    }

    fn new(making: &Making, who: &Caller) -> Result<Self, Errno> {
        let Making { mode, room, most } = *making;
        let charge = Charge::new(who.user, (room.messages * room.bytes) as u64, most)?;
        let state = State { messages: BTreeMap::new(), next: 0, receivers: 0, registration: None };
        Ok(Self {
            inode: Inode::new(&MESSAGE_QUEUES, Content::Regular(FileContent::empty()), mode, who),
            room,
            _charge: charge,
            state: SpinLock::new(state),
            arrived: WaitQueue::new(),
            taken: WaitQueue::new(),
            observers: Observers::new(),
        })
    }

    /// Takes a name away from its queue.
    ///
    /// # Errors
    /// ENOENT; EPERM if it is another's.
    pub(crate) fn unlink(name: &[u8], who: &Caller) -> Result<(), Errno> {
        let mut named = NAMED.lock();
        named.get(name).ok_or(Errno::ENOENT)?.inode.check_owner(who)?;
        let removed = named.remove(name);
        drop(named);
        drop(removed);
        Ok(())
    }

    pub(crate) fn inode(&self) -> &Arc<Inode> {
        &self.inode
    }

    pub(crate) fn room(&self) -> Room {
        self.room
    }

    /// Messages in it.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().messages.len()
    }

    /// Adds a message, as soon as there is room.
    ///
    /// # Errors
    /// EAGAIN, ETIMEDOUT, or a restart code.
    pub(crate) fn send(&self, message: Message, priority: u32, patience: Patience, until: Option<u64>) -> Result<(), Errno> {
        let mut message = Some(message);
        let mut attempt = || {
            let mut state = self.state.lock();
            if state.messages.len() >= self.room.messages {
                return None;
            }
            let is_news = state.messages.is_empty() && state.receivers == 0;
            let age = state.next;
            state.next += 1;
            state.messages.insert((Reverse(priority), age), message.take()?);
            Some(if is_news { state.registration.take() } else { None })
        };
        let registration = waiting::attempt_until(&self.taken, patience, until, &mut attempt)?;
        self.arrived.wake_all();
        self.observers.announce(Readiness::READABLE);
        if let Some(registration) = registration {
            registration.tell();
        }
        Ok(())
    }

    /// Takes the first message and its priority, as soon as there is one.
    ///
    /// # Errors
    /// As [`MessageQueue::send`].
    pub(crate) fn receive(&self, patience: Patience, until: Option<u64>) -> Result<(Message, u32), Errno> {
        let take = || {
            let ((Reverse(priority), _), message) = self.state.lock().messages.pop_first()?;
            Some((message, priority))
        };
        let received = match (take(), patience) {
            (Some(received), _) => received,
            (None, Patience::Refuse) => return Err(Errno::EAGAIN),
            (None, Patience::Wait) => {
                self.state.lock().receivers += 1;
                let received = waiting::attempt_until(&self.arrived, patience, until, take);
                self.state.lock().receivers -= 1;
                received?
            }
        };
        self.taken.wake_all();
        self.observers.announce(Readiness::WRITABLE);
        Ok(received)
    }

    /// Has the caller hear of the next message; `None` if it no longer wants to.
    ///
    /// # Errors
    /// EBUSY if somebody has asked already.
    pub(crate) fn notify(&self, news: Option<News>) -> Result<(), Errno> {
        let own = current().process().clone();
        let mut state = self.state.lock();
        let asked = state.registration.as_ref().and_then(|registration| registration.process.upgrade());
        // Who has come to its end has closed its descriptors with it.
        let asked = asked.filter(|process| process.memory().is_some());
        let former = match (news, asked) {
            (Some(_), Some(_)) => return Err(Errno::EBUSY),
            (Some(news), None) => {
                state.registration.replace(Registration { process: Arc::downgrade(&own), news })
            }
            (None, Some(other)) if Arc::ptr_eq(&own, &other) => state.registration.take(),
            (None, _) => None,
        };
        drop(state);
        drop(former);
        Ok(())
    }

    /// A process has closed one of its descriptors of it: it hears of no messages any more.
    pub(crate) fn forget(&self, process: &Arc<Process>) {
        let mut state = self.state.lock();
        let is_own = |registration: &mut Registration| registration.process.ptr_eq(&Arc::downgrade(process));
        let former = state.registration.take_if(is_own);
        drop(state);
        drop(former);
    }
}

impl Registration {
    fn tell(self) {
        if let (Some(process), News::Signal(signal, value)) = (self.process.upgrade(), self.news) {
            let sender = current();
            let (id, user) = (sender.process().id(), sender.process().credentials().user.real);
            // A full queue of signals loses it, as on Linux.
            let _ = send_to_process(&process, Information::queued(signal, code::SI_MESGQ, id, user, value));
        }
    }
}

/// One opening of a queue.
pub(crate) struct QueueFile(Arc<MessageQueue>);

impl QueueFile {
    pub(crate) fn new(queue: Arc<MessageQueue>) -> Self {
        Self(queue)
    }

    pub(crate) fn queue(&self) -> &MessageQueue {
        &self.0
    }
}

impl File for QueueFile {
    fn readiness(&self) -> Readiness {
        let count = self.0.count();
        let mut readiness = Readiness::empty();
        readiness.set(Readiness::READABLE, count > 0);
        readiness.set(Readiness::WRITABLE, count < self.0.room.messages);
        readiness
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.0.observers), None]
    }
}
