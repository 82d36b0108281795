//! Numbers as people read them: as many digits as mean something, thousands apart, a unit where one belongs.

/// U+2212, which is as wide as a plus.
const MINUS: char = '−';

/// A count for each operation, with its decimals so that a column of them lines up.
pub(crate) fn count(value: f64) -> String {
    match value.abs() {
        0.0 => "0.00".into(),
        size if size < 0.0005 => "<0.001".into(),
        size if size < 0.01 => decimal(value, 3),
        size if size < 100.0 => decimal(value, 2),
        size if size < 1000.0 => decimal(value, 1),
        _ => decimal(value, 0),
    }
}

/// The same without decimals that say nothing: for labels in charts.
pub(crate) fn short(value: f64) -> String {
    let text = count(value);
    match text.contains('.') && !text.starts_with('<') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A round number at an axis, short.
pub(crate) fn mark(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 0.0005 => format!("{value:.1e}"),
        size if size < 0.1 => decimal(value, 4).trim_end_matches('0').to_owned(),
        size if size < 9_999.5 => short(value),
        size if size < 999.5e3 => short(value / 1e3) + "k",
        size if size < 999.5e6 => short(value / 1e6) + "M",
        size if size < 999.5e9 => short(value / 1e9) + "G",
        _ => format!("{value:.1e}"),
    }
}

/// A whole number.
pub(crate) fn whole(value: u64) -> String {
    grouped(&value.to_string())
}

/// Nanoseconds in the unit that leaves one to three digits before the point.
pub(crate) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds.abs() {
        size if size < 999.5 => (nanoseconds, "ns"),
        size if size < 999.5e3 => (nanoseconds / 1e3, "µs"),
        size if size < 999.5e6 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    format!("{}\u{a0}{unit}", three_digits(value))
}

/// How many times as much.
pub(crate) fn ratio(value: f64) -> String {
    format!("{}×", three_digits(value))
}

/// The change from one value to another in per cent: `+50 %`; in words where a percentage says nothing.
pub(crate) fn change(from: f64, to: f64) -> String {
    if from == to {
        return "same".into();
    }
    if from == 0.0 {
        return "from none".into();
    }
    let percent = (to / from - 1.0) * 100.0;
    match percent.abs() {
        size if size < 0.05 => "same".into(),
        size if percent > 900.0 && size.is_finite() => ratio(to / from),
        size => {
            let sign = if percent < 0.0 { MINUS } else { '+' };
            format!("{sign}{}\u{a0}%", decimal(size, if size < 10.0 { 1 } else { 0 }))
        }
    }
}

/// Any figure of a workload's own.
pub(crate) fn figure(value: f64) -> String {
    if value.fract() == 0.0 { decimal(value, 0) } else { short(value) }
}

/// Bytes in the binary unit that fits.
pub(crate) fn bytes(count: u64) -> String {
    let mebibytes = count as f64 / (1024.0 * 1024.0);
    let (value, unit) = if mebibytes < 1024.0 { (mebibytes, "MiB") } else { (mebibytes / 1024.0, "GiB") };
    format!("{}\u{a0}{unit}", three_digits(value))
}

/// Three digits that count, or all before the point.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size if size < 0.0995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    decimal(value, decimals)
}

/// With this many decimals; a value that rounds to zero has no sign.
fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "not a number".into();
    }
    let text = format!("{:.decimals$}", value.abs());
    let negative = value < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if negative { MINUS.to_string() } else { String::new() };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", grouped(whole))
}

/// Commas between groups of three digits.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_digits_that_mean_something() {
        for (value, wanted, label) in [
            (0.0, "0.00", "0"),
            (0.1 + 0.2, "0.30", "0.3"),
            (0.000_1, "<0.001", "<0.001"),
            (0.0042, "0.004", "0.004"),
            (3.0, "3.00", "3"),
            (15.025, "15.03", "15.03"),
            (255.96, "256.0", "256"),
            (1_234_567.8, "1,234,568", "1,234,568"),
            (-1234.0, "−1,234", "−1,234"),
        ] {
            assert_eq!((count(value).as_str(), short(value).as_str()), (wanted, label));
        }
        assert_eq!(figure(100.0), "100");
    }

    #[test]
    fn marks_of_axes_are_short() {
        for (value, wanted) in [
            (0.0, "0"),
            (0.0025, "0.0025"),
            (0.0001, "1.0e-4"),
            (2.5, "2.5"),
            (7500.0, "7,500"),
            (12_500.0, "12.5k"),
            (1_250_000.0, "1.25M"),
            (4e15, "4.0e15"),
        ] {
            assert_eq!(mark(value), wanted);
            assert!(wanted.chars().count() <= 6, "{wanted}");
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (value, wanted) in [
            (742.0, "742\u{a0}ns"),
            (999.7, "1.00\u{a0}µs"),
            (25_069.0, "25.1\u{a0}µs"),
            (3_830_000.0, "3.83\u{a0}ms"),
            (2.5e12, "2,500\u{a0}s"),
            (0.0, "0\u{a0}ns"),
        ] {
            assert_eq!(time(value), wanted);
        }
    }

    #[test]
    fn changes_are_percentages_where_those_say_something() {
        for (from, to, wanted) in [
            (6.0, 3.0, "−50\u{a0}%"),
            (3.0, 3.1, "+3.3\u{a0}%"),
            (3.0, 3.000_001, "same"),
            (0.0, 0.0, "same"),
            (0.0, 4.0, "from none"),
            (0.01, 4.0, "400×"),
        ] {
            assert_eq!(change(from, to), wanted);
        }
    }

    #[test]
    fn what_is_no_number_does_not_look_like_one() {
        assert_eq!(count(f64::NAN), "not a number");
        assert_eq!(whole(1_000), "1,000");
        assert_eq!(bytes(512 * 1024 * 1024), "512\u{a0}MiB");
    }
}
