//! Finds what may be taken away or weakened in a file: the walk over its functions and their statements. What is done to an
//! expression is in `operators.rs`.
//!
//! Left out are: code that a checker's build alone has (`cfg`), tests, fault points (`faults.rs`), assertions, messages, what is
//! counted for the ledger, and the values of constants.

use std::ops::Range;

use protocol::mutants::Kind;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Local, Pat, ReturnType, Signature, Stmt};

use crate::faults::{self, Faults};
use crate::mutant::{Edit, Form, Mutant};
use crate::statement::{attributes, changed, described, in_one_line, is_left_out, mentions};

/// The text of a part of the source.
pub(crate) fn text_of<'a>(source: &'a str, part: &impl Spanned) -> &'a str {
    &source[part.span().byte_range()]
}

/// A walk through one file.
pub(crate) struct Search<'a> {
    pub(crate) source: &'a str,
    file: &'a str,
    functions: Vec<String>,
    pub(crate) faults: Faults,
    /// The calls around the expression that is looked at.
    pub(crate) calls: Vec<Range<usize>>,
    mutants: Vec<Mutant>,
}

/// All mutants of one file, in the order of its lines and without numbers.
pub(crate) fn mutants_of(file: &str, source: &str) -> Result<Vec<Mutant>, String> {
    let parsed = syn::parse_file(source).map_err(|error| format!("{file} cannot be parsed: {error}"))?;
    let mut search = Search {
        source,
        file,
        functions: Vec::new(),
        faults: Faults::default(),
        calls: Vec::new(),
        mutants: Vec::new(),
    };
    search.visit_file(&parsed);
    let mut mutants = search.mutants;
    mutants.sort_by_key(|mutant| mutant.edits[0].range.start);
    Ok(mutants)
}

impl Search<'_> {
    pub(crate) fn text(&self, part: &impl Spanned) -> &str {
        text_of(self.source, part)
    }

    pub(crate) fn depends_on_faults(&self, part: &impl Spanned) -> bool {
        self.faults.are_in(self.text(part))
    }

    /// A mutant in which an expression is another one. `shown` is what is said to have changed, if not the expression itself.
    pub(crate) fn replace(
        &mut self,
        kind: Kind,
        part: &impl Spanned,
        replacement: &str,
        shown: Option<&Range<usize>>,
    ) {
        let range = part.span().byte_range();
        if &self.source[range.clone()] == replacement {
            return;
        }
        let shown = &self.source[shown.unwrap_or(&range).clone()];
        let change = format!("`{}`: {}", in_one_line(shown), described(replacement));
        let is_answer = ["true", "false"].contains(&replacement);
        let form = if is_answer { Form::Answer } else { Form::Expression };
        self.add(kind, change, vec![Edit { range, form, replacement: replacement.into() }]);
    }

    pub(crate) fn add(&mut self, kind: Kind, change: String, edits: Vec<Edit>) {
        let function = self.functions.join("::");
        let line = self.source[..edits[0].range.start].lines().count().max(1);
        let key = format!("{} {function}: {change}", self.file);
        self.mutants.push(Mutant { number: 0, file: self.file.into(), line, kind, key, edits });
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        // What is printed decides nothing, and whether the code is broken on purpose is not a part of it.
        if is_left_out(attributes)
            || signature.ident == "fmt"
            || [faults::QUESTION, faults::UNWINDING].iter().any(|name| signature.ident == name)
        {
            return;
        }
        self.functions.push(signature.ident.to_string());
        let faults = std::mem::take(&mut self.faults);
        if let (ReturnType::Type(_, returned), Some(Stmt::Expr(last, None))) =
            (&signature.output, block.stmts.last())
            && self.text(returned) == "bool"
        {
            self.force(last);
        }
        self.visit_block(block);
        self.faults = faults;
        self.functions.pop();
    }

    /// A statement that is left out.
    fn leave_out(&mut self, statement: &Stmt) {
        let change = format!("`{}`: left out", in_one_line(self.text(statement)));
        let range = statement.span().byte_range();
        self.add(Kind::Step, change, vec![Edit { range, form: Form::Statement, replacement: String::new() }]);
    }

    /// Two statements, one after the other, in the other order.
    fn exchange(&mut self, first: &Stmt, second: &Stmt) {
        let [one, two] = [first, second].map(|statement| self.text(statement).to_owned());
        let change = format!("`{}` and `{}`: in the other order", in_one_line(&one), in_one_line(&two));
        let edit = |statement: &Stmt, replacement| Edit {
            range: statement.span().byte_range(),
            form: Form::Statement,
            replacement,
        };
        self.add(Kind::Order, change, vec![edit(first, two), edit(second, one)]);
    }

    /// Whether a statement is a step of the protocol: an effect, and not only counted, asserted or made in a broken build.
    fn is_step(&self, statement: &Stmt) -> bool {
        let Stmt::Expr(expression, end) = statement else {
            return false;
        };
        let is_whole = end.is_some() || matches!(expression, Expr::If(_) | Expr::ForLoop(_));
        let is_broken = match expression {
            Expr::If(choice) => self.faults.are_needed_for(self.source, &choice.cond),
            _ => false,
        };
        let has_value = matches!(expression, Expr::If(choice) if choice.else_branch.is_some());
        is_whole
            && !is_broken
            && !has_value
            && !self.is_counting(expression)
            && !is_left_out(attributes(expression))
    }

    /// Whether a statement only counts, asserts, or is made in a broken build: the steps around it follow each other.
    fn is_no_step_at_all(&self, statement: &Stmt) -> bool {
        match statement {
            Stmt::Expr(Expr::If(choice), _) if self.faults.are_needed_for(self.source, &choice.cond) => true,
            Stmt::Expr(expression, _) => self.is_counting(expression),
            Stmt::Macro(_) => true,
            _ => false,
        }
    }

    /// Whether the order of two statements is worth a mutant: not if one ends the function, if both are the CPU's own business, if
    /// one is a variable's and the other does not look at it, or if each is one of several plain stores that something else publishes.
    fn may_matter(&self, first: &Stmt, second: &Stmt) -> bool {
        let texts = [first, second].map(|statement| self.text(statement));
        let is_plain = |text: &&str| text.contains(".store(") && text.contains("Ordering::Relaxed");
        let is_private =
            |text: &&str| ["private.", ".set(", ".set_lazy("].iter().any(|own| text.contains(own));
        let is_apart = |one: &Stmt, other: &str| changed(one).is_some_and(|name| !mentions(other, &name));
        let is_exempt = texts.iter().all(is_plain)
            || texts.iter().all(is_private)
            || is_apart(first, texts[1])
            || is_apart(second, texts[0]);
        !is_exempt && !texts.iter().any(|text| text.contains("return"))
    }

    /// Whether an expression only counts for the ledger, or asserts.
    pub(crate) fn is_counting(&self, expression: &Expr) -> bool {
        match expression {
            Expr::MethodCall(call) => {
                let is_addition = call.method == "add" && self.text(&call.receiver).ends_with("counters");
                let counts = call.method == "count" && !call.args.is_empty();
                is_addition || counts || call.method == "check_loaded"
            }
            Expr::If(choice) => {
                let counts = |statement: &Stmt| matches!(statement, Stmt::Expr(inner, Some(_)) if self.is_counting(inner));
                choice.else_branch.is_none() && choice.then_branch.stmts.iter().all(counts)
            }
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_left_out(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.attrs, &function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.attrs, &function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.attrs, &function.sig, block);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}

    fn visit_block(&mut self, block: &'ast Block) {
        let mut before: Option<&Stmt> = None;
        for statement in &block.stmts {
            if self.is_step(statement) {
                if let Some(before) = before
                    && self.may_matter(before, statement)
                {
                    self.exchange(before, statement);
                }
                before = Some(statement);
            } else if !self.is_no_step_at_all(statement) {
                before = None;
            }
            self.visit_stmt(statement);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Local(local) => self.visit_local(local),
            Stmt::Expr(expression, end) => {
                let is_fence = self.fence(expression);
                let is_effect = matches!(
                    expression,
                    Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Binary(_)
                );
                if end.is_some()
                    && is_effect
                    && !is_fence
                    && self.is_step(statement)
                    && !self.depends_on_faults(statement)
                {
                    self.leave_out(statement);
                }
                if !is_fence {
                    self.visit_expr(expression);
                }
            }
            Stmt::Item(item) => self.visit_item(item),
            Stmt::Macro(_) => {}
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if is_left_out(&local.attrs) {
            return;
        }
        let Some(init) = &local.init else {
            return;
        };
        // Not what is only computed from such a local: `early.unwrap_or_else(|| …)` is what the sound code does.
        let is_question = self.text(&*init.expr).contains(faults::QUESTION)
            && (self.faults.are_needed_for(self.source, &init.expr)
                || matches!(*init.expr, Expr::Closure(_)));
        if is_question && let Pat::Ident(name) = &local.pat {
            self.faults.add_local(name.ident.to_string());
            return;
        }
        self.force_if_boolean(&init.expr);
        visit::visit_local(self, local);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if !is_left_out(attributes(expression)) && !self.is_counting(expression) {
            self.expression(expression);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done to a function's body, without the file and the function.
    fn changes(body: &str) -> Vec<String> {
        let source = format!("fn f() {{ {body} }}");
        let mutants = mutants_of("a.rs", &source).unwrap();
        mutants.iter().map(|mutant| mutant.key.strip_prefix("a.rs f: ").unwrap().to_owned()).collect()
    }

    #[test]
    fn fences_and_orderings_are_weakened_by_one_step() {
        assert_eq!(
            changes("fence(Ordering::SeqCst);"),
            ["`fence(Ordering::SeqCst)`: left out", "`fence(Ordering::SeqCst)`: `fence(Ordering::AcqRel)`"]
        );
        assert_eq!(
            changes("let old = word.fetch_add(1, Ordering::AcqRel);"),
            [
                "`word.fetch_add(1, Ordering::AcqRel)`: `Ordering::Acquire`",
                "`word.fetch_add(1, Ordering::AcqRel)`: `Ordering::Release`"
            ]
        );
        assert_eq!(changes("let now = word.load(Ordering::Relaxed);"), Vec::<String>::new());
    }

    #[test]
    fn a_fence_behind_a_fault_point_is_found_and_the_question_is_not() {
        assert_eq!(
            changes("if !self.has_fault(Fault::NoFence) { fence(Ordering::SeqCst); }"),
            ["`fence(Ordering::SeqCst)`: left out", "`fence(Ordering::SeqCst)`: `fence(Ordering::AcqRel)`"]
        );
    }

    #[test]
    fn what_only_a_broken_build_does_is_left_alone() {
        assert_eq!(
            changes(
                "let early = self.has_fault(A).then(|| 1); let late = early.unwrap_or_else(|| a.load(Ordering::Acquire));"
            ),
            ["`a.load(Ordering::Acquire)`: `Ordering::Relaxed`"]
        );
        assert!(changes("if self.has_fault(Fault::Early) { self.acknowledge(); }").is_empty());
        assert!(
            changes("let early = self.has_fault(Fault::Early).then(|| a.load(Ordering::Acquire));")
                .is_empty()
        );
        assert_eq!(
            changes(
                "let early = self.has_fault(Fault::Early); set.remove(if early { Ordering::Relaxed } else { Ordering::Release });"
            ),
            ["`set.remove(if early { Ordering::Relaxed } else { Ordering::Release })`: `Ordering::Relaxed`"]
        );
        assert_eq!(changes("if frees && !self.has_fault(Fault::Early) { x = 1; }").len(), 3);
    }

    #[test]
    fn steps_are_left_out_and_exchanged_but_what_is_only_counted_is_neither() {
        let mut found = changes("join(); self.count(me, Row::Joined); leave();");
        found.sort();
        assert_eq!(
            found,
            ["`join();` and `leave();`: in the other order", "`join();`: left out", "`leave();`: left out"]
        );
        assert!(changes("debug_assert!(a < b);").is_empty());
    }

    #[test]
    fn what_only_a_variable_hears_of_has_no_order() {
        let has_order = |body| changes(body).iter().any(|change| change.ends_with("in the other order"));
        assert!(!has_order("self.is_written = true; space.record(now);"));
        assert!(!has_order("active.remove(me); lazy.remove(me);"));
        assert!(!has_order("private.set_none(); private.slots.assign(a, b);"));
        assert!(has_order("self.is_written = true; self.finish();"));
        assert!(has_order("private.set_none(); self.platform.load(a);"));
        assert!(has_order("space.active.remove(me, release); self.flush();"));
    }

    #[test]
    fn rows_of_a_table_are_passed_over_only_if_another_takes_their_place() {
        let changes = changes("match a { A => b(), _ => {} }");
        assert_eq!(
            changes,
            ["`A => b(),`: without effect", "`A => b(),`: passed over"]
                .map(|text| text.to_owned())
                .iter()
                .rev()
                .cloned()
                .collect::<Vec<_>>()
        );
        assert!(super::tests::changes("match a { A => 1, B => 2 }").is_empty());
    }

    #[test]
    fn conditions_are_forced_and_moved_by_one() {
        assert_eq!(
            changes("if a < b && c { d = 1; }"),
            [
                "`a < b && c`: `true`",
                "`a < b && c`: `false`",
                "`a < b`: `true`",
                "`a < b`: `a <= b`",
                "`c`: `true`",
                "`d = 1;`: left out"
            ]
        );
    }
}
