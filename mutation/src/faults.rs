//! Which expressions depend on a fault point, and how.
//!
//! `has_fault(…)` asks whether the code is to be broken on purpose (`coherence/src/fault.rs`). For a mutant the answer is always no, so what
//! happens on a yes is never run and has no mutants, and the question itself is none. A local that is computed from such a question
//! counts as one.

use std::collections::HashSet;

use syn::{BinOp, Expr, UnOp};

use crate::search::text_of;

/// The name of the question.
pub(crate) const QUESTION: &str = "has_fault";

/// Another one, whether a checker's finding is on its way up, which is as constant outside the checkers' builds.
pub(crate) const UNWINDING: &str = "is_unwinding";

/// The locals of a function that depend on a fault point.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    locals: HashSet<String>,
}

impl Faults {
    pub(crate) fn add_local(&mut self, name: String) {
        self.locals.insert(name);
    }

    /// Whether a text has the question in it.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|word| word == QUESTION || word == UNWINDING || self.locals.contains(word))
    }

    /// Whether a condition holds only in code that is broken on purpose.
    pub(crate) fn are_needed_for(&self, source: &str, condition: &Expr) -> bool {
        match condition {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
                self.are_needed_for(source, &binary.left) || self.are_needed_for(source, &binary.right)
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => false,
            Expr::Binary(binary) if matches!(binary.op, BinOp::Or(_)) => false,
            Expr::Paren(inner) => self.are_needed_for(source, &inner.expr),
            other => self.are_in(text_of(source, other)),
        }
    }
}
