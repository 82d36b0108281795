//! Numbers and lists as words of a sentence.

/// "no interrupts", "one interrupt", "12 interrupts".
pub(super) fn count(number: u64, thing: &str) -> String {
    match number {
        0 => format!("no {}", plural(thing)),
        1 => format!("one {thing}"),
        more => format!("{more} {}", plural(thing)),
    }
}

fn plural(thing: &str) -> String {
    let ending = if thing.ends_with("ss") || thing.ends_with("sh") { "es" } else { "s" };
    format!("{thing}{ending}")
}

/// "a", "a and b", "a, b and c".
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// How often the greater number has the lesser in it: "twice", "2.4 times".
pub(super) fn times(greater: u64, lesser: u64) -> String {
    let ratio = greater as f64 / lesser as f64;
    match format!("{ratio:.1}").as_str() {
        "2.0" => "twice".into(),
        _ if ratio >= 10.0 => format!("{ratio:.0} times"),
        short => format!("{short} times"),
    }
}

/// Broken into lines of at most `width` characters, words longer than that left whole.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let mut result = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            result.push('\n');
            column = 0;
        } else if column > 0 {
            result.push(' ');
            column += 1;
        }
        result.push_str(word);
        column += length;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_nouns_agree() {
        assert_eq!(
            [0, 1, 2].map(|number| count(number, "request")),
            ["no requests", "one request", "2 requests"]
        );
        assert_eq!([count(2, "process"), count(0, "flush")], ["2 processes", "no flushes"]);
        assert_eq!(
            [(30, 15), (24, 10), (300, 10), (19, 10)].map(|(a, b)| times(a, b)),
            ["twice", "2.4 times", "30 times", "1.9 times"]
        );
    }

    #[test]
    fn lists_end_with_and() {
        let items = |count: usize| list(&["a", "b", "c"].map(String::from)[..count]);
        assert_eq!([items(0), items(1), items(2), items(3)], ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two  three", 7), "one two\nthree");
        assert_eq!(wrap("incredible a", 5), "incredible\na");
        assert_eq!(wrap("", 5), "");
    }
}
