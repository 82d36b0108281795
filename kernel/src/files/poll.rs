//! Looking at several files once: the common part of `poll` and `select`.

use super::readiness::{Observer, Readiness};
use super::{Description, waiting};
use crate::sync::WaitQueue;
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

/// A task that looks at several files.
struct Poller {
    notified: AtomicBool,
    queue: WaitQueue,
}

impl Observer for Poller {
    fn notify(&self, _change: Readiness) {
        self.notified.store(true, Ordering::Release);
        self.queue.wake_all();
    }
}

/// A file and the events that count; None stands for a descriptor that is to be passed over.
pub(crate) type Wanted = Option<(Arc<Description>, Readiness)>;

fn found(files: &[Wanted]) -> Option<Vec<Readiness>> {
    let ready: Vec<_> = files
        .iter()
        .map(|wanted| match wanted {
            Some((description, events)) => description.readiness() & (*events | Readiness::ALWAYS),
            None => Readiness::empty(),
        })
        .collect();
    ready.iter().any(|ready| !ready.is_empty()).then_some(ready)
}

/// Waits until one of `files` is ready or `deadline` (nanoseconds since boot; None for ever) has passed.
/// Returns what each is ready for, in the same order.
pub(crate) fn poll(files: &[Wanted], deadline: Option<u64>) -> Result<Vec<Readiness>, Errno> {
    let nothing = || alloc::vec![Readiness::empty(); files.len()];
    if let Some(ready) = found(files) {
        return Ok(ready);
    }
    if deadline.is_some_and(|deadline| deadline <= crate::time::now()) {
        return Ok(nothing());
    }
    let poller = Arc::new(Poller { notified: AtomicBool::new(false), queue: WaitQueue::new() });
    let observer: Arc<dyn Observer> = poller.clone();
    let lists = || files.iter().flatten().flat_map(|(file, _)| file.file().observers()).flatten();
    lists().for_each(|observers| observers.add(observer.clone()));
    let result = loop {
        if let Some(ready) = found(files) {
            break Ok(ready);
        }
        let notified = || poller.notified.swap(false, Ordering::AcqRel).then_some(());
        match waiting::wait_until(&poller.queue, deadline, notified) {
            Ok(Some(())) => {}
            Ok(None) => break Ok(nothing()),
            Err(error) => break Err(error),
        }
    };
    lists().for_each(|observers| observers.remove(&observer));
    result
}
