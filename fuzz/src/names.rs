//! The names that programs' texts have for the numbers of Linux's interface. `workloads/fuzz/main.c` has the same tables.

/// A name and its number.
pub(crate) type Name = (&'static str, u64);

/// The letters of `mmap` and `mprotect`'s rights.
pub(crate) const RIGHTS: &[Name] =
    &[("r", 1), ("w", 2), ("x", 4), ("s", 8), ("d", 0x0100_0000), ("u", 0x0200_0000)];

/// `mmap`'s flags. `MAP_ANONYMOUS` is always set.
pub(crate) const MAP_FLAGS: &[Name] = &[
    ("validate", 3),
    ("shared", 1),
    ("private", 2),
    ("fixed", 0x10),
    ("32bit", 0x40),
    ("growsdown", 0x100),
    ("denywrite", 0x800),
    ("executable", 0x1000),
    ("locked", 0x2000),
    ("noreserve", 0x4000),
    ("populate", 0x8000),
    ("nonblock", 0x10000),
    ("stack", 0x20000),
    ("noreplace", 0x10_0000),
];

/// `mremap`'s flags.
pub(crate) const REMAP_FLAGS: &[Name] = &[("maymove", 1), ("fixed", 2), ("dontunmap", 4)];

/// What `madvise` is told.
pub(crate) const ADVICE: &[Name] = &[
    ("normal", 0),
    ("random", 1),
    ("sequential", 2),
    ("willneed", 3),
    ("dontneed", 4),
    ("free", 8),
    ("remove", 9),
    ("dontfork", 10),
    ("dofork", 11),
    ("mergeable", 12),
    ("unmergeable", 13),
    ("hugepage", 14),
    ("nohugepage", 15),
    ("dontdump", 16),
    ("dodump", 17),
    ("wipeonfork", 18),
    ("keeponfork", 19),
    ("cold", 20),
    ("pageout", 21),
    ("populate-read", 22),
    ("populate-write", 23),
    ("dontneed-locked", 24),
    ("collapse", 25),
];

/// The number that a name stands for.
///
/// # Panics
/// For a name that the table does not have: they are written in this crate.
pub(crate) fn number(table: &[Name], name: &str) -> u64 {
    table.iter().find(|(known, _)| *known == name).expect("a name of the table").1
}

/// Linux's error numbers that the calls of this family answer with.
const ERRORS: &[(&str, i32)] = &[
    ("EPERM", 1),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("EINVAL", 22),
    ("ENOSYS", 38),
    ("EOVERFLOW", 75),
    ("EOPNOTSUPP", 95),
];

/// What an error number is called.
pub(crate) fn error(number: i32) -> String {
    let known = ERRORS.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| format!("error {number}"), |(name, _)| (*name).to_owned())
}
