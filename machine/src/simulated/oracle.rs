//! Who owns each frame, what has been promised, and which cached entries these make worthless.
//!
//! The oracle has no clock. When something happens after which an entry may no longer be used, all entries that are so at that moment
//! are marked, with the reason in words; whoever uses a marked entry breaks a promise:
//!
//! * a frame loses its last owner: its translations, the cached way through it if it was a table, and stores to it that still wait
//!   in a buffer (**D1**);
//! * a frame is copied: translations through which it can be written although the tables do not allow that any more, and
//!   waiting stores (**D2**);
//! * a call returns: translations from before it began, if it removed mappings, for all uses, and if it took the right to write
//!   away, for stores; and, unless another call is at work there, whatever the tables do not allow now, and whatever is found
//!   from then on through a cached way that the tables do not have now (**D3**). While a kernel's own thread takes pages back, or cleans or
//!   merges them, what the tables do not allow is owed to nobody yet;
//! * a frame that replaced another at an address is used for the first time: the other's translations at that address (**D4**).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use explorer::Digest;
use memory::PageRange;

use super::caches::{Caches, DIRTY, FRAME, PRESENT, Translation, WRITABLE};
use super::operation::{Operation, OperationId, Promise};
use super::walker::reach;

/// A store that a program has made and that waits in a buffer.
#[derive(Debug)]
struct WaitingStore {
    frame: u64,
    page: u64,
    /// What has become of the frame since, in words.
    worthless: Option<String>,
}

/// Which frame is the newest at a page that any CPU has seen there, and whether it has been used.
#[derive(Debug)]
struct Newest {
    frame: u64,
    used: bool,
}

/// The records.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// The addresses of frames that have an owner.
    owned: BTreeSet<u64>,
    owned_digest: Digest,
    in_progress: Vec<Operation>,
    /// How many threads of the kernel's own change entries and promise nothing to programs.
    agents: usize,
    counts: Vec<u64>,
    waiting: Vec<VecDeque<WaitingStore>>,
    newest: BTreeMap<(u64, u64), Newest>,
}

/// An access of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) cpu: usize,
    pub(super) page: u64,
    pub(super) write: bool,
}

impl Oracle {
    pub(super) fn new(cpus: usize) -> Self {
        let waiting = (0..cpus).map(|_| VecDeque::new()).collect();
        Oracle { counts: vec![0; cpus], waiting, ..Oracle::default() }
    }

    /// What a reader knows the owner of those caches as.
    pub(super) fn name(&self, cpu: usize) -> String {
        if cpu < self.counts.len() { format!("CPU {cpu}") } else { "the device".to_owned() }
    }

    pub(super) fn is_owned(&self, frame: u64) -> bool {
        self.owned.contains(&frame)
    }

    pub(super) fn frame_given(&mut self, frame: u64) {
        self.owned.insert(frame);
        self.owned_digest = self.owned_digest.including(Digest::EMPTY.with(frame));
    }

    /// The frame has no owner any more: whatever leads to it is worthless.
    pub(super) fn frame_taken(&mut self, frame: u64, by: usize, caches: &mut [Caches]) {
        self.owned.remove(&frame);
        self.owned_digest = self.owned_digest.excluding(Digest::EMPTY.with(frame));
        let why = || format!("frame {:x} was freed by CPU {by}", frame >> 12);
        for cache in caches {
            for translation in
                cache.translations.values_mut().filter(|translation| translation.frame() == frame)
            {
                // Being freed is worse than having been promised to be gone.
                translation.dead = Some(format!("D1, frame safety: {}", why()));
            }
            for upper in cache.uppers.values_mut().filter(|upper| upper.table == frame) {
                upper.freed.get_or_insert_with(why);
            }
            if cache.walked == frame {
                cache.root_freed.get_or_insert_with(why);
            }
        }
        for store in self.waiting.iter_mut().flatten().filter(|store| store.frame == frame) {
            store.worthless.get_or_insert_with(|| format!("D1, frame safety: {}", why()));
        }
    }

    /// From here on a copy counts for whoever owned the page.
    pub(super) fn frame_copied(&mut self, frame: u64, by: usize, caches: &mut [Caches]) {
        let why = || format!("D2, write integrity: frame {:x} was copied by CPU {by}", frame >> 12);
        let translations = caches.iter_mut().flat_map(|cache| cache.translations.values_mut());
        for translation in translations {
            if translation.frame() == frame && translation.entry & WRITABLE != 0 {
                translation.copied.get_or_insert_with(why);
            }
        }
        for store in self.waiting.iter_mut().flatten().filter(|store| store.frame == frame) {
            store.worthless.get_or_insert_with(why);
        }
    }

    /// A thread of the kernel's own begins to change entries.
    pub(super) fn agent_begins(&mut self) {
        self.agents += 1;
    }

    /// It has flushed.
    pub(super) fn agent_ends(&mut self) {
        self.agents -= 1;
    }

    /// A call begins.
    pub(super) fn begin(
        &mut self,
        cpu: usize,
        operation: impl FnOnce(OperationId) -> Operation,
        caches: &mut [Caches],
    ) -> OperationId {
        self.counts[cpu] += 1;
        let id = OperationId { cpu, count: self.counts[cpu] };
        let operation = operation(id);
        if operation.promise != Promise::Agreement {
            for (_, translation) in concerned(&operation, caches) {
                translation.older_than.push(id);
            }
        }
        self.in_progress.push(operation);
        id
    }

    /// A call returns. `now` finds the entry of a page as the tables have it.
    pub(super) fn end(
        &mut self,
        id: OperationId,
        now: impl Fn(u64, u64) -> u64,
        caches: &mut [Caches],
    ) -> Option<Operation> {
        let index = self.in_progress.iter().position(|operation| operation.id == id)?;
        let operation = self.in_progress.remove(index);
        let others = &self.in_progress;
        let is_met =
            |page| others.iter().any(|other| other.root == operation.root && other.range.contains(page));
        let is_quiet = |page| self.agents == 0 && !is_met(page);
        let why =
            |what: &str| format!("D3, linearizable returns: {} by CPU {} {what}", operation.name, id.cpu);
        for (page, translation) in concerned(&operation, caches) {
            let is_older = translation.older_than.contains(&id);
            translation.older_than.retain(|other| *other != id);
            let current = now(operation.root, page);
            let is_gone = current & PRESENT == 0 || current & FRAME != translation.frame();
            let is_demoted = translation.entry & WRITABLE != 0 && current & WRITABLE == 0;
            if is_older && operation.promise == Promise::Removal {
                translation.dead.get_or_insert_with(|| why("has returned, and this is from before it"));
            } else if is_quiet(page) && is_gone {
                translation
                    .dead
                    .get_or_insert_with(|| why("has returned, and the tables do not have this any more"));
            }
            if is_older && operation.promise == Promise::Protection && translation.entry & WRITABLE != 0 {
                translation
                    .dead_for_stores
                    .get_or_insert_with(|| why("has returned, and this is from before it"));
            } else if is_quiet(page) && is_demoted {
                translation
                    .dead_for_stores
                    .get_or_insert_with(|| why("has returned, and the tables do not allow stores any more"));
            }
        }
        Some(operation)
    }

    /// Marks the cached ways into the addresses of a call that has returned, where the tables have others. `now` finds the table
    /// of a level that maps a page as the tables have it.
    pub(super) fn mark_ways(
        &self,
        operation: &Operation,
        now: impl Fn(u64, u64, usize) -> Option<u64>,
        caches: &mut [Caches],
    ) {
        let is_met = |range: &PageRange| {
            self.in_progress
                .iter()
                .any(|other| other.root == operation.root && other.range.intersection(range).is_some())
        };
        for ((_, level, number), upper) in caches.iter_mut().flat_map(|cache| &mut cache.uppers) {
            let (start, length) = (number * reach(level + 1), reach(level + 1));
            let Ok(range) = PageRange::new(start, length) else { continue };
            let is_concerned = upper.root == operation.root && operation.range.intersection(&range).is_some();
            if is_concerned && !is_met(&range) && now(upper.walked, start, *level) != Some(upper.table) {
                upper.moved.get_or_insert_with(|| {
                    format!(
                        "D3, linearizable returns: {} by CPU {} has returned, and the tables do not lead there any more",
                        operation.name, operation.id.cpu
                    )
                });
            }
        }
    }

    /// A walker has cached a translation.
    pub(super) fn filled(&mut self, root: u64, page: u64, frame: u64, caches: &mut [Caches]) {
        let newest = self.newest.entry((root, page)).or_insert(Newest { frame, used: false });
        if newest.frame != frame {
            *newest = Newest { frame, used: false };
        }
        for ((_, cached), translation) in caches.iter_mut().flat_map(|cache| &mut cache.translations) {
            if *cached == page && translation.root == root {
                translation.outdated = translation.frame() != frame;
            }
        }
    }

    /// A program uses a translation. What that breaks, if anything.
    pub(super) fn judge(&mut self, access: Use, translation: &Translation, now: u64) -> Option<String> {
        let Use { cpu, page, write } = access;
        let newest = self.newest.get_mut(&(translation.root, page));
        let contradicts = match newest {
            Some(newest) if translation.outdated => newest.used,
            Some(newest) => {
                newest.used = true;
                false
            }
            None => false,
        };
        let still_writable =
            now & (PRESENT | WRITABLE) == PRESENT | WRITABLE && now & FRAME == translation.frame();
        let why = translation
            .dead
            .clone()
            .or_else(|| translation.dead_for_stores.clone().filter(|_| write))
            .or_else(|| translation.copied.clone().filter(|_| write && !still_writable))
            .or_else(|| {
                contradicts.then(|| "D4, one order: a newer frame of that page was used before".into())
            })?;
        let (promise, reason) = why.split_once(": ").unwrap_or(("", &why));
        let what = if write { "stores" } else { "loads" };
        Some(format!(
            "{promise}: {} {what} at {page:#x} through its cached entry {:#x} (frame {:x}), but {reason}",
            self.name(cpu),
            translation.entry & (FRAME | WRITABLE | DIRTY | PRESENT),
            translation.frame() >> 12
        ))
    }

    /// A program's store waits in its CPU's buffer.
    pub(super) fn store_waits(&mut self, cpu: usize, page: u64, frame: u64) {
        self.waiting[cpu].push_back(WaitingStore { frame, page, worthless: None });
    }

    /// The oldest waiting store of a CPU became visible. What that breaks, if anything.
    pub(super) fn store_lands(&mut self, cpu: usize) -> Option<String> {
        let store = self.waiting[cpu].pop_front()?;
        let why = store.worthless?;
        let (promise, reason) = why.split_once(": ").unwrap_or(("", &why));
        Some(format!(
            "{promise}: a store of CPU {cpu} to {:#x} left its buffer only after {reason}",
            store.page
        ))
    }

    pub(super) fn state(&self) -> Digest {
        let mut digest = Digest::EMPTY;
        for ((root, page), newest) in &self.newest {
            digest = digest.with(*root).with(*page).with(newest.frame | u64::from(newest.used));
        }
        for operation in &self.in_progress {
            digest = digest.including(Digest::EMPTY.with(operation.id.number()));
        }
        for store in self.waiting.iter().flatten() {
            digest = digest.with(store.frame | u64::from(store.worthless.is_some()));
        }
        digest.with(self.owned_digest.number())
    }
}

/// The translations that a call is about.
fn concerned<'a>(
    operation: &'a Operation,
    caches: &'a mut [Caches],
) -> impl Iterator<Item = (u64, &'a mut Translation)> {
    caches
        .iter_mut()
        .flat_map(|cache| &mut cache.translations)
        .filter(|((_, page), translation)| {
            translation.root == operation.root && operation.range.contains(*page)
        })
        .map(|((_, page), translation)| (*page, translation))
}
