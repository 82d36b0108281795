//! What the threads of an address space have registered for, before they may ask for barriers or be served by others'.
//!
//! Two words of bits. `announced` is what CPUs look at when they switch to the space; `ready` follows when every CPU that did not
//! see the announcement has been told, and is what calls are checked against.

use crate::names::names;
use crate::sync::{AtomicU64, Ordering, constructor};

names! {
    /// One kind of barrier to register for.
    pub enum Registration {
        Global "global": "Threads are reached by barriers that any process asks for on behalf of all.",
        Private "private": "The process may ask for barriers among its own threads.",
        Cores "cores": "The process may ask its threads' CPUs to forget instructions that they have fetched.",
        Sequences "sequences": "The process may ask that its threads start their restartable sequences again.",
    }
}

/// The registrations of one address space.
#[derive(Debug)]
pub(crate) struct Registrations {
    announced: AtomicU64,
    ready: AtomicU64,
}

impl Registrations {
    constructor! {
        pub(crate) fn new() -> Self {
            Registrations { announced: AtomicU64::new(0), ready: AtomicU64::new(0) }
        }
    }

    /// Lets CPUs that switch to the space see it. The caller fences and then looks for the CPUs that were there before.
    pub(crate) fn announce(&self, registration: Registration) {
        self.announced.fetch_or(1 << registration as u64, Ordering::Relaxed);
    }

    /// For a CPU that has joined the space and fenced: whether it was announced before.
    #[inline]
    pub(crate) fn is_announced(&self, registration: Registration) -> bool {
        self.announced.load(Ordering::Relaxed) >> registration as u64 & 1 == 1
    }

    /// Lets calls rely on it. Release: the CPUs that had to be told have been.
    pub(crate) fn complete(&self, registration: Registration) {
        self.ready.fetch_or(1 << registration as u64, Ordering::Release);
    }

    pub(crate) fn is_ready(&self, registration: Registration) -> bool {
        self.ready.load(Ordering::Acquire) >> registration as u64 & 1 == 1
    }

    /// Takes over what another space has, before any CPU uses this one. Whatever was done for the CPUs of the other is of no interest to
    /// this one, so the reading need not acquire it.
    pub(crate) fn inherit(&self, other: &Self) {
        let ready = other.ready.load(Ordering::Relaxed);
        self.announced.store(ready, Ordering::Relaxed);
        self.ready.store(ready, Ordering::Relaxed);
    }
}
