//! What a kernel's own threads do with programs' pages, which they find by other ways than a program's addresses.

use memory::PageRange;

use super::machine::SimulatedEnvironment;
use super::operation::Promise;

impl SimulatedEnvironment {
    /// A kernel thread changes entries behind the programs' backs: until it has flushed, they may go on using what they have cached.
    pub(super) fn as_agent<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.hidden().oracle.agent_begins();
        let result = work();
        self.0.hidden().oracle.agent_ends();
        result
    }

    /// A kernel thread takes a page out, which it found by the reverse way at one of these addresses.
    pub(super) fn evict(&self, number: usize, addresses: &[u64]) {
        let space = self.space(number);
        self.as_agent(|| space.evict(addresses));
    }

    /// As `evict`, for a program that is promised that the page is gone: truncation of what is mapped in a range.
    pub(super) fn cut_off(&self, number: usize, range: PageRange, addresses: &[u64]) {
        let space = self.space(number);
        self.call("ftruncate", &space, range, Promise::Removal, || space.evict(addresses));
    }

    /// A kernel thread writes a page out, and takes it as clean.
    pub(super) fn clean(&self, number: usize, address: u64) {
        let space = self.space(number);
        self.as_agent(|| space.clean(address));
    }

    /// A kernel thread takes a page and its table out.
    pub(super) fn retract(&self, number: usize, address: u64) {
        let space = self.space(number);
        self.as_agent(|| space.retract(address));
    }

    /// A kernel thread makes two pages of a space one, if they hold the same. Says whether they are one.
    pub(super) fn merge(&self, number: usize, kept: u64, given_up: u64) -> bool {
        let space = self.space(number);
        let is_merged = self.as_agent(|| space.merge(kept, &space, given_up));
        explorer::narrate(|| format!("has merged {given_up:#x} into {kept:#x}: {is_merged}"));
        is_merged
    }
}
