//! What people see of a result: the summary at the end of a check, and `docs/results/check.md`. Both are made from the document alone.

use super::document::{Document, Level};
use super::part::PARTS;
use crate::bench::clock;
use crate::tables;

/// Whether all that was run is as it should be.
pub(super) fn is_sound(document: &Document) -> bool {
    PARTS.iter().filter_map(|part| part.verdict(document)).all(|verdict| verdict.is_sound)
}

/// One row for each part.
pub(super) fn table(document: &Document) -> String {
    let mut table = tables::plain(&["part", "result", "counts", "work"]);
    tables::align_right(&mut table, &[3]);
    for part in PARTS {
        let row = match part.verdict(document) {
            Some(verdict) => [
                if verdict.is_sound { "ok" } else { "FAILED" }.to_owned(),
                verdict.counts,
                format!("{:.1} s", verdict.seconds),
            ],
            None => ["not run".to_owned(), String::new(), String::new()],
        };
        table.add_row(std::iter::once(part.name().to_owned()).chain(row));
    }
    let shard = document.shard.map_or_else(String::new, |shard| format!(", shard {shard}"));
    let time = clock(std::time::Duration::from_secs_f64(document.seconds.clamp(0.0, 1e9)));
    format!(
        "{}\n\n{}{shard}: {} after {time} min.",
        tables::lines(&table),
        level(document),
        if is_sound(document) { "all is as it should be" } else { "NOT as it should be" },
    )
}

fn level(document: &Document) -> &'static str {
    match document.level {
        Level::Quick => "The quick check",
        Level::Normal => "The check",
        Level::Deep => "The deep check",
    }
}

/// The page for the documents.
pub(super) fn page(document: &Document) -> String {
    let flag = document.level.flag().map_or_else(String::new, |flag| format!(" {flag}"));
    let commit =
        document.versions.commit.as_deref().map_or_else(String::new, |commit| format!(" of {commit}"));
    let sections: Vec<_> = PARTS.iter().filter_map(|part| part.section(document)).collect();
    format!(
        "# What the check explores and finds\n\n\
         Written by `./ceasefire check{flag} --table docs/results/check.md` from its result{commit}; docs/guide/check.md says what\n\
         the columns mean. Seconds are of one host thread, and depend on what else the host does.\n\n{}",
        sections.join("\n")
    )
}
