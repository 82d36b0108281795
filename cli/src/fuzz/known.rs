//! Differences that are known and meant, each with its reason. A difference that one of these describes is counted under its name; every
//! other one makes the fuzzing fail.

/// A difference that is meant.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) reason: &'static str,
    describes: fn(&Found) -> bool,
}

/// A difference, with what can be asked about it.
pub(crate) struct Found<'a> {
    pub(crate) system: &'a str,
    /// In words.
    pub(crate) observed: &'a str,
}

/// The list.
pub(crate) const ALL: &[Known] = &[Known {
    name: "execute-only",
    reason: "On a CPU with protection keys Linux makes memory that may only be executed unreadable; here it can be read",
    describes: |found| {
        found.system == "linux" && found.observed.split(", ").any(|answer| answer == "signal-11-code-4")
    },
}];

/// The one that describes a difference.
pub(crate) fn find(found: &Found) -> Option<&'static Known> {
    ALL.iter().find(|known| (known.describes)(found))
}
