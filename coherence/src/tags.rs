//! Tag slots (PCIDs, ASIDs): what a CPU still holds of address spaces that it has switched away from.
//!
//! A slot names a space and a generation. **The slot's promise:** under its tag the CPU holds nothing that was taken out of
//! that space's tables before the advance which produced that generation. To flush more without raising the generation keeps
//! the promise; to raise it without flushing breaks it.
//!
//! On a machine without tags one slot is used, and loading a root always flushes.

use crate::sync::Private;
use crate::{Generation, SpaceId};

/// How many slots a CPU has. More cost cache and are seldom warm when they are needed again.
const SLOTS: usize = 6;

/// A hardware tag: 0 belongs to the kernel root, the slots' are 1 and up, and those that all CPUs share lie above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(u16);

impl Tag {
    /// The tag of the kernel root.
    pub const KERNEL: Self = Tag(0);

    /// The number.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The shared tag of that index.
    pub(crate) fn shared(index: usize) -> Self {
        Tag((1 + SLOTS + index) as u16)
    }

    /// The shared tag with that number; 0 is none.
    pub(crate) fn from_shared_number(number: u64) -> Option<Self> {
        (number != 0).then_some(Tag(number as u16))
    }

    /// Which of the shared tags this is, if it is one.
    pub(crate) fn shared_index(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1 + SLOTS)
    }
}

/// Which of the CPU's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotIndex(usize);

impl SlotIndex {
    pub(crate) const FIRST: Self = SlotIndex(0);

    pub(crate) fn tag(self) -> Tag {
        Tag(self.0 as u16 + 1)
    }

    pub(crate) fn number(self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn from_number(number: u64) -> Self {
        SlotIndex(number as usize % SLOTS)
    }
}

#[derive(Debug)]
struct Slot {
    /// The space's number; 0 for a slot never used.
    space: Private,
    generation: Private,
}

/// A CPU's slots. Only that CPU touches them.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: [Slot; SLOTS],
    /// The slot that is taken from its space next, round robin.
    next: Private,
}

impl Slots {
    pub(crate) const fn new() -> Self {
        Slots {
            slots: [const { Slot { space: Private::new(0), generation: Private::new(0) } }; SLOTS],
            next: Private::new(0),
        }
    }

    /// The slot for a space that is about to be loaded on a machine with so many tags, and whether the slot holds it already.
    pub(crate) fn choose(&self, space: SpaceId, tags: usize) -> (SlotIndex, bool) {
        let usable = tags.clamp(1, SLOTS);
        if usable == 1 {
            // Nothing outlives the loading of a root here, not even that of the same one.
            return (SlotIndex::FIRST, false);
        }
        let held = self.slots[..usable].iter().position(|slot| slot.space.get() == space.number());
        if let Some(index) = held {
            return (SlotIndex(index), true);
        }
        let index = self.next.get() as usize % usable;
        self.next.set(index as u64 + 1);
        (SlotIndex(index), false)
    }

    /// The generation that a slot has caught up with.
    #[inline]
    pub(crate) fn generation(&self, slot: SlotIndex) -> Generation {
        Generation::new(self.slots[slot.0].generation.get())
    }

    /// Notes that a slot holds a space, flushed up to a generation.
    #[inline]
    pub(crate) fn assign(&self, slot: SlotIndex, space: SpaceId, generation: Generation) {
        self.slots[slot.0].space.set(space.number());
        self.slots[slot.0].generation.set(generation.number());
    }

    /// Notes that a slot has been flushed up to a generation.
    #[inline]
    pub(crate) fn catch_up(&self, slot: SlotIndex, generation: Generation) {
        self.slots[slot.0].generation.set(generation.number());
    }
}

/// The tags that slots have of their own.
#[cfg(test)]
pub(crate) fn own_tags() -> [Tag; SLOTS] {
    core::array::from_fn(|slot| SlotIndex(slot).tag())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(number: u64) -> SpaceId {
        SpaceId::from_number(number).unwrap()
    }

    /// Chooses a slot for a space, as a switch does; says which and whether it held the space.
    fn switch_to(slots: &Slots, number: u64, tags: usize) -> (u64, bool) {
        let (slot, held) = slots.choose(space(number), tags);
        slots.assign(slot, space(number), Generation::ZERO);
        (slot.number(), held)
    }

    #[test]
    fn one_tag_holds_nothing() {
        let slots = Slots::new();
        assert_eq!(switch_to(&slots, 1, 1), (0, false));
        assert_eq!(switch_to(&slots, 1, 1), (0, false));
        assert_eq!(switch_to(&slots, 2, 0), (0, false));
    }

    #[test]
    fn slots_are_found_again_and_given_away_in_turn() {
        let slots = Slots::new();
        assert_eq!(switch_to(&slots, 1, 2), (0, false));
        assert_eq!(switch_to(&slots, 2, 2), (1, false));
        assert_eq!(switch_to(&slots, 1, 2), (0, true));
        assert_eq!(switch_to(&slots, 3, 2), (0, false));
        assert_eq!(switch_to(&slots, 1, 2), (1, false));
        assert_eq!(switch_to(&slots, 3, 2), (0, true));
    }

    #[test]
    fn no_more_tags_are_used_than_there_are_slots() {
        let slots = Slots::new();
        for number in 1..=100 {
            let (slot, held) = switch_to(&slots, number, 4096);
            assert!(slot < SLOTS as u64 && !held);
        }
    }

    #[test]
    fn no_slot_has_the_tag_of_the_kernel_root() {
        assert!((0..SLOTS as u64).all(|slot| SlotIndex::from_number(slot).tag() != Tag::KERNEL));
    }
}
