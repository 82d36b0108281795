//! What is done to an expression.

use protocol::mutants::Kind;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, BinOp, Expr, ExprIf, ExprMatch, ExprMethodCall, Pat, UnOp};

use crate::mutant::{Edit, Form};
use crate::search::Search;
use crate::statement::in_one_line;

/// Methods that ask a closure of each element.
const ASKING: [&str; 8] =
    ["filter", "position", "is_some_and", "is_none_or", "any", "all", "take_while", "find"];
/// Methods whose result is of the same kind as what they are called on, so that the call can be left out.
const KEEPING: [&str; 10] = [
    "union",
    "intersection",
    "difference",
    "merge",
    "hull",
    "next",
    "clamp",
    "next_multiple_of",
    "take",
    "limited_to",
];

/// The names under which tables say what is done, and why.
const ANSWERS: [&str; 3] = ["Outcome", "Reason", "Why"];

impl Search<'_> {
    pub(crate) fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::If(choice) => self.choice(choice),
            Expr::While(repeated) => {
                if !self.depends_on_faults(&*repeated.cond) && !matches!(*repeated.cond, Expr::Let(_)) {
                    self.replace(Kind::Condition, &*repeated.cond, "false", None);
                }
                match &*repeated.cond {
                    Expr::Unary(unary) => self.visit_expr(&unary.expr),
                    other => self.visit_expr(other),
                }
                self.visit_block(&repeated.body);
            }
            Expr::Match(table) => self.table(table),
            Expr::Binary(_) | Expr::Unary(_) => self.operation(expression),
            Expr::Call(call) if self.fence(expression) => debug_assert!(!call.args.is_empty()),
            Expr::Call(_) => self.inside_a_call(expression),
            Expr::MethodCall(call) => self.method(call, expression),
            Expr::Path(path) => self.path(path),
            Expr::Tuple(tuple) => self.row(tuple),
            Expr::Struct(literal) => {
                literal.fields.iter().for_each(|field| self.force_if_boolean(&field.expr));
                visit::visit_expr(self, expression);
            }
            Expr::Return(answer) => {
                if let Some(value) = &answer.expr {
                    self.force_if_boolean(value);
                    self.visit_expr(value);
                }
            }
            other => visit::visit_expr(self, other),
        }
    }

    /// A fence, or a mutant of one: left out, or weakened by one step. Says whether it was one.
    pub(crate) fn fence(&mut self, expression: &Expr) -> bool {
        let Expr::Call(call) = expression else {
            return false;
        };
        if !self.text(&call.func).ends_with("fence") {
            return false;
        }
        self.replace(Kind::Fence, expression, "()", None);
        let text = self.text(expression).to_owned();
        for (strong, weak) in [("SeqCst", "AcqRel"), ("AcqRel", "Acquire"), ("AcqRel", "Release")] {
            if text.contains(strong) {
                self.replace(Kind::Fence, expression, &text.replace(strong, weak), None);
            }
        }
        true
    }

    fn choice(&mut self, choice: &ExprIf) {
        if !self.faults.are_needed_for(self.source, &choice.cond) {
            self.condition(&choice.cond);
            self.visit_block(&choice.then_branch);
        }
        if let Some((_, otherwise)) = &choice.else_branch {
            self.visit_expr(otherwise);
        }
    }

    /// A condition that always holds, or never does, as far as it does not depend on a fault point or a pattern.
    fn condition(&mut self, condition: &Expr) {
        let is_pure = !self.depends_on_faults(condition) && !has_pattern(condition);
        if is_pure {
            self.force(condition);
        } else if let Some(term) = terms(condition)
            .into_iter()
            .find(|term| !self.depends_on_faults(*term) && !matches!(term, Expr::Let(_)))
        {
            self.replace(Kind::Condition, term, "false", None);
        }
        match condition {
            // The whole of it is forced already.
            Expr::Unary(unary) if is_pure => self.visit_expr(&unary.expr),
            other => self.visit_expr(other),
        }
    }

    /// The two mutants of a question: always yes, and always no.
    pub(crate) fn force(&mut self, question: &Expr) {
        if !self.depends_on_faults(question) {
            self.replace(Kind::Condition, question, "true", None);
            self.replace(Kind::Condition, question, "false", None);
        }
    }

    pub(crate) fn force_if_boolean(&mut self, expression: &Expr) {
        let is_boolean = match expression {
            Expr::Binary(binary) => is_comparison(&binary.op) || is_junction(&binary.op),
            Expr::Macro(call) => call.mac.path.is_ident("matches"),
            _ => false,
        };
        if is_boolean {
            self.force(expression);
        }
    }

    fn operation(&mut self, expression: &Expr) {
        match expression {
            Expr::Binary(binary) if is_junction(&binary.op) => {
                let neutral = if matches!(binary.op, BinOp::And(_)) { "true" } else { "false" };
                for term in [&*binary.left, &*binary.right] {
                    let is_junction_itself = matches!(term, Expr::Binary(inner) if is_junction(&inner.op));
                    let is_free = !self.depends_on_faults(term) && !matches!(term, Expr::Let(_));
                    if is_free && !(is_junction_itself && matches!(binary.op, BinOp::And(_))) {
                        self.replace(Kind::Condition, term, neutral, None);
                    }
                    match term {
                        Expr::Unary(unary) => self.visit_expr(&unary.expr),
                        other => self.visit_expr(other),
                    }
                }
            }
            Expr::Binary(binary) => {
                let moved = match binary.op {
                    BinOp::Lt(_) => Some("<="),
                    BinOp::Le(_) => Some("<"),
                    BinOp::Gt(_) => Some(">="),
                    BinOp::Ge(_) => Some(">"),
                    _ => None,
                };
                let [left, right] = [&binary.left, &binary.right].map(|side| self.text(&**side).to_owned());
                if let Some(sign) = moved {
                    self.replace(Kind::Condition, expression, &format!("{left} {sign} {right}"), None);
                } else if is_computation(&binary.op) && !self.depends_on_faults(expression) {
                    self.replace(Kind::Computation, expression, &left, None);
                }
                visit::visit_expr(self, expression);
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) && !self.depends_on_faults(expression) => {
                let inner = self.text(&*unary.expr).to_owned();
                self.replace(Kind::Computation, expression, &inner, None);
                visit::visit_expr(self, expression);
            }
            other => visit::visit_expr(self, other),
        }
    }

    fn table(&mut self, table: &ExprMatch) {
        self.visit_expr(&table.expr);
        let has_default = table.arms.last().is_some_and(|arm| match &arm.pat {
            Pat::Wild(_) => true,
            // A name that is bound; `None` is none.
            Pat::Ident(name) => name.ident.to_string().starts_with(char::is_lowercase),
            _ => false,
        });
        for (index, arm) in table.arms.iter().enumerate() {
            self.arm(arm, has_default && index + 1 < table.arms.len());
        }
    }

    /// A row of a table: passed over, or without an effect.
    fn arm(&mut self, arm: &Arm, can_be_passed_over: bool) {
        let shown = in_one_line(self.text(arm));
        match &arm.pat {
            Pat::Guard(guarded) => self.condition(&guarded.guard),
            _ if can_be_passed_over => {
                let end = arm.pat.span().byte_range().end;
                let edit = Edit { range: end..end, form: Form::Guard, replacement: String::new() };
                self.add(Kind::Row, format!("`{shown}`: passed over"), vec![edit]);
            }
            _ => {}
        }
        let is_effect = matches!(
            *arm.body,
            Expr::Return(_) | Expr::Call(_) | Expr::MethodCall(_) | Expr::Block(_) | Expr::Assign(_)
        );
        let is_empty = matches!(&*arm.body, Expr::Block(block) if block.block.stmts.is_empty());
        if is_effect && !is_empty && !self.depends_on_faults(&*arm.body) && !self.is_counting(&arm.body) {
            let range = arm.body.span().byte_range();
            let form = if matches!(*arm.body, Expr::Block(_)) { Form::Block } else { Form::Expression };
            let edit = Edit { range, form, replacement: "()".into() };
            self.add(Kind::Row, format!("`{shown}`: without effect"), vec![edit]);
        }
        self.force_if_boolean(&arm.body);
        self.visit_expr(&arm.body);
    }

    fn method(&mut self, call: &ExprMethodCall, expression: &Expr) {
        let name = call.method.to_string();
        // What follows from a fault point is never run.
        if ["then", "then_some"].contains(&name.as_str()) && self.depends_on_faults(&*call.receiver) {
            return;
        }
        let receiver = self.text(&*call.receiver).to_owned();
        let is_free = !self.depends_on_faults(expression);
        for (one, other) in [("min", "max"), ("max", "min")] {
            if name == one && is_free {
                let arguments = self.text(&call.args).to_owned();
                self.replace(
                    Kind::Computation,
                    expression,
                    &format!("{receiver}.{other}({arguments})"),
                    None,
                );
            }
        }
        if KEEPING.contains(&name.as_str()) && is_free {
            self.replace(Kind::Computation, expression, &receiver, None);
        }
        if name == "map_or" && is_free {
            let default = self.text(&call.args[0]).to_owned();
            self.replace(Kind::Computation, expression, &default, None);
        }
        for argument in &call.args {
            match argument {
                Expr::Closure(closure) if ASKING.contains(&name.as_str()) => self.force(&closure.body),
                other => self.force_if_boolean(other),
            }
        }
        self.inside_a_call(expression);
    }

    fn inside_a_call(&mut self, call: &Expr) {
        self.calls.push(call.span().byte_range());
        visit::visit_expr(self, call);
        self.calls.pop();
    }

    /// An ordering, weakened by one step; or an answer of a table, and then another one is given.
    fn path(&mut self, path: &syn::ExprPath) {
        let mut segments = path.path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let (Some(name), Some(of)) = (segments.next(), segments.next()) else {
            return;
        };
        let call = self.calls.last().cloned();
        if of == "Ordering" {
            let text = call.as_ref().map_or("", |call| &self.source[call.clone()]);
            for weaker in weaker(&name, text) {
                self.replace(Kind::Ordering, path, &format!("Ordering::{weaker}"), call.as_ref());
            }
        } else if ANSWERS.contains(&of.as_str())
            && name != "ALL"
            && let Some(other) = self.another_answer(&of, &name)
        {
            self.replace(Kind::Row, path, &format!("{of}::{other}"), None);
        }
    }

    /// The answer that the file names after this one, if the file has a table.
    fn another_answer(&self, of: &str, name: &str) -> Option<String> {
        let mark = format!("({of}::");
        let mut answers: Vec<&str> = Vec::new();
        for part in self.source.split(&mark).skip(1) {
            let answer = part.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            if !answers.contains(&answer) {
                answers.push(answer);
            }
        }
        let place = answers.iter().position(|answer| *answer == name)?;
        let other = answers[(place + 1) % answers.len()];
        (other != name).then(|| other.to_owned())
    }

    /// A row of a table that is a tuple: a question in it, or the generation that it claims.
    fn row(&mut self, tuple: &syn::ExprTuple) {
        for element in &tuple.elems {
            self.force_if_boolean(element);
            let claimed = match (self.text(element), self.text(&tuple.elems[0]).starts_with("Outcome::")) {
                ("caught_up", true) => Some("request.generation"),
                ("current", true) => Some("caught_up"),
                _ => None,
            };
            if let Some(claimed) = claimed {
                let shown = tuple.span().byte_range();
                self.replace(Kind::Row, element, claimed, Some(&shown));
            }
            self.visit_expr(element);
        }
    }
}

/// The orderings one step below an ordering, as far as the access may have them.
fn weaker(ordering: &str, call: &str) -> &'static [&'static str] {
    match ordering {
        "SeqCst" if call.contains("load(") => &["Acquire"],
        "SeqCst" if call.contains("store(") => &["Release"],
        "SeqCst" => &["AcqRel"],
        "AcqRel" => &["Acquire", "Release"],
        "Acquire" | "Release" => &["Relaxed"],
        _ => &[],
    }
}

/// The terms that must all hold.
fn terms(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            [terms(&binary.left), terms(&binary.right)].concat()
        }
        other => vec![other],
    }
}

fn has_pattern(condition: &Expr) -> bool {
    terms(condition).iter().any(|term| matches!(term, Expr::Let(_)))
}

fn is_junction(operator: &BinOp) -> bool {
    matches!(operator, BinOp::And(_) | BinOp::Or(_))
}

fn is_comparison(operator: &BinOp) -> bool {
    use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(operator, Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_))
}

/// Whether the left side alone is of the same kind as the whole.
fn is_computation(operator: &BinOp) -> bool {
    use BinOp::{Add, BitAnd, BitOr, Div, Mul, Rem, Shl, Shr, Sub};
    matches!(operator, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | Shl(_) | Shr(_) | BitAnd(_) | BitOr(_))
}
