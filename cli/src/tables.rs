//! The ledger of a run, as tables for a person.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, LineStyle, Table};
use protocol::report::{Exit, Report};

/// A table with one rule below its header and no other lines.
pub(crate) fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('-').junction('-')));
    table.set_header(header.iter().copied());
    table
}

/// The ledger of a run: a title, the groups of counters, one sentence.
pub(crate) fn render(report: &Report, without: &[&str], title: &str) -> String {
    let mut text = format!("\n{title}{}\n", off(without));
    let mut groups: Vec<&str> = Vec::new();
    for row in &report.ledger {
        if !groups.contains(&row.group.as_str()) {
            groups.push(&row.group);
        }
    }
    for group in groups {
        let header = header(group, report.cpus);
        let mut table = plain(&header.iter().map(String::as_str).collect::<Vec<_>>());
        (1..header.len()).for_each(|column| align_right(&mut table, column));
        let rows = report
            .ledger
            .iter()
            .filter(|row| row.group == group && row.total() > 0);
        for row in rows {
            let counts = std::iter::once(row.total()).chain(row.per_cpu.iter().copied());
            table.add_row(std::iter::once(row.name.clone()).chain(counts.map(|count| count.to_string())));
        }
        if !table.is_empty() {
            text.push_str(&format!("\n{}\n", lines(&table)));
        }
    }
    text.push_str(&format!("\n{}\n", ending(report)));
    text
}

fn header(group: &str, cpus: u32) -> Vec<String> {
    let cpus = (0..cpus).map(|cpu| format!("CPU {cpu}"));
    [group.to_owned(), "total".into()]
        .into_iter()
        .chain(cpus)
        .collect()
}

fn align_right(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn lines(table: &Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn off(without: &[&str]) -> String {
    if without.is_empty() {
        String::new()
    } else {
        format!(", without {}", without.join(", "))
    }
}

fn ending(report: &Report) -> String {
    let unknown: Vec<_> = report
        .unknown_system_calls
        .iter()
        .map(|call| format!("{} ({} times)", call.number, call.calls))
        .collect();
    let unknown = if unknown.is_empty() {
        String::new()
    } else {
        format!(
            " It called system calls that this kernel does not have: number {}.",
            unknown.join(", ")
        )
    };
    let exit = match report.exit {
        Exit::Code(code) => format!("ended with status {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
    };
    format!("The program {exit}.{unknown}")
}
