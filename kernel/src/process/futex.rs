//! Futexes: sleeping on a word of user memory.
//!
//! Waiters stand in buckets, chosen by a hash of the word's key. A key names a place in memory: address space
//! and address for a private word, object and offset for one in shared memory, so that processes that map the
//! same page meet.
//!
//! **Why no wake-up is lost.** A waiter locks its bucket, reads the word, and if it still has the expected value joins
//! the bucket before it unlocks. A waker has changed the word (in user mode) before it calls, and then locks
//! the same bucket. If the waker's turn comes first, its store is ordered before the waiter's read by the
//! lock, so the waiter sees the new value and does not sleep. If the waiter's turn comes first, the waker
//! finds it in the bucket. There is no third case.
//!
//! The word is read under a spinning lock, where a page cannot be brought in. If it is not there the bucket
//! is unlocked, the page is brought in, and everything starts over.
//!
//! A bucket is a list that runs through the sleepers themselves: a task may wait on many words at once, and many tasks on one, and neither joining nor
//! leaving may take longer or more memory for that.
//!
//! A sleeper is done when its `woken` mark is set, and only then; the mark is set once, by whoever takes it
//! out of its bucket. Requeueing changes the bucket under both buckets' locks, so a sleeper that gives up
//! follows its `bucket` number until it holds the lock of the bucket that it is in.
#![allow(unsafe_code)]

use super::restart;
use crate::memory::{AddressSpace, current_space};
use crate::sync::{SpinLock, SpinLockGuard, Wake};
use crate::syscall::Errno;
use crate::task::{self, Task};
use crate::time;
use ::memory::{Access, FutexKey};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use intrusive_collections::{LinkedList, LinkedListAtomicLink, intrusive_adapter};
use rustc_hash::FxHasher;

const BUCKET_COUNT: usize = 256;
static BUCKETS: [SpinLock<LinkedList<InOrder>>; BUCKET_COUNT] =
    [const { SpinLock::new(LinkedList::new(InOrder::NEW)) }; BUCKET_COUNT];

/// A task that waits on one word.
struct Sleeper {
    link: LinkedListAtomicLink,
    /// What it waits on. Changed under the locks of both buckets.
    key: SpinLock<FutexKey>,
    bits: u32,
    task: Arc<Task>,
    woken: AtomicBool,
    bucket: AtomicUsize,
}

intrusive_adapter!(InOrder = Arc<Sleeper>: Sleeper { link => LinkedListAtomicLink });

impl Sleeper {
    fn waits_on(&self, key: &FutexKey) -> bool {
        *self.key.lock() == *key
    }
}

type Bucket = SpinLockGuard<'static, LinkedList<InOrder>>;

/// A word to wait on or wake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    address: u64,
    shared: bool,
}

impl Word {
    /// Checks the alignment.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn new(address: u64, shared: bool) -> Result<Word, Errno> {
        if address.is_multiple_of(4) { Ok(Word { address, shared }) } else { Err(Errno::EINVAL) }
    }

    fn key(self, space: &AddressSpace) -> Result<FutexKey, Errno> {
        space.futex_key(self.address, self.shared).map_err(|_| Errno::EFAULT)
    }
}

fn bucket_of(key: &FutexKey) -> usize {
    let mut hasher = FxHasher::default();
    key.hash(&mut hasher);
    (hasher.finish() >> 32) as usize % BUCKET_COUNT
}

fn space() -> Result<Arc<AddressSpace>, Errno> {
    current_space().ok_or(Errno::EFAULT)
}

/// Brings the word's page in.
fn bring_in(space: &AddressSpace, word: Word, access: Access) -> Result<(), Errno> {
    space.fault_in(word.address, access).map_err(|_| Errno::EFAULT)
}

/// Waits until a waker chooses this sleeper, if the word is `expected` now.
///
/// # Errors
/// EAGAIN if the word is not `expected`; ETIMEDOUT after `deadline` (nanoseconds since boot); EFAULT; EINVAL
/// for no bits; a restart code when interrupted.
pub(crate) fn wait(word: Word, expected: u32, bits: u32, deadline: Option<u64>) -> Result<usize, Errno> {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let sleeper = join(word, expected, bits)?;
    match sleep(|| sleeper.woken.load(Ordering::Acquire), deadline) {
        Ok(()) => Ok(0),
        Err(_) if !leave(&sleeper) => Ok(0),
        Err(Wake::TimedOut) => Err(Errno::ETIMEDOUT),
        Err(Wake::Interrupted) if deadline.is_none() => Err(Errno::ERESTARTSYS),
        Err(Wake::Interrupted) => Err(restart::interrupted(move || wait(word, expected, bits, deadline))),
    }
}

fn join(word: Word, expected: u32, bits: u32) -> Result<Arc<Sleeper>, Errno> {
    let space = space()?;
    loop {
        let key = word.key(&space)?;
        let index = bucket_of(&key);
        let mut bucket = BUCKETS[index].lock();
        match space.try_atomic_user(word.address, Access::READ, |value| value.load(Ordering::SeqCst)) {
            None => {
                drop(bucket);
                bring_in(&space, word, Access::READ)?;
            }
            Some(value) if value != expected => return Err(Errno::EAGAIN),
            Some(_) => {
                let sleeper = Arc::new(Sleeper {
                    link: LinkedListAtomicLink::new(),
                    key: SpinLock::new(key),
                    bits,
                    task: task::current().arc(),
                    woken: AtomicBool::new(false),
                    bucket: AtomicUsize::new(index),
                });
                bucket.push_back(sleeper.clone());
                return Ok(sleeper);
            }
        }
    }
}

/// Waits until a waker chooses one of several words, if each is what is expected of it now. Says which.
///
/// # Errors
/// As [`wait`], but without bits.
pub(crate) fn wait_for_any(words: &[(Word, u32)], deadline: Option<u64>) -> Result<usize, Errno> {
    let mut sleepers: Vec<Arc<Sleeper>> = Vec::with_capacity(words.len());
    for &(word, expected) in words {
        match join(word, expected, u32::MAX) {
            Ok(sleeper) => sleepers.push(sleeper),
            // Who was chosen while it still looked has been woken, whatever the later words are.
            Err(error) => return leave_all(&sleepers).ok_or(error),
        }
    }
    let slept = sleep(|| sleepers.iter().any(|sleeper| sleeper.woken.load(Ordering::Acquire)), deadline);
    match (leave_all(&sleepers), slept) {
        (Some(chosen), _) => Ok(chosen),
        (None, Err(Wake::TimedOut)) => Err(Errno::ETIMEDOUT),
        (None, _) => Err(Errno::ERESTARTSYS),
    }
}

/// Takes sleepers out of their buckets; says which was woken before, the last of them if several were.
fn leave_all(sleepers: &[Arc<Sleeper>]) -> Option<usize> {
    let mut woken = None;
    for (index, sleeper) in sleepers.iter().enumerate() {
        if !leave(sleeper) {
            woken = Some(index);
        }
    }
    woken
}

fn sleep(is_woken: impl Fn() -> bool, deadline: Option<u64>) -> Result<(), Wake> {
    loop {
        task::prepare_to_sleep();
        let outcome = if is_woken() {
            Some(Ok(()))
        } else if task::current().interrupted() {
            Some(Err(Wake::Interrupted))
        } else if deadline.is_some_and(|deadline| time::now() >= deadline) {
            Some(Err(Wake::TimedOut))
        } else {
            None
        };
        if let Some(outcome) = outcome {
            task::stay_awake();
            return outcome;
        }
        task::sleep(deadline);
    }
}

/// Takes a sleeper that gives up out of its bucket. Returns false if a waker was faster: then it counts as
/// woken.
fn leave(sleeper: &Arc<Sleeper>) -> bool {
    loop {
        let index = sleeper.bucket.load(Ordering::Acquire);
        let mut bucket = BUCKETS[index].lock();
        if sleeper.woken.load(Ordering::Acquire) {
            return false;
        }
        // It may have been moved to another since.
        if sleeper.bucket.load(Ordering::Acquire) == index {
            // SAFETY: who is not woken is in the bucket that it names: all that changes only under the lock of that bucket.
            let left = unsafe { bucket.cursor_mut_from_ptr(Arc::as_ptr(sleeper)) }.remove();
            drop(bucket);
            drop(left);
            return true;
        }
        drop(bucket);
        core::hint::spin_loop();
    }
}

/// Wakes at most `count` sleepers on `word` that wait for one of `bits`, in the order in which they came.
///
/// # Errors
/// EFAULT; EINVAL for no bits.
pub(crate) fn wake(word: Word, count: usize, bits: u32) -> Result<usize, Errno> {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let key = word.key(&*space()?)?;
    let mut bucket = BUCKETS[bucket_of(&key)].lock();
    Ok(wake_in(&mut bucket, &key, count, bits))
}

/// Wakes one sleeper on an address: what the kernel does when a thread ends. The look-up as a shared word
/// finds private memory by the same key as a private one does.
///
/// # Errors
/// EFAULT; EINVAL if it is not aligned.
pub(crate) fn wake_address(address: u64) -> Result<(), Errno> {
    wake(Word::new(address, true)?, 1, u32::MAX).map(|_| ())
}

fn wake_in(bucket: &mut Bucket, key: &FutexKey, count: usize, bits: u32) -> usize {
    let mut woken = 0;
    let mut at = bucket.front_mut();
    while woken < count
        && let Some(sleeper) = at.get()
    {
        if sleeper.bits & bits == 0 || !sleeper.waits_on(key) {
            at.move_next();
        } else if let Some(sleeper) = at.remove() {
            finish(&sleeper);
            woken += 1;
        }
    }
    woken
}

fn finish(sleeper: &Sleeper) {
    sleeper.woken.store(true, Ordering::Release);
    sleeper.task.wake();
}

/// Both buckets of an operation on two words, locked in order of their numbers.
struct Pair {
    first: Bucket,
    second: Option<Bucket>,
}

impl Pair {
    /// Locks buckets `one` and `other`; `first` is that of `one`.
    fn lock(one: usize, other: usize) -> Pair {
        if one == other {
            return Pair { first: BUCKETS[one].lock(), second: None };
        }
        if one < other {
            let first = BUCKETS[one].lock();
            return Pair { first, second: Some(BUCKETS[other].lock()) };
        }
        let second = Some(BUCKETS[other].lock());
        Pair { first: BUCKETS[one].lock(), second }
    }

    fn other(&mut self) -> &mut Bucket {
        self.second.as_mut().unwrap_or(&mut self.first)
    }
}

/// Wakes up to `wake` sleepers of `from` and moves up to `move_count` others to `to`, if `from` still is
/// `expected` (when given). Returns how many were woken or moved.
///
/// # Errors
/// EAGAIN if the word has changed; EFAULT.
pub(crate) fn requeue(
    from: Word,
    to: Word,
    wake: usize,
    move_count: usize,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    let space = space()?;
    loop {
        let (from_key, to_key) = (from.key(&space)?, to.key(&space)?);
        let (from_index, to_index) = (bucket_of(&from_key), bucket_of(&to_key));
        let mut pair = Pair::lock(from_index, to_index);
        if let Some(expected) = expected {
            match space.try_atomic_user(from.address, Access::READ, |value| value.load(Ordering::SeqCst)) {
                None => {
                    drop(pair);
                    bring_in(&space, from, Access::READ)?;
                    continue;
                }
                Some(value) if value != expected => return Err(Errno::EAGAIN),
                Some(_) => {}
            }
        }
        let woken = wake_in(&mut pair.first, &from_key, wake, u32::MAX);
        let moved = move_sleepers(&mut pair, &from_key, to_key, to_index, move_count);
        return Ok(woken + moved);
    }
}

fn move_sleepers(pair: &mut Pair, from: &FutexKey, to: FutexKey, to_index: usize, count: usize) -> usize {
    let Pair { first, second } = pair;
    if *from == to {
        return first.iter().filter(|sleeper| sleeper.waits_on(from)).take(count).count();
    }
    let mut moved = LinkedList::new(InOrder::NEW);
    let mut moved_count = 0;
    let mut at = first.front_mut();
    while moved_count < count
        && let Some(sleeper) = at.get()
    {
        if !sleeper.waits_on(from) {
            at.move_next();
        } else if let Some(sleeper) = at.remove() {
            *sleeper.key.lock() = to;
            sleeper.bucket.store(to_index, Ordering::Release);
            moved.push_back(sleeper);
            moved_count += 1;
        }
    }
    second.as_mut().unwrap_or(first).back_mut().splice_after(moved);
    moved_count
}

/// The operation and comparison of FUTEX_WAKE_OP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeOperation {
    operation: u32,
    operand: i32,
    comparison: u32,
    comparand: i32,
}

impl WakeOperation {
    /// Decodes the call's last argument.
    ///
    /// # Errors
    /// ENOSYS for an unknown operation or comparison.
    pub(crate) fn decode(encoded: u32) -> Result<WakeOperation, Errno> {
        let sign_extend = |bits: u32| ((bits << 20) as i32) >> 20;
        let mut operand = sign_extend(encoded >> 12 & 0xfff);
        if encoded >> 31 != 0 {
            operand = 1 << (operand & 31);
        }
        let (operation, comparison) = (encoded >> 28 & 7, encoded >> 24 & 15);
        if operation > 4 || comparison > 5 {
            return Err(Errno::ENOSYS);
        }
        Ok(WakeOperation { operation, operand, comparison, comparand: sign_extend(encoded & 0xfff) })
    }

    /// Changes the word and says whether its old value passes the comparison.
    fn apply(self, word: &AtomicU32) -> bool {
        let operand = self.operand as u32;
        let old = match self.operation {
            0 => word.swap(operand, Ordering::SeqCst),
            1 => word.fetch_add(operand, Ordering::SeqCst),
            2 => word.fetch_or(operand, Ordering::SeqCst),
            3 => word.fetch_and(!operand, Ordering::SeqCst),
            _ => word.fetch_xor(operand, Ordering::SeqCst),
        } as i32;
        match self.comparison {
            0 => old == self.comparand,
            1 => old != self.comparand,
            2 => old < self.comparand,
            3 => old <= self.comparand,
            4 => old > self.comparand,
            _ => old >= self.comparand,
        }
    }
}

/// Changes `other` by `operation`, wakes up to `wake` sleepers of `word`, and if the comparison held up to
/// `wake_other` of `other`.
///
/// # Errors
/// EFAULT.
pub(crate) fn wake_with_operation(
    word: Word,
    other: Word,
    wake: usize,
    wake_other: usize,
    operation: WakeOperation,
) -> Result<usize, Errno> {
    let space = space()?;
    loop {
        let (key, other_key) = (word.key(&space)?, other.key(&space)?);
        let mut pair = Pair::lock(bucket_of(&key), bucket_of(&other_key));
        let Some(passed) =
            space.try_atomic_user(other.address, Access::WRITE, |value| operation.apply(value))
        else {
            drop(pair);
            bring_in(&space, other, Access::WRITE)?;
            continue;
        };
        let mut woken = wake_in(&mut pair.first, &key, wake, u32::MAX);
        if passed {
            woken += wake_in(pair.other(), &other_key, wake_other, u32::MAX);
        }
        return Ok(woken);
    }
}
