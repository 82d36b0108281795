//! A file with all its mutants in it, each behind a question that is asked when it runs: is this the mutant that was chosen?
//!
//! ```text
//!   fence(Ordering::SeqCst)   becomes   (if crate::mutant::is(17) { () } else { fence(Ordering::SeqCst) })
//! ```
//!
//! A question that is always answered alike stays in sight, so that a checker can tell where its true answer is another:
//!
//! ```text
//!   a < b   becomes   (if crate::mutant::answers(17) { true } else { crate::mutant::truth(17, true, a < b) })
//! ```
//!
//! Edits nest: what stands in the other branch is the code as it was, with the questions of the mutants inside. What a mutant puts
//! there has none, since only one mutant is chosen at a time.

use std::ops::Range;

use crate::mutant::{Form, Mutant};

/// A rewritten file, and where each mutant's own code is in it.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    pub(crate) places: Vec<Place>,
}

/// Where a mutant has come to stand in the rewritten text.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) number: usize,
    /// All that it brought about: the question and both answers.
    pub(crate) whole: Range<usize>,
    /// What is there if it is chosen, with what compares it to the code as it was.
    pub(crate) replacement: Range<usize>,
}

struct Rewriter<'a> {
    source: &'a str,
    /// By place; of two at the same place the larger first.
    edits: Vec<(usize, &'a crate::mutant::Edit)>,
    output: Rewritten,
}

/// Rewrites a file, all of whose mutants are given.
pub(crate) fn rewrite(source: &str, mutants: &[&Mutant]) -> Rewritten {
    let mut edits: Vec<_> =
        mutants.iter().flat_map(|mutant| mutant.edits.iter().map(|edit| (mutant.number, edit))).collect();
    edits.sort_by_key(|(number, edit)| (edit.range.start, usize::MAX - edit.range.end, *number));
    let mut rewriter = Rewriter { source, edits, output: Rewritten::default() };
    rewriter.copy(0..source.len(), None);
    rewriter.output
}

impl Rewriter<'_> {
    /// Copies a part of the source with the edits in it; if the part is that of an edit, with those that come after this one.
    fn copy(&mut self, range: Range<usize>, after: Option<usize>) {
        let mut position = range.start;
        for index in after.map_or(0, |index| index + 1)..self.edits.len() {
            let (number, edit) = self.edits[index];
            let is_inside = edit.range.start >= position && edit.range.end <= range.end;
            if !is_inside || edit.range.start < range.start {
                continue;
            }
            self.output.text.push_str(&self.source[position..edit.range.start]);
            self.ask(index, number);
            position = edit.range.end;
        }
        self.output.text.push_str(&self.source[position..range.end]);
    }

    /// Writes one edit: the question, the mutant's code, and the code as it was.
    fn ask(&mut self, index: usize, number: usize) {
        let edit = self.edits[index].1;
        let start = self.output.text.len();
        let truth = format!(" }} else {{ crate::mutant::truth({number}, {}, ", edit.replacement);
        let (before, between, after) = match edit.form {
            Form::Expression => ("(if crate::mutant::is", " } else { ", " })"),
            Form::Answer => ("(if crate::mutant::answers", truth.as_str(), ") })"),
            Form::Block => ("{ if crate::mutant::is", " } else { ", " } }"),
            Form::Statement => ("if crate::mutant::is", " } else { ", " }"),
            Form::Guard => (" if !crate::mutant::is", "", ""),
        };
        self.output.text += &format!("{before}({number})");
        if edit.form != Form::Guard {
            self.output.text += " { ";
        }
        let replacement = self.output.text.len();
        self.output.text += &edit.replacement;
        self.output.text += between;
        let replacement = replacement..self.output.text.len();
        if edit.form != Form::Guard {
            self.copy(edit.range.clone(), Some(index));
        }
        self.output.text += after;
        let whole = start..self.output.text.len();
        self.output.places.push(Place { number, whole, replacement });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::mutants::Kind;

    use crate::mutant::Edit;

    fn mutant(number: usize, range: Range<usize>, form: Form, replacement: &str) -> Mutant {
        let edits = vec![Edit { range, form, replacement: replacement.into() }];
        Mutant { number, file: String::new(), line: 1, kind: Kind::Condition, key: String::new(), edits }
    }

    fn rewritten(source: &str, mutants: &[Mutant]) -> String {
        rewrite(source, &mutants.iter().collect::<Vec<_>>()).text
    }

    #[test]
    fn edits_nest_and_keep_what_is_around_them() {
        let mutants = [
            mutant(1, 3..9, Form::Expression, "true"),
            mutant(2, 3..4, Form::Expression, "false"),
            mutant(3, 8..9, Form::Expression, "false"),
        ];
        assert_eq!(
            rewritten("if a && b {}", &mutants),
            "if (if crate::mutant::is(1) { true } else { (if crate::mutant::is(2) { false } else { a }) && \
             (if crate::mutant::is(3) { false } else { b }) }) {}"
        );
    }

    #[test]
    fn an_answer_is_compared_to_the_truth() {
        assert_eq!(
            rewritten("a", &[mutant(1, 0..1, Form::Answer, "true")]),
            "(if crate::mutant::answers(1) { true } else { crate::mutant::truth(1, true, a) })"
        );
    }

    #[test]
    fn several_mutants_share_a_place() {
        let mutants = [mutant(1, 0..1, Form::Expression, "true"), mutant(2, 0..1, Form::Expression, "false")];
        assert_eq!(
            rewritten("a", &mutants),
            "(if crate::mutant::is(1) { true } else { (if crate::mutant::is(2) { false } else { a }) })"
        );
    }

    #[test]
    fn steps_and_guards_keep_their_form() {
        assert_eq!(
            rewritten("a(); b", &[mutant(1, 0..4, Form::Statement, "")]),
            "if crate::mutant::is(1) {  } else { a(); } b"
        );
        assert_eq!(
            rewritten("A => b", &[mutant(4, 1..1, Form::Guard, "")]),
            "A if !crate::mutant::is(4) => b"
        );
    }

    #[test]
    fn places_say_where_a_mutant_is() {
        let rewritten = rewrite("x(a)", &[&mutant(1, 2..3, Form::Expression, "y")] as &[&Mutant]);
        let place = &rewritten.places[0];
        assert_eq!(&rewritten.text[place.replacement.clone()], "y } else { ");
        assert_eq!(&rewritten.text[place.whole.clone()], "(if crate::mutant::is(1) { y } else { a })");
    }
}
