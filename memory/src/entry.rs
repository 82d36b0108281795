//! One entry of an x86-64 page table, and what it means to `coherence`.
//!
//! Of the bits that hardware ignores we use four. `RESIDENT` says that the entry holds a reference to its frame, also
//! while the entry is not present because the mapping allows nothing (`PROT_NONE`). `GUARDED` says that a monitor is to hear
//! of a store before it is made (`userfault_guard`): such an entry is never writable, whatever its area allows. `LINGERING`
//! says that the mark of being used was taken without a flush, so that CPUs may have cached the entry though hardware has not marked it. An entry that is
//! zero is empty. One that has `GUARDED` alone holds no page, and says that the page which comes is guarded. One that has `SWAPPED` holds none either, and says in
//! which slot of a disk it is (`swap`): all bits of that number are inverted, so that as a frame's it would be one that is not there.

use coherence::Translation;

use crate::frame::FrameNumber;
use crate::range::PAGE_SIZE;
use crate::rights::{Access, Rights};
use crate::swap::Slot;

bitflags::bitflags! {
    /// The bits of an entry other than the frame's address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Bits: u64 {
        /// Hardware may use it.
        const PRESENT = 1;
        /// Stores are allowed.
        const WRITABLE = 1 << 1;
        /// User mode may use it.
        const USER = 1 << 2;
        /// Hardware (or we on its behalf) used it.
        const ACCESSED = 1 << 5;
        /// Hardware (or we on its behalf) stored through it.
        const DIRTY = 1 << 6;
        /// In the tables above the leaves: maps a large page.
        const HUGE = 1 << 7;
        /// Survives a change of the root.
        const GLOBAL = 1 << 8;
        /// Software: the entry holds a frame.
        const RESIDENT = 1 << 9;
        /// Software: a store is the monitor's to allow. Only in areas that are watched for stores.
        const GUARDED = 1 << 10;
        /// Software, in an entry that is not present: the page is in a slot, whose number is where a frame's would be, inverted.
        const SWAPPED = 1 << 11;
        /// Software: CPUs may have cached the entry, whether it is marked as accessed or not.
        const LINGERING = 1 << 58;
        /// Instruction fetches are not allowed.
        const NO_EXECUTE = 1 << 63;
    }
}

/// Frames in a large page, which is aligned to its size.
pub(crate) const LARGE_FRAMES: u32 = 512;
/// Bytes in a large page: what a leaf table maps.
pub(crate) const LARGE_PAGE_SIZE: u64 = LARGE_FRAMES as u64 * PAGE_SIZE;

const FRAME_MASK: u64 = 0x000f_ffff_ffff_f000;
/// Where the number of a slot begins, and in that its disk's; the slot's page is below.
const SLOT_SHIFT: u32 = 12;
const DISK_SHIFT: u32 = 32;

/// An entry's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    /// Nothing is mapped.
    pub(crate) const EMPTY: Self = Self(0);
    /// Nothing is mapped, and what comes is guarded.
    pub(crate) const GUARD: Self = Self(Bits::GUARDED.bits());

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// An entry of an upper table. It allows everything: the leaf decides.
    pub(crate) fn table(frame: FrameNumber) -> Self {
        let bits = Bits::PRESENT | Bits::WRITABLE | Bits::USER | Bits::ACCESSED;
        Self(frame.address() | bits.bits())
    }

    /// A table's entry that hardware does not follow.
    pub(crate) fn hidden(self) -> Self {
        self.without(Bits::PRESENT)
    }

    /// One that it does follow.
    pub(crate) fn revealed(self) -> Self {
        self.with(Bits::PRESENT)
    }

    /// An entry that maps a page with these rights, already used. It is writable only if `writable` says that the
    /// frame is the mapping's own to write: copy-on-write holds the right back.
    #[inline]
    pub(crate) fn page(frame: FrameNumber, rights: Rights, writable: bool) -> Self {
        Self(frame.address() | Bits::RESIDENT.bits()).with_rights(rights, writable).with(Bits::ACCESSED)
    }

    /// As [`Entry::page`], for the large page that begins with this frame.
    pub(crate) fn large_page(frame: FrameNumber, rights: Rights, writable: bool) -> Self {
        debug_assert!(frame.0.is_multiple_of(LARGE_FRAMES));
        Self::page(frame, rights, writable).with(Bits::HUGE)
    }

    /// An entry whose page is in a slot, and comes back guarded or not. Some CPUs look what their caches have of the address in an entry before they
    /// find that it is not present (`Swap::most_pages`): inverted, low slots are high addresses.
    pub(crate) fn swapped(slot: Slot, is_guarded: bool) -> Self {
        let number = u64::from(slot.disk) << DISK_SHIFT | u64::from(slot.page);
        let entry = Self(!number << SLOT_SHIFT & FRAME_MASK).with(Bits::SWAPPED);
        if is_guarded { entry.with(Bits::GUARDED) } else { entry }
    }

    /// The slot that its page is in, if it is in one.
    pub(crate) fn slot(self) -> Option<Slot> {
        let number = !self.0 >> SLOT_SHIFT;
        self.has(Bits::SWAPPED).then_some(Slot { disk: (number >> DISK_SHIFT) as u8, page: number as u32 })
    }

    /// Whether its page is in a slot.
    pub(crate) fn is_swapped(self) -> bool {
        self.has(Bits::SWAPPED)
    }

    /// What a large page's entry says of the small page at `address`: the same rights, one of its frames.
    pub(crate) fn piece(self, address: u64) -> Self {
        let offset = address % LARGE_PAGE_SIZE / PAGE_SIZE * PAGE_SIZE;
        self.without(Bits::HUGE).with(Bits::from_bits_retain(offset))
    }

    /// Whether it maps a large page.
    pub(crate) fn is_large(self) -> bool {
        self.has(Bits::HUGE)
    }

    /// The same page with other rights. A guarded one does not become writable.
    pub(crate) fn with_rights(self, rights: Rights, writable: bool) -> Self {
        let changed = Bits::PRESENT | Bits::WRITABLE | Bits::USER | Bits::NO_EXECUTE;
        let mut bits = Bits::from_bits_retain(self.0) - changed;
        if !rights.is_empty() {
            bits |= Bits::PRESENT | Bits::USER;
        }
        let writable = writable && rights.contains(Rights::WRITE) && !bits.contains(Bits::GUARDED);
        bits.set(Bits::WRITABLE, writable);
        bits.set(Bits::NO_EXECUTE, !rights.contains(Rights::EXECUTE));
        Self(bits.bits())
    }

    /// The same rights and marks for another frame.
    pub(crate) fn with_frame(self, frame: FrameNumber) -> Self {
        Self(self.0 & !FRAME_MASK | frame.address())
    }

    /// The same page, which is not to be written before a monitor has heard of it.
    pub(crate) fn guarded(self) -> Self {
        self.without(Bits::WRITABLE).with(Bits::GUARDED)
    }

    /// What stays where this page is taken out, but can be had again: its guard, if it has one.
    pub(crate) fn left_behind(self) -> Self {
        if self.has(Bits::GUARDED) { Self::GUARD } else { Self::EMPTY }
    }

    /// As it becomes when somebody looks whether it was used: `None` if it was not since the last look. One that nobody has looked at counts as used,
    /// since `fork` takes the mark as well.
    pub(crate) fn looked_at(self) -> Option<Self> {
        (self.has(Bits::ACCESSED) || !self.has(Bits::LINGERING)).then(|| self.aged())
    }

    /// Without the mark of being used, which is not flushed: CPUs that have the entry cached keep it, and do not mark it again.
    pub(crate) fn aged(self) -> Self {
        Self(self.0 & !Bits::ACCESSED.bits()).with(Bits::LINGERING)
    }

    /// As one that no CPU has used. Where CPUs may have, that is flushed.
    pub(crate) fn unused(self) -> Self {
        Self(self.0 & !(Bits::ACCESSED | Bits::LINGERING).bits())
    }

    /// As a writable page's entry becomes when the page gets another owner. Stores through copies of a dirty entry are flushed in any case,
    /// and then it counts as unused.
    pub(crate) fn to_be_shared(self) -> Self {
        let shared = self.without(Bits::WRITABLE);
        if self.has(Bits::DIRTY) { shared.unused() } else { shared }
    }

    pub(crate) fn with(self, bits: Bits) -> Self {
        Self(self.0 | bits.bits())
    }

    pub(crate) fn without(self, bits: Bits) -> Self {
        debug_assert!(!bits.contains(Bits::ACCESSED), "an entry ages, or becomes unused");
        Self(self.0 & !bits.bits())
    }

    pub(crate) fn has(self, bits: Bits) -> bool {
        self.0 & bits.bits() == bits.bits()
    }

    pub(crate) fn has_any(self, bits: Bits) -> bool {
        self.0 & bits.bits() != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it holds a page, as neither an empty entry, a guard alone nor one whose page is in a slot does.
    pub(crate) fn holds_page(self) -> bool {
        self.has(Bits::RESIDENT)
    }

    pub(crate) fn is_present(self) -> bool {
        self.has(Bits::PRESENT)
    }

    /// Whether hardware would allow user mode this access.
    pub(crate) fn permits(self, access: Access) -> bool {
        self.has(Bits::PRESENT | Bits::USER)
            && (!access.write || self.has(Bits::WRITABLE))
            && !(access.execute && self.has(Bits::NO_EXECUTE))
    }

    /// Whether the two differ in nothing but what hardware sets at any time, and aging takes.
    pub(crate) fn is_same_but_for_use(self, other: Self) -> bool {
        let used = (Bits::ACCESSED | Bits::DIRTY | Bits::LINGERING).bits();
        self.0 & !used == other.0 & !used
    }

    pub(crate) fn frame(self) -> FrameNumber {
        FrameNumber(((self.0 & FRAME_MASK) >> 12) as u32)
    }
}

impl From<Entry> for Translation {
    fn from(entry: Entry) -> Self {
        let known = Bits::all().bits() | FRAME_MASK;
        Translation {
            present: entry.has(Bits::PRESENT),
            frame: u64::from(entry.frame().0),
            writable: entry.has(Bits::WRITABLE),
            user: entry.has(Bits::USER),
            executable: !entry.has(Bits::NO_EXECUTE),
            accessed: entry.has(Bits::ACCESSED),
            unused: !entry.has_any(Bits::ACCESSED | Bits::LINGERING),
            dirty: entry.has(Bits::DIRTY),
            global: entry.has(Bits::GLOBAL),
            huge: entry.has(Bits::HUGE),
            other: entry.0 & !known,
            software: entry.0
                & Bits::RESIDENT.union(Bits::GUARDED).union(Bits::SWAPPED).union(Bits::LINGERING).bits(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swap::most_pages;

    const EXECUTE: Access = Access { write: false, execute: true };

    #[test]
    fn rights_become_bits_and_copy_on_write_holds_back_the_write() {
        let frame = FrameNumber(0x1234);
        let own = Entry::page(frame, Rights::READ | Rights::WRITE, true);
        assert!(own.permits(Access::WRITE) && own.permits(Access::READ) && !own.permits(EXECUTE));
        let borrowed = Entry::page(frame, Rights::all(), false);
        assert!(!borrowed.permits(Access::WRITE) && borrowed.permits(EXECUTE));
        assert_eq!(borrowed.frame(), frame);
    }

    #[test]
    fn a_large_page_falls_to_pieces_that_are_used_as_it_was() {
        let large =
            Entry::large_page(FrameNumber(1024), Rights::READ | Rights::WRITE, true).with(Bits::DIRTY);
        assert!(Translation::from(large).huge);
        let piece = large.piece(0x4020_3fff);
        assert_eq!((piece.frame(), piece.is_large()), (FrameNumber(1024 + 3), false));
        assert!(piece.has(Bits::DIRTY | Bits::ACCESSED | Bits::RESIDENT) && piece.permits(Access::WRITE));
    }

    #[test]
    fn a_page_without_rights_is_not_present_but_keeps_its_frame() {
        let entry = Entry::page(FrameNumber(7), Rights::READ, false).with_rights(Rights::empty(), false);
        assert!(!entry.is_present() && !entry.is_empty() && entry.frame() == FrameNumber(7));
        assert!(!entry.permits(Access::READ));
        assert!(!Translation::from(entry).present);
    }

    #[test]
    fn a_guarded_page_is_not_writable_whatever_it_is_given() {
        let entry = Entry::page(FrameNumber(7), Rights::all(), true).guarded();
        let raised = entry.with_rights(Rights::empty(), false).with_rights(Rights::all(), true);
        assert!(!raised.permits(Access::WRITE) && raised.permits(Access::READ) && raised.has(Bits::GUARDED));
        assert!(raised.without(Bits::GUARDED).with_rights(Rights::all(), true).permits(Access::WRITE));
    }

    #[test]
    fn a_page_in_a_slot_is_none_in_memory_and_keeps_its_guard() {
        for slot in [Slot { disk: 0, page: 1 }, Slot { disk: 15, page: u32::MAX }] {
            let entry = Entry::swapped(slot, false);
            assert_eq!((entry.slot(), entry.has(Bits::GUARDED)), (Some(slot), false));
            assert!(!entry.is_empty() && !entry.holds_page() && !entry.is_present());
            let guarded = Entry::swapped(slot, true);
            assert_eq!((guarded.slot(), guarded.left_behind()), (Some(slot), Entry::GUARD));
            assert!(!Translation::from(guarded).present);
        }
        assert_eq!(Entry::page(FrameNumber(7), Rights::all(), true).slot(), None);
        assert_eq!(Entry::GUARD.slot(), None);
    }

    #[test]
    fn a_slots_entry_is_of_no_frame_that_is_there_however_many_bits_a_cpu_looks_at() {
        for (frames, bits) in [(1 << 18, 36), (1 << 22, 36), (1 << 20, 39), (1 << 24, 40), (1 << 28, 46)] {
            let pages = most_pages(frames, bits);
            assert!(u64::from(pages) >= (1 << (bits.min(44) - 12)) - frames);
            for page in [1, 2, pages / 2, pages - 1] {
                for entry in [0, 21].map(|disk| Entry::swapped(Slot { disk, page }, false)) {
                    // Caches may know an address by all of its bits or by those that the CPU has.
                    for address in [entry.bits() & FRAME_MASK, entry.bits() & FRAME_MASK & ((1 << bits) - 1)]
                    {
                        assert!(address / PAGE_SIZE >= frames, "slot {page} looks like {address:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_looked_at_is_never_unused_and_what_is_shared_is_if_it_was_dirty() {
        let is_unused = |entry: Entry| Translation::from(entry).unused;
        let page = Entry::page(FrameNumber(7), Rights::READ | Rights::WRITE, true);
        let aged = page.looked_at().expect("it is new");
        assert!(!is_unused(page) && !is_unused(aged) && !aged.has(Bits::ACCESSED));
        assert_eq!((aged.looked_at(), aged.with(Bits::ACCESSED).looked_at()), (None, Some(aged)));
        assert!(aged.is_same_but_for_use(page));
        let shared = aged.with(Bits::DIRTY).to_be_shared();
        assert!(is_unused(shared) && !shared.has(Bits::WRITABLE) && !is_unused(page.to_be_shared()));
        assert_eq!(shared.looked_at(), Some(shared.aged()), "nobody has looked at it");
    }

    #[test]
    fn a_guard_stays_where_its_page_was_and_is_no_page() {
        let entry = Entry::page(FrameNumber(7), Rights::all(), true);
        assert_eq!((entry.left_behind(), entry.guarded().left_behind()), (Entry::EMPTY, Entry::GUARD));
        assert!(entry.holds_page() && !Entry::GUARD.holds_page() && !Entry::GUARD.is_empty());
        assert!(!Entry::GUARD.permits(Access::READ) && !Translation::from(Entry::GUARD).present);
    }
}
