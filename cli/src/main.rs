//! The `ceasefire` command.
fn main() {}
