//! Rounds: work that is done for everybody who asked before it began.
//!
//! Interrupting the same CPUs for each of many callers at once would let a program keep them from doing anything else. So one
//! caller at a time does the work, a *round*, and those that came before it began take its end for their own.
//!
//! ```text
//!   do what the others must see; FENCE; read begun: n      the first round that serves us is n + 1
//!   until ended > n:
//!       if ended == begun, make begun one more:            we lead that round
//!           FENCE; the work; ended = begun
//! ```
//!
//! A round that was in progress when we came (n itself) does not serve us: it may have looked around before we did what the
//! others must see. Of a later one we know that its beginning had not reached memory when we read `begun`, so our fence comes
//! before its leader's, and what its leader finds or causes after that fence is after what we did.

use crate::sync::{AtomicU64, Ordering, constructor};

/// How many rounds have begun and ended. They are equal while none is in progress.
#[derive(Debug)]
pub(crate) struct Rounds {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// The number of a round that its caller leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Led(u64);

impl Rounds {
    constructor! {
        pub(crate) fn new() -> Self {
            Rounds { begun: AtomicU64::new(0), ended: AtomicU64::new(0) }
        }
    }

    /// The latest round that does *not* serve a caller who has just fenced.
    pub(crate) fn latest(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a round after that one is over. Acquire: its work is visible then.
    pub(crate) fn is_over_after(&self, latest: u64) -> bool {
        self.ended.load(Ordering::Acquire) > latest
    }

    /// Begins a round, if none is in progress.
    pub(crate) fn begin(&self) -> Option<Led> {
        // Relaxed: it says whether a round is in progress. What the earlier leaders' work brought about is nothing that this one builds on.
        let ended = self.ended.load(Ordering::Relaxed);
        // Fails if a round is in progress, or if one has been led since `ended` was read. Its order is the leader's next fence.
        let begun = self.begun.compare_exchange(ended, ended + 1, Ordering::Relaxed, Ordering::Relaxed);
        begun.ok().map(|_| Led(ended + 1))
    }

    /// Ends the round. Release: see [`is_over_after`](Self::is_over_after).
    pub(crate) fn end(&self, round: Led) {
        self.ended.store(round.0, Ordering::Release);
    }
}
