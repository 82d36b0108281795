//! The policy against what hardware may do, for every pair of entries.
//!
//! The other side of the comparison is written from the hardware's view and knows no rules: which accesses does a CPU perform
//! through a cached copy of the *old* entry, and would each of them happen in the same way after a walk to the *new* one?
//! This relation is transitive. So it also covers the copies that are older than `old`, which earlier skips left in the caches.
#![cfg(not(any(loom, shuttle)))]

use coherence::{Decision, Reason, Switches, Translation, Why, policy::decide};

const STRICT: Switches = Switches { promotion: false, ..Switches::ALL };

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

/// Whether some access through a cached copy of `old` is not what it would be after a walk to `new`.
fn does_harm(old: &Translation, new: &Translation) -> bool {
    let same_place = (old.frame, old.huge, old.other) == (new.frame, new.huge, new.other);
    // A global copy is still found after a switch to a space that never had it.
    let outlives_switch = old.global && !new.global;
    [true, false].into_iter().any(|by_user| {
        [Access::Read, Access::Write, Access::Fetch].into_iter().any(|access| {
            let through_copy = lets_through(old, by_user, access);
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
    }
}

fn all_pairs() -> impl Iterator<Item = (Translation, Translation)> {
    const ENTRIES: u32 = 1 << 11;
    (0..ENTRIES).flat_map(|old| (0..ENTRIES).map(move |new| (entry(old), entry(new))))
}

#[test]
fn whatever_does_harm_is_flushed() {
    for (old, new) in all_pairs().filter(|(old, new)| does_harm(old, new)) {
        for switches in [Switches::ALL, STRICT] {
            let decision = decide(&old, &new, &switches);
            assert!(matches!(decision, Decision::Flush(_)), "{old:?} to {new:?}: {decision:?}");
        }
    }
}

#[test]
fn what_is_flushed_does_harm() {
    for (old, new) in all_pairs().filter(|(old, new)| !does_harm(old, new)) {
        let Decision::Flush(why) = decide(&old, &new, &Switches::ALL) else {
            continue;
        };
        // The rules look at each bit alone and are careful there.
        let careful = match why {
            Why::DirtyCleared => !old.writable,
            Why::AttributesChanged => new.global != old.global,
            _ => false,
        };
        assert!(careful, "{old:?} to {new:?} is harmless, and yet: {why:?}");
    }
}

#[test]
fn without_promotion_added_permission_is_flushed_too_and_nothing_else() {
    for (old, new) in all_pairs() {
        let (lenient, strict) = (decide(&old, &new, &Switches::ALL), decide(&old, &new, &STRICT));
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
        let Decision::Skip(reason) = decide(&old, &new, &Switches::ALL) else {
            continue;
        };
        let hint = (old.accessed, old.dirty) != (new.accessed, new.dirty);
        let expected = if !old.present {
            Reason::NotPresentBefore
        } else if adds_permission(&old, &new) {
            Reason::Promotion
        } else if hint {
            Reason::AccessedOrDirtyOnly
        } else if old != new {
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
