//! What can be said of a statement, an expression or an item by itself: what it changes, what it looks at, whether it is in every build,
//! and how it is shown on one line.

use syn::{Attribute, Expr, Stmt};

/// The variable that a statement changes, if that is all it does: a local, of which a method without an ordering is called, or a field
/// of what the function has borrowed for itself.
pub(crate) fn changed(statement: &Stmt) -> Option<String> {
    let Stmt::Expr(expression, _) = statement else {
        return None;
    };
    match expression {
        Expr::Assign(assignment) => match &*assignment.left {
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => Some(name.to_string()),
                syn::Member::Unnamed(_) => None,
            },
            _ => None,
        },
        Expr::MethodCall(call) if call.method == "remove" && call.args.len() == 1 => match &*call.receiver {
            Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text looks at a variable, or may do so in a method of the same value.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    let calls_own = text.split("self.").skip(1).any(|rest| {
        let word = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        rest[word..].starts_with('(')
    });
    calls_own
        || text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == name)
}

/// Whether an item, a statement or an expression is part of some builds only, or a test.
pub(crate) fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| ["cfg", "test"].iter().any(|name| attribute.path().is_ident(name)))
}

pub(crate) fn attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::If(inner) => &inner.attrs,
        Expr::Block(inner) => &inner.attrs,
        Expr::Return(inner) => &inner.attrs,
        Expr::Call(inner) => &inner.attrs,
        Expr::MethodCall(inner) => &inner.attrs,
        Expr::Match(inner) => &inner.attrs,
        _ => &[],
    }
}

/// A part of the source on one line, without its comments.
pub(crate) fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("// ").next().unwrap_or(line));
    let words: Vec<String> = lines.flat_map(str::split_whitespace).map(str::to_owned).collect();
    words.join(" ").replace(" .", ".").replace("( ", "(")
}

pub(crate) fn described(replacement: &str) -> String {
    match replacement {
        "" | "()" => "left out".into(),
        other => format!("`{}`", in_one_line(other)),
    }
}
