//! Differences that are known and meant, each with its reason. A difference that one of these describes is counted under its name; every
//! other one makes the fuzzing fail.

use fuzz::{Answer, Call};

/// A difference that is meant.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
    describes: fn(&Found) -> bool,
}

/// A difference, with what can be asked about it.
pub(crate) struct Found<'a> {
    pub(crate) system: &'a str,
    /// The round that cannot be explained, call by call; empty for what was found in the end.
    pub(crate) round: Vec<(&'a Call, &'a Answer)>,
    /// In words.
    pub(crate) observed: &'a str,
}

impl Found<'_> {
    /// Whether some call of the round is such a one and has this answer.
    fn has(&self, is_such: impl Fn(&Call) -> bool, answer: &Answer) -> bool {
        self.round.iter().any(|(call, given)| is_such(call) && *given == answer)
    }
}

/// The list.
pub(crate) const ALL: &[Known] = &[
    Known {
        name: "remove-refused",
        reason: "MADV_REMOVE is refused here: objects in memory have no holes (CAVEATS.md)",
        describes: |found| {
            let remove = |call: &Call| matches!(call, Call::Advise { advice: 9, .. });
            found.system != "linux" && found.has(remove, &Answer::Error(22))
        },
    },
    Known {
        name: "execute-only",
        reason: "On a CPU with protection keys Linux makes memory that may only be executed unreadable; here it can be read",
        describes: |found| {
            found.system == "linux" && found.observed.split(", ").any(|answer| answer == "signal-11-code-4")
        },
    },
];

/// The one that describes a difference.
pub(crate) fn find(found: &Found) -> Option<&'static Known> {
    ALL.iter().find(|known| (known.describes)(found))
}
