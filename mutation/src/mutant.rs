//! A mutant: the code with one thing in it taken away or weakened.
//!
//! All mutants of a crate are built at once (`rewriting.rs`) and one of them is chosen when a checker starts. So a mutant has a number, by
//! which it is chosen, and a key, which stays the same when lines move.

use std::ops::Range;

use protocol::mutants::Kind;

/// What stands at the place of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An expression.
    Expression,
    /// An expression that asks something, which is answered always with yes, or always with no.
    Answer,
    /// The block of an arm, after which no comma is needed.
    Block,
    /// A statement with its semicolon, or one that needs none.
    Statement,
    /// Nothing: the place behind an arm's pattern.
    Guard,
}

/// One place in a file, and what stands there in the mutant.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
    pub(crate) replacement: String,
}

/// One mutant.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// From 1; 0 stands for the code as it is.
    pub(crate) number: usize,
    /// The file's name in `coherence/src`.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    /// File, function, what was there and what is there now, and which of several that are otherwise the same.
    pub(crate) key: String,
    pub(crate) edits: Vec<Edit>,
}

impl Mutant {
    /// File and function.
    pub(crate) fn function(&self) -> &str {
        self.key.split_once(": `").map_or(self.key.as_str(), |(function, _)| function)
    }

    /// Whether it is meant by a word of the command line: its number, or a part of its key.
    pub(crate) fn is_named_by(&self, word: &str) -> bool {
        word.parse().map_or_else(|_| self.key.contains(word), |number: usize| number == self.number)
    }
}
