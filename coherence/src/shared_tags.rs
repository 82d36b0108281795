//! Tags that every CPU uses for the same space, for machines that flush by tag on all CPUs at once. `remote.rs` says what for.
//!
//! They lie above the slots' own. A space has one from its beginning to its [end](crate::Coherence::end_space), and then the
//! next space may get it at once: a CPU that still holds something under it knows in its slots for which space that was, and
//! drops it all when it enters another one under the same tag (`tags.rs`).

use crate::Tag;
use crate::sync::{AtomicU64, Ordering, array_of, constructor};

/// How many words of tags there is room for. x86 has 4096 PCIDs.
const WORDS: usize = if cfg!(any(loom, shuttle, simulated)) { 1 } else { 64 };

/// Which of the shared tags have a space.
///
/// Relaxed: a bit decides who gets a tag, and nothing else. What a tag's last space did is over, by its owner's word, before the
/// bit is cleared, and no CPU trusts what it holds under a tag for another space.
#[derive(Debug)]
pub(crate) struct SharedTags([AtomicU64; WORDS]);

impl SharedTags {
    constructor! {
        pub(crate) fn new() -> Self {
            SharedTags(array_of!(AtomicU64::new(0)))
        }
    }

    /// A tag for a new space on a machine with so many, or `None` if all have one.
    pub(crate) fn take(&self, count: usize) -> Option<Tag> {
        (0..count.min(WORDS * 64)).find_map(|index| {
            let (word, bit) = (&self.0[index / 64], 1 << (index % 64));
            let is_free = word.load(Ordering::Relaxed) & bit == 0;
            (is_free && word.fetch_or(bit, Ordering::Relaxed) & bit == 0).then(|| Tag::shared(index))
        })
    }

    /// The space that had the tag has ended.
    pub(crate) fn give_back(&self, tag: Tag) {
        if let Some(index) = tag.shared_index() {
            self.0[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle, simulated))))]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_tag_has_one_space_at_a_time() {
        let tags = SharedTags::new();
        let [first, second] = [0; 2].map(|_| tags.take(2).expect("there are two"));
        assert_ne!(first, second);
        assert_eq!(tags.take(2), None);
        for tag in [second, first] {
            tags.give_back(tag);
            assert_eq!(tags.take(2), Some(tag));
        }
    }

    #[test]
    fn a_machine_without_shared_tags_has_none() {
        assert_eq!(SharedTags::new().take(0), None);
    }

    #[test]
    fn they_end_where_there_is_no_room() {
        let tags = SharedTags::new();
        let mut taken: Vec<Tag> = (0..WORDS * 64).filter_map(|_| tags.take(usize::MAX)).collect();
        assert_eq!((taken.len(), tags.take(usize::MAX)), (WORDS * 64, None));
        taken.dedup();
        assert_eq!(taken.len(), WORDS * 64);
        tags.give_back(taken[70]);
        assert_eq!(tags.take(usize::MAX), Some(taken[70]));
    }

    #[test]
    fn no_slot_has_a_shared_tag_of_its_own() {
        let own = crate::tags::own_tags();
        assert!(own.iter().all(|tag| tag.shared_index().is_none()));
        assert!(!own.contains(&Tag::shared(0)) && Tag::KERNEL.shared_index().is_none());
    }
}
