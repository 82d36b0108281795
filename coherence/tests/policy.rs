//! The policy against what hardware may do, for every pair of entries.
//!
//! The other side of the comparison is written from the hardware's view and knows no rules: which accesses does a CPU perform
//! through a cached copy of the *old* entry, and would each of them happen in the same way after a walk to the *new* one?
//! A store through a copy that is not dirty is none: such a CPU walks to the new entry first. Only the mechanism `clean` trusts in that, and
//! without it such a copy counts as one through which stores go at once.
//!
//! Of an entry that is unused there is no copy, if its being so is true: so whatever has copies and counts as unused from now on does harm too.
//!
//! This relation is transitive. So it also covers the copies that are older than `old`, which earlier skips left in the caches.
#![cfg(not(any(loom, shuttle)))]

use coherence::{Decision, Reason, Switches, Translation, Why, policy::decide};

const STRICT: Switches = Switches { promotion: false, ..Switches::DEFAULT };
const USED: Switches = Switches { unused: false, ..Switches::DEFAULT };
const CLEAN: Switches = Switches { clean: true, ..Switches::DEFAULT };
const STRICT_CLEAN: Switches = Switches { promotion: false, ..CLEAN };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Fetch,
}

/// Whether a CPU with SMEP, SMAP and write protection lets the access through an entry. The kernel does not use user pages.
fn lets_through(entry: &Translation, by_user: bool, access: Access) -> bool {
    let right = match access {
        Access::Read => true,
        Access::Write => entry.writable,
        Access::Fetch => entry.executable,
    };
    entry.present && entry.user == by_user && right
}

/// Whether some access through a cached copy of `old` is not what it would be after a walk to `new`. `trusted`: a CPU walks before
/// it stores through a copy that is not dirty.
fn does_harm(old: &Translation, new: &Translation, trusted: bool) -> bool {
    if old.unused || !old.present {
        return false;
    }
    if new.unused && new.present {
        return true;
    }
    let same_place = (old.frame, old.huge, old.other) == (new.frame, new.huge, new.other);
    // A global copy is still found after a switch to a space that never had it.
    let outlives_switch = old.global && !new.global;
    [true, false].into_iter().any(|by_user| {
        [Access::Read, Access::Write, Access::Fetch].into_iter().any(|access| {
            let walks_first = trusted && access == Access::Write && !old.dirty;
            let through_copy = lets_through(old, by_user, access) && !walks_first;
            // A copy that says dirty lets stores pass without a mark in memory.
            let unrecorded = access == Access::Write && old.dirty && !new.dirty;
            let as_new = lets_through(new, by_user, access) && same_place && !unrecorded && !outlives_switch;
            through_copy && !as_new
        })
    })
}

/// Whether `new` allows an access that faults through a copy of `old`.
fn adds_permission(old: &Translation, new: &Translation) -> bool {
    old.present && (!old.writable && new.writable || !old.executable && new.executable)
}

fn entry(bits: u32) -> Translation {
    let bit = |number: u32| bits >> number & 1 == 1;
    Translation {
        present: bit(0),
        writable: bit(1),
        user: bit(2),
        executable: bit(3),
        accessed: bit(4),
        dirty: bit(5),
        global: bit(6),
        huge: bit(7),
        frame: u64::from(bit(8)),
        other: u64::from(bit(9)),
        software: u64::from(bit(10)),
        unused: bit(11),
    }
}

fn all_pairs() -> impl Iterator<Item = (Translation, Translation)> {
    const ENTRIES: u32 = 1 << 12;
    (0..ENTRIES).flat_map(|old| (0..ENTRIES).map(move |new| (entry(old), entry(new))))
}

/// Those whose old entry is not unused.
fn all_pairs_with_copies() -> impl Iterator<Item = (Translation, Translation)> {
    all_pairs().filter(|(old, _)| !old.unused)
}

#[test]
fn whatever_does_harm_is_flushed() {
    for (trusted, both) in [(false, [Switches::DEFAULT, STRICT]), (true, [CLEAN, STRICT_CLEAN])] {
        for (old, new) in all_pairs().filter(|(old, new)| does_harm(old, new, trusted)) {
            for switches in both {
                let decision = decide(&old, &new, &switches);
                assert!(matches!(decision, Decision::Flush(_)), "{old:?} to {new:?}: {decision:?}");
            }
        }
    }
}

#[test]
fn what_is_flushed_does_harm() {
    for (trusted, switches) in [(false, Switches::DEFAULT), (true, CLEAN)] {
        for (old, new) in all_pairs().filter(|(old, new)| !does_harm(old, new, trusted)) {
            let Decision::Flush(why) = decide(&old, &new, &switches) else {
                continue;
            };
            // The rules look at each bit alone and are careful there.
            let careful = match why {
                Why::DirtyCleared => !old.writable,
                Why::AttributesChanged => new.global != old.global,
                Why::CountsAsUnused => !new.present,
                _ => false,
            };
            assert!(careful, "{old:?} to {new:?} is harmless, and yet: {why:?}");
        }
    }
}

/// What `clean` skips is what it says, and without it every such change is counted as what it would have saved.
#[test]
fn the_mechanism_clean_skips_write_taken_from_clean_entries_and_nothing_else() {
    for (old, new) in all_pairs_with_copies() {
        for (with, without) in [(CLEAN, Switches::DEFAULT), (STRICT_CLEAN, STRICT)] {
            let (with, without) = (decide(&old, &new, &with), decide(&old, &new, &without));
            let is_saved = with == Decision::Skip(Reason::CleanWriteRemoved);
            if is_saved {
                assert!(old.present && new.present && old.writable && !new.writable && !old.dirty);
                assert_eq!(without, Decision::Flush(Why::CleanWriteRemoved), "{old:?} to {new:?}");
            } else if without == Decision::Flush(Why::CleanWriteRemoved) {
                assert_eq!(with, Decision::Flush(Why::PermissionAdded), "{old:?} to {new:?}");
            } else {
                assert_eq!(with, without, "{old:?} to {new:?}");
            }
        }
    }
}

#[test]
fn the_mechanism_unused_skips_what_no_cpu_has_and_nothing_else() {
    for (old, new) in all_pairs() {
        let (with, without) = (decide(&old, &new, &Switches::DEFAULT), decide(&old, &new, &USED));
        if with == Decision::Skip(Reason::Unused) {
            assert!(old.present && old.unused);
            assert!(matches!(without, Decision::Flush(_)), "{old:?} to {new:?}");
        } else {
            assert_eq!(with, without, "{old:?} to {new:?}");
        }
        assert!(!(old.present && old.unused && matches!(with, Decision::Flush(_))), "{old:?} to {new:?}");
    }
}

#[test]
fn without_promotion_added_permission_is_flushed_too_and_nothing_else() {
    for (old, new) in all_pairs_with_copies() {
        let (lenient, strict) = (decide(&old, &new, &Switches::DEFAULT), decide(&old, &new, &STRICT));
        if lenient == Decision::Skip(Reason::Promotion) {
            assert!(adds_permission(&old, &new));
            assert_eq!(strict, Decision::Flush(Why::PermissionAdded));
        } else {
            assert_eq!(strict, lenient, "{old:?} to {new:?}");
        }
    }
}

#[test]
fn every_no_has_the_reason_that_applies() {
    for (old, new) in all_pairs() {
        let Decision::Skip(reason) = decide(&old, &new, &CLEAN) else {
            continue;
        };
        let hint = (old.accessed, old.dirty) != (new.accessed, new.dirty);
        let [old_if_used, new_if_used] = [old, new].map(|entry| Translation { unused: false, ..entry });
        let has_harmless_copies = matches!(decide(&old_if_used, &new_if_used, &CLEAN), Decision::Skip(_));
        let expected = if !old.present {
            Reason::NotPresentBefore
        } else if old.unused && !has_harmless_copies {
            Reason::Unused
        } else if old.writable && !new.writable {
            Reason::CleanWriteRemoved
        } else if adds_permission(&old, &new) {
            Reason::Promotion
        } else if hint {
            Reason::AccessedOrDirtyOnly
        } else if old_if_used != new_if_used {
            Reason::SoftwareBitsOnly
        } else {
            Reason::Unchanged
        };
        assert_eq!(reason, expected, "{old:?} to {new:?}");
    }
}

#[test]
fn every_why_is_reached() {
    let switches = STRICT;
    let mut missing = Why::ALL.to_vec();
    for (old, new) in all_pairs() {
        if let Decision::Flush(why) = decide(&old, &new, &switches) {
            missing.retain(|other| *other != why);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
