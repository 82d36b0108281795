//! The ledger of a run, as tables for a person: who was interrupted and why, what was invalidated, what was avoided and why
//! that was right, and the same by CPU. Rows that are zero are left out; the JSON result has them all.

use coherence::Row;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use protocol::report::{Exit, Report};

/// Width of tables that do not go to a terminal.
const WIDTH: u16 = 110;
/// A terminal that is narrower, or says that it has no width at all, breaks lines more readably than a table would.
const NARROW: u16 = 72;

/// A table with one rule below its header and no other lines.
pub(crate) fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING.header_separator(LineStyle::none().fill('-').junction('-')));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !table.is_tty() || table.width().is_none_or(|width| width < NARROW) {
        table.set_width(WIDTH);
    }
    table.set_header(header.iter().copied());
    table
}

/// The table without blanks at the ends of its lines.
pub(crate) fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The ledger of a run: a title, tables, the sentence that sums it up.
/// `changed` says which mechanisms are not as usual.
pub(crate) fn render(report: &Report, changed: &str, title: &str) -> String {
    let sections = [
        causes(report, "interrupts sent"),
        explained(report, "received", "interrupts received", "CPUs"),
        explained(report, "handled", "what they did about it", "times"),
        explained(report, "executed", "invalidated", "times"),
        explained(report, "skipped", "avoided", "times"),
        by_cpu(report),
    ];
    let tables: String = sections.iter().flatten().map(|section| format!("\n{section}\n")).collect();
    format!("\n{title}{changed}\n{tables}\n{}\n", summary(report))
}

/// Requests and interrupts by cause.
pub(crate) fn causes(report: &Report, title: &str) -> Option<String> {
    let mut table = plain(&[title, "requests", "interrupts", "meaning"]);
    align_right(&mut table, &[1, 2]);
    for row in report.group("requested").filter(|row| row.total() > 0) {
        let sent = report.total("sent", &row.name);
        table.add_row([
            &row.name,
            &row.total().to_string(),
            &sent.to_string(),
            explanation("requested", &row.name),
        ]);
    }
    (!table.is_empty()).then(|| lines(&table))
}

/// One group with the library's explanations.
pub(crate) fn explained(report: &Report, group: &str, title: &str, unit: &str) -> Option<String> {
    let mut table = plain(&[title, unit, "meaning"]);
    align_right(&mut table, &[1]);
    for row in report.group(group).filter(|row| row.total() > 0) {
        table.add_row([&row.name, &row.total().to_string(), explanation(group, &row.name)]);
    }
    (!table.is_empty()).then(|| lines(&table))
}

fn by_cpu(report: &Report) -> Option<String> {
    const COLUMNS: [(&str, &str, &[&str]); 7] = [
        ("sent", "sent", &[]),
        ("user", "received", &["user"]),
        ("kernel", "received", &["kernel"]),
        ("idle", "received", &["idle"]),
        ("flushed all", "executed", &["local_full", "remote_full", "switch_full", "lazy_full"]),
        ("pages", "executed", &["local_pages", "remote_pages"]),
        ("avoided", "skipped", &[]),
    ];
    if report.cpus < 2 {
        return None;
    }
    let header: Vec<_> = ["by CPU"].into_iter().chain(COLUMNS.map(|(title, ..)| title)).collect();
    let mut table = plain(&header);
    align_right(&mut table, &(1..header.len()).collect::<Vec<_>>());
    for cpu in 0..report.cpus as usize {
        let count = |(_, group, names): (&str, &str, &[&str])| -> String {
            let rows =
                report.group(group).filter(|row| names.is_empty() || names.contains(&row.name.as_str()));
            rows.filter_map(|row| row.per_cpu.get(cpu)).sum::<u64>().to_string()
        };
        table.add_row([format!("CPU {cpu}")].into_iter().chain(COLUMNS.map(count)));
    }
    Some(lines(&table))
}

/// These columns hold numbers.
pub(crate) fn align_right(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// What the library says about a row; a kernel of another version may have rows that it does not know.
pub(crate) fn explanation(group: &str, name: &str) -> &'static str {
    Row::all().find(|row| row.names() == (group, name)).map_or("", Row::explanation)
}

fn summary(report: &Report) -> String {
    let sum = |group| report.group(group).map(protocol::report::Row::total).sum::<u64>();
    let received = |mode| report.total("received", mode);
    let interrupts = match sum("sent") {
        0 => "No CPU was interrupted for coherence".to_owned(),
        1 => "One interrupt was sent for coherence".to_owned(),
        sent => format!("{sent} interrupts were sent for coherence"),
    };
    let modes = if sum("received") == 0 {
        String::new()
    } else {
        let (user, kernel, idle) = (received("user"), received("kernel"), received("idle"));
        format!(" ({user} met user code, {kernel} the kernel, {idle} an idle CPU)")
    };
    let avoided = format!("; {} interrupts and flushes were avoided.", sum("skipped"));
    let exit = match report.exit {
        Exit::Code(0) => String::new(),
        Exit::Code(code) => format!(" The program ended with status {code}."),
        Exit::Signal(signal) => format!(" Signal {signal} killed the program."),
    };
    let broken = match report.total("event", "suppressed") {
        0 => "",
        _ => " FLUSHES WERE LEFT OUT on a test's demand: this system was deliberately broken.",
    };
    format!("{interrupts}{modes}{avoided}{exit}{}{broken}", unknown_calls(report))
}

/// A sentence about the system calls that the program missed, if any.
pub(crate) fn unknown_calls(report: &Report) -> String {
    let calls: Vec<_> = report
        .unknown_system_calls
        .iter()
        .map(|call| {
            let known = usize::try_from(call.number).ok().and_then(syscalls::x86_64::Sysno::new);
            let name =
                known.map_or_else(|| format!("number {}", call.number), |known| known.name().to_owned());
            if call.calls == 1 { name } else { format!("{name} ({} times)", call.calls) }
        })
        .collect();
    match &calls[..] {
        [] => String::new(),
        [call] => format!(" It made a system call that Ceasefire does not have: {call}."),
        calls => format!(" It made system calls that Ceasefire does not have: {}.", calls.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::report;

    fn sample() -> Report {
        let row = |group: &str, name: &str, per_cpu: &[u64]| report::Row {
            group: group.into(),
            name: name.into(),
            per_cpu: per_cpu.to_vec(),
        };
        Report {
            schema: report::SCHEMA.into(),
            exit: Exit::Signal(9),
            cpus: 2,
            mechanisms: Vec::new(),
            ledger: vec![
                row("requested", "munmap", &[2, 0]),
                row("sent", "munmap", &[2, 0]),
                row("requested", "brk", &[0, 0]),
                row("received", "user", &[0, 2]),
                row("skipped", "promotion", &[5, 1]),
            ],
            unknown_system_calls: vec![report::UnknownCall { number: 425, calls: 3 }],
            clock: report::Clock::default(),
            memory: report::Memory::default(),
            processor_time: None,
        }
    }

    #[test]
    fn every_count_that_is_not_zero_is_shown_with_its_meaning() {
        let text = render(&sample(), ", without lazy", "program on 2 CPUs");
        assert!(text.starts_with("\nprogram on 2 CPUs, without lazy\n"), "{text}");
        assert!(text.contains(coherence::Cause::Munmap.explanation()), "{text}");
        assert!(!text.contains("brk"), "{text}");
        assert!(text.contains(
            "2 interrupts were sent for coherence (2 met user code, 0 the kernel, 0 an idle CPU); 6 "
        ));
        assert!(text.contains("Signal 9 killed") && text.contains("io_uring_setup (3 times)"), "{text}");
        let tables = causes(&sample(), "interrupts sent").unwrap()
            + &explained(&sample(), "skipped", "avoided", "times").unwrap();
        assert!(tables.lines().all(|line| line.len() <= usize::from(WIDTH)), "{tables}");
    }

    #[test]
    fn a_system_broken_on_purpose_says_so() {
        let mut report = sample();
        assert!(!render(&report, "", "").contains("LEFT OUT"));
        report.ledger.push(report::Row {
            group: "event".into(),
            name: "suppressed".into(),
            per_cpu: vec![0, 1],
        });
        assert!(render(&report, "", "").contains("LEFT OUT"));
    }

    #[test]
    fn the_table_by_cpu_adds_up() {
        let table = by_cpu(&sample()).unwrap();
        let cpu_1: Vec<_> = table.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(cpu_1, ["CPU", "1", "0", "2", "0", "0", "0", "0", "1"]);
    }
}
