//! Whether all runs of a program said the same: standard output, standard error and exit status, across sides and repetitions.
//!
//! A difference is reported, never judged: a program that prints times differs on every run, and only its author knows whether
//! that is well. What can be told from the text alone is told, because it settles most cases: lines that differ in numbers only,
//! and the same lines in another order. For everything else the first line that differs is shown, of each side.

use std::borrow::Cow;

use protocol::report::Exit;

use super::trial::Trial;

/// What of a line is shown at most, in characters.
const SHOWN: usize = 90;

/// Chooses what a run printed on one of its streams.
type Stream = fn(&Trial) -> &[u8];

/// What the runs agree on, and a description of what they do not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    /// The exit status of every run; none when they differ.
    pub(super) exit: Option<Exit>,
    /// Complete sentences, with indented lines for what differs.
    pub(super) text: String,
}

/// Compares every run with the first one.
pub(super) fn of(trials: &[&Trial]) -> Agreement {
    let Some((first, others)) = trials.split_first() else {
        return Agreement { exit: None, text: "No run came to its end.".into() };
    };
    let exit = others.iter().all(|trial| trial.report.exit == first.report.exit).then_some(first.report.exit);
    let mut parts = Vec::new();
    if exit.is_none() {
        parts.push(statuses(trials));
    }
    let streams: [(&str, Stream); 2] =
        [("Standard output", |trial| &trial.output), ("Standard error", |trial| &trial.errors)];
    for (name, stream) in streams {
        parts.extend(stream_difference(name, first, others, stream));
    }
    if parts.is_empty() {
        let what = if first.output.is_empty() && first.errors.is_empty() {
            "print nothing"
        } else {
            "print the same"
        };
        return Agreement {
            exit,
            text: match others.len() {
                0 => "There is only one run, so there is nothing to agree on.".into(),
                1 => format!("Both runs {what} and end with {}.", ending(first.report.exit)),
                more => format!("All {} runs {what} and end with {}.", more + 1, ending(first.report.exit)),
            },
        };
    }
    if exit.is_some() {
        parts.push(format!("The runs agree on how they end: with {}.", ending(first.report.exit)));
    }
    Agreement { exit, text: parts.join("\n") }
}

/// "status 3", "signal 9".
fn ending(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    }
}

fn statuses(trials: &[&Trial]) -> String {
    let list: Vec<_> =
        trials.iter().map(|trial| format!("{} {}", trial.name(), ending(trial.report.exit))).collect();
    format!("THE RUNS END DIFFERENTLY: {}.", list.join(", "))
}

/// What is to be said about one stream; nothing when all runs have the same.
fn stream_difference(name: &str, first: &Trial, others: &[&Trial], stream: Stream) -> Option<String> {
    let reference = Text::of(stream(first));
    let differing = others.iter().map(|trial| (trial, Text::of(stream(trial))));
    let mut differing: Vec<_> = differing.filter(|(_, text)| text.bytes != reference.bytes).collect();
    if differing.is_empty() {
        return None;
    }
    let runs = differing.len();
    let those = match (runs, others.len()) {
        (1, _) => format!("of {} differs from that of {}", differing[0].0.name(), first.name()),
        (runs, all) if runs == all => format!("of {} differs from that of all other runs", first.name()),
        (runs, _) => format!("of {runs} runs differs from that of {}", first.name()),
    };
    // The gravest kind decides what is said, and the first run of that kind is shown.
    differing.sort_by_key(|(_, text)| std::cmp::Reverse(reference.difference(text)));
    let (other, text) = &differing[0];
    Some(match reference.difference(text) {
        Difference::Numbers => {
            format!("{name} {those} in numbers only, as times, counts and addresses do.")
        }
        Difference::Order => {
            format!("{name} {those} in the order of its lines only, as that of threads does.")
        }
        Difference::Content => format!("{name} {those}.{}", reference.first_line(first, other, text)),
    })
}

/// How two texts differ, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    Numbers,
    Order,
    Content,
}

/// A stream, line by line.
struct Text<'a> {
    bytes: &'a [u8],
    lines: Vec<Cow<'a, str>>,
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let lines = ended.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
        Text { bytes, lines: if bytes.is_empty() { Vec::new() } else { lines.collect() } }
    }

    fn difference(&self, other: &Text) -> Difference {
        let skeleton = |text: &Text| text.lines.iter().map(|line| without_numbers(line)).collect::<Vec<_>>();
        let (mut mine, mut others) = (skeleton(self), skeleton(other));
        if mine == others {
            return Difference::Numbers;
        }
        mine.sort();
        others.sort();
        if mine == others { Difference::Order } else { Difference::Content }
    }

    /// The first line that differs in more than numbers, of both; or where one of them ends.
    fn first_line(&self, mine: &Trial, other: &Trial, others: &Text) -> String {
        let pairs = self.lines.iter().zip(&others.lines);
        let alike = pairs.take_while(|(mine, other)| without_numbers(mine) == without_numbers(other)).count();
        let line = |text: &Text| match text.lines.get(alike) {
            Some(line) => (Some(line.to_string()), format!("|{line}")),
            None if text.lines.is_empty() => (None, "(nothing)".into()),
            None => (None, format!("(ended after {})", lines(text.lines.len()))),
        };
        let (mut here, mut there) = (line(self), line(others));
        if let (Some(one), Some(two)) = (&here.0, &there.0) {
            (here.1, there.1) = excerpts(one, two);
        }
        let names = [mine.name(), other.name()];
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let [mine, other] = names;
        format!(
            "\n  The first that differs is line {}:\n    {mine:width$}  {}\n    {other:width$}  {}",
            alike + 1,
            here.1,
            there.1
        )
    }
}

fn lines(count: usize) -> String {
    if count == 1 { "one line".into() } else { format!("{count} lines") }
}

/// The line with every number, decimal or hexadecimal, replaced by the same sign, and runs of blanks by one.
fn without_numbers(line: &str) -> String {
    let mut result = String::with_capacity(line.len());
    let mut words =
        line.split(|character: char| !character.is_ascii_alphanumeric() && character != '.').peekable();
    let mut rest = line;
    while let Some(word) = words.next() {
        result.push_str(if is_number(word) { "#" } else { word });
        rest = &rest[word.len()..];
        if words.peek().is_some() {
            let Some(separator) = rest.chars().next() else { break };
            rest = &rest[separator.len_utf8()..];
            // Numbers of other widths bring other padding and signs.
            if !(separator == ' ' && result.ends_with(' ') || separator == '-') {
                result.push(separator);
            }
        }
    }
    result.trim().to_owned()
}

/// A decimal or hexadecimal number, perhaps with a unit behind it, such as `1.5ms`.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let hexadecimal = digits.len() >= 8 && digits.chars().all(|character| character.is_ascii_hexdigit());
    let decimal = word.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = word.len() - decimal.len();
    let is_decimal = decimal.chars().any(|character| character.is_ascii_digit())
        && decimal.chars().all(|character| character.is_ascii_digit() || character == '.');
    hexadecimal || word.starts_with("0x") || is_decimal && unit <= 2
}

/// Both lines from shortly before the place where they differ, control characters made visible.
fn excerpts(one: &str, two: &str) -> (String, String) {
    let alike = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
    let skipped = if alike + 20 > SHOWN { alike - 20 } else { 0 };
    let excerpt = |line: &str| {
        let mut characters = line.chars().skip(skipped);
        let shown: String = characters.by_ref().take(SHOWN).flat_map(char::escape_debug).collect();
        let before = if skipped > 0 { "…" } else { "" };
        let after = if characters.next().is_some() { "…" } else { "" };
        format!("|{before}{}{after}", shown.replace("\\\"", "\"").replace("\\'", "'"))
    };
    (excerpt(one), excerpt(two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::System;

    fn trial(system: System, pair: u32, output: &str) -> Trial {
        Trial { output: output.into(), ..Trial::sample(system, pair) }
    }

    fn of_outputs(outputs: [&str; 4]) -> Agreement {
        let sides = [System::Ceasefire, System::Linux];
        let trials: Vec<_> = outputs
            .iter()
            .enumerate()
            .map(|(index, output)| trial(sides[index % 2], index as u32 / 2, output))
            .collect();
        of(&trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn runs_that_say_the_same_agree() {
        let agreement = of_outputs(["x\n"; 4]);
        assert_eq!(agreement.exit, Some(Exit::Code(0)));
        assert_eq!(agreement.text, "All 4 runs print the same and end with status 0.");
        assert_eq!(of_outputs([""; 4]).text, "All 4 runs print nothing and end with status 0.");
        assert!(of(&[&trial(System::Ceasefire, 0, "x")]).text.contains("only one run"));
        assert_eq!(of(&[]).exit, None);
    }

    #[test]
    fn numbers_and_orders_are_natural_differences() {
        let text = of_outputs([
            "took 1.5ms at 0x7f00\nok",
            "took 12ms at 0x7e10\nok",
            "took   1.5ms at 0x7f00\nok",
            "took 9.25ms at 0x1\nok",
        ])
        .text;
        assert!(
            text.starts_with(
                "Standard output of run 1 on Ceasefire differs from that of all other runs in numbers only"
            ),
            "{text}"
        );
        assert!(text.ends_with("The runs agree on how they end: with status 0."), "{text}");
        let text = of_outputs(["a 1\nb 2\n", "b 2\na 1\n", "a 1\nb 2\n", "a 1\nb 2\n"]).text;
        assert!(text.starts_with("Standard output of run 1 on Linux differs from that of run 1 on Ceasefire in the order of its lines"), "{text}");
    }

    #[test]
    fn the_first_line_that_differs_is_shown_of_both() {
        let text = of_outputs(["x 1\nyes\n", "x 2\nno\n", "x 1\nyes\n", "x 9\nno\n"]).text;
        let expected = "Standard output of 2 runs differs from that of run 1 on Ceasefire.\n  The first that differs is line 2:\n    \
                        run 1 on Ceasefire  |yes\n    run 1 on Linux      |no\n";
        assert!(text.starts_with(expected), "{text}");
        let text = of_outputs(["x\n", "x\ny\n", "x\n", ""]).text;
        assert!(text.contains("(ended after one line)") && text.contains("|y"), "{text}");
        let long = "a".repeat(500);
        let text = of_outputs(["x", &long, &(long.clone() + "b"), &(long.clone() + "\u{1b}c")]).text;
        assert!(text.lines().all(|line| line.chars().count() < 140), "{text}");
    }

    #[test]
    fn different_ends_are_listed() {
        let (mut one, two) = (trial(System::Ceasefire, 0, ""), trial(System::Linux, 0, ""));
        one.report.exit = Exit::Signal(11);
        let agreement = of(&[&one, &two]);
        assert_eq!(agreement.exit, None);
        assert_eq!(
            agreement.text,
            "THE RUNS END DIFFERENTLY: run 1 on Ceasefire signal 11, run 1 on Linux status 0."
        );
    }

    #[test]
    fn words_are_not_numbers() {
        assert_eq!(without_numbers("operations=5000 ns_per_op=-3.5"), "operations=# ns_per_op=#");
        assert_eq!(
            without_numbers("deadbeefcafe at 0x10, x86 and 3 of a kind é7"),
            "# at #, x86 and # of a kind é#"
        );
        for word in ["x86", "cafe", "v1.2", "ok", ""] {
            assert!(!is_number(word), "{word}");
        }
    }
}
