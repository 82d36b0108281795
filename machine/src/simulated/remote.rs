//! Invalidations that reach other CPUs' caches without an interrupt: the hardware's broadcast, and a hypervisor's call.
//!
//! Either is on its way for a while: it arrives at each CPU at a moment of that CPU's own, whatever the CPU is doing, and the one
//! that ordered it is told when it has arrived everywhere. It drops what it lists and nothing else.

use std::collections::BTreeSet;

use coherence::{Flush, RemoteFlush};
use explorer::{AtomicU64, Digest, load_now, narrate, narrate_of};

use super::caches::Caches;
use super::machine::Machine;
use super::past_bug::HardwareMistake;
use super::platform::machine_step;

/// How a machine reaches other CPUs without interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remote {
    /// Not at all.
    Never,
    /// By instructions that broadcast to all CPUs and wait, as AMD's `INVLPGB` and `TLBSYNC` do. They go by tag.
    Broadcast,
    /// By a call that returns when the hypervisor has dropped a list of pages on the virtual CPUs that were named.
    Hypercall {
        /// It may refuse a call, at a bad moment.
        may_refuse: bool,
    },
}

/// How many pages a call of the hypervisor can list. More are everything.
const LONGEST_LIST: usize = 4;

/// An invalidation on its way.
#[derive(Debug)]
pub(super) struct OnItsWay {
    by: usize,
    /// The CPUs at which it has not arrived.
    left: BTreeSet<usize>,
    /// Under which tag, or under all.
    tag: Option<u16>,
    root: u64,
    /// Which pages, or all.
    pages: Option<Vec<u64>>,
    /// Upper levels are kept, as an IOMMU does that is not asked to drop them.
    keeps_tables: bool,
}

impl OnItsWay {
    fn new(order: &RemoteFlush, by: usize, tag: Option<u16>, left: BTreeSet<usize>) -> Self {
        let pages = listed(&order.flush());
        OnItsWay { by, left, tag, root: order.root(), pages, keeps_tables: false }
    }

    /// What a device is told; it has one tag.
    pub(super) fn for_the_device(flush: &Flush, root: u64, by: usize, device: usize) -> Self {
        let (left, keeps_tables) = (BTreeSet::from([device]), !flush.frees_tables());
        OnItsWay { by, left, tag: None, root, pages: listed(flush), keeps_tables }
    }

    fn drop_from(&self, caches: &mut Caches) {
        let kept = self.keeps_tables.then(|| caches.uppers.clone());
        match &self.pages {
            Some(pages) => pages.iter().for_each(|page| caches.drop_page_under(self.tag, *page)),
            None => caches.drop_all_under(self.tag),
        }
        if let Some(kept) = kept {
            caches.uppers = kept;
        }
    }

    pub(super) fn state(&self) -> Digest {
        let digest = Digest::EMPTY.with(self.by as u64).with(self.tag.map_or(0, u64::from)).with(self.root);
        let digest = digest.with(u64::from(self.keeps_tables));
        let digest = self.left.iter().fold(digest, |digest, cpu| digest.with(*cpu as u64));
        self.pages.iter().flatten().fold(digest.with(!0), |digest, page| digest.with(*page))
    }
}

/// The pages that a flush names, or `None` for all.
fn listed(flush: &Flush) -> Option<Vec<u64>> {
    flush.span().map(|(start, count, stride)| (0..count).map(|page| start + page * stride).collect())
}

impl Machine {
    /// This CPU orders an invalidation. Says whether that was accepted.
    pub(super) fn order_remote(&self, order: &RemoteFlush) -> bool {
        let by = explorer::current_cpu();
        match self.build.remote {
            Remote::Never => false,
            Remote::Broadcast => {
                let Some(tag) = order.shared_tag() else { return false };
                let all = (0..self.build.cpus).collect();
                self.begin_remote(OnItsWay::new(order, by, Some(tag.number()), all));
                true
            }
            Remote::Hypercall { .. } => {
                let targets = order.targets().iter().map(|cpu| cpu.index()).collect();
                let mut call = OnItsWay::new(order, by, None, targets);
                call.pages = call.pages.filter(|pages| pages.len() <= LONGEST_LIST);
                let is_accepted = self.begin_remote(call);
                if is_accepted {
                    self.wait_for_remote();
                }
                is_accepted
            }
        }
    }

    pub(super) fn begin_remote(&self, order: OnItsWay) -> bool {
        explorer::step(machine_step());
        explorer::serialise();
        let mut hidden = self.hidden();
        if std::mem::take(&mut hidden.refuses) {
            explorer::observe(0);
            drop(hidden);
            narrate(|| "calls the hypervisor, which refuses".to_owned());
            return false;
        }
        let word = &self.remote_left[order.by];
        word.poke(word.peek() + order.left.len() as u64);
        hidden.on_their_way.push(order);
        drop(hidden);
        narrate(|| "orders others to drop it".to_owned());
        true
    }

    /// This CPU waits, in one instruction, until all that it has ordered has arrived everywhere.
    pub(super) fn wait_for_remote(&self) {
        let was_masked = explorer::mask(true);
        let word: &AtomicU64 = &self.remote_left[explorer::current_cpu()];
        loop {
            explorer::step(machine_step());
            explorer::serialise();
            if load_now(word) == 0 {
                break;
            }
            explorer::wait();
        }
        narrate(|| "knows that it has been dropped".to_owned());
        explorer::mask(was_masked);
    }

    /// What may arrive where: the how-manieth that is on its way, and the CPU.
    pub(super) fn arrivals(&self) -> Vec<(usize, usize)> {
        let hidden = self.hidden();
        let ways = hidden.on_their_way.iter().enumerate();
        ways.flat_map(|(index, way)| way.left.iter().map(move |cpu| (index, *cpu))).collect()
    }

    /// One arrives at a CPU.
    pub(super) fn arrive(&self, index: usize, cpu: usize) {
        let made_early = self.build.mistake == Some(HardwareMistake::CompletesBeforeStores);
        if !made_early && cpu < self.build.cpus {
            // What was stored through the old entries is visible by then.
            explorer::serialise_cpu(cpu);
        }
        let mut guard = self.hidden();
        let hidden = &mut *guard;
        let way = &mut hidden.on_their_way[index];
        way.left.remove(&cpu);
        let is_fooled = self.build.mistake == Some(HardwareMistake::AsksWhatIsLoaded);
        if !(is_fooled && hidden.caches[cpu].root != way.root) {
            way.drop_from(&mut hidden.caches[cpu]);
        }
        let word = &self.remote_left[way.by];
        word.poke(word.peek() - 1);
        if way.left.is_empty() {
            hidden.on_their_way.remove(index);
        }
        drop(guard);
        if cpu < self.build.cpus {
            narrate_of(cpu, || "drops what another CPU ordered".to_owned());
        } else {
            narrate(|| "(the device drops what it is told to drop)".to_owned());
        }
    }
}
