//! `--without` and `--with`: names of mechanisms, as the `coherence` library knows them.

use coherence::{Mechanism, Switches};

use crate::failure::Failure;

/// The name for all mechanisms at once that are on by default.
const ALL: &str = "vanilla";

/// The mechanisms that are on by default.
pub(crate) fn usual() -> impl Iterator<Item = &'static str> {
    let on = |mechanism: &Mechanism| Switches::DEFAULT.has(*mechanism);
    Mechanism::ALL.into_iter().filter(on).map(Mechanism::name)
}

/// The names in `given`, each once and in the library's order; `vanilla` becomes all that are on by default.
///
/// # Errors
/// A usage failure that lists the mechanisms, when a name is unknown or `help`.
pub(crate) fn parse(given: &[String]) -> Result<Vec<&'static str>, Failure> {
    if given.iter().any(|name| name == "help") {
        return Err(Failure::usage(list()));
    }
    if let Some(unknown) = given.iter().find(|name| *name != ALL && Mechanism::from_name(name).is_none()) {
        let names: Vec<_> = Mechanism::ALL.iter().map(|mechanism| mechanism.name()).collect();
        return Err(Failure::usage(format!(
            "there is no mechanism '{unknown}'; there are {} and {ALL} for all of them ('--without help' explains them)",
            names.join(", ")
        )));
    }
    let all = given.iter().any(|name| name == ALL);
    let chosen = |mechanism: &Mechanism| {
        all && Switches::DEFAULT.has(*mechanism) || given.iter().any(|name| name == mechanism.name())
    };
    Ok(Mechanism::ALL
        .iter()
        .filter(|mechanism| chosen(mechanism))
        .map(|mechanism| mechanism.name())
        .collect())
}

/// What `--with` and `--without` name.
///
/// # Errors
/// As [`parse`]; and when `--with` names all, or both the same.
pub(crate) fn parse_both(
    with: &[String],
    without: &[String],
) -> Result<(Vec<&'static str>, Vec<&'static str>), Failure> {
    if with.iter().any(|name| name == ALL) {
        return Err(Failure::usage(format!("'{ALL}' is what --without names: it switches mechanisms off")));
    }
    let (with, without) = (parse(with)?, parse(without)?);
    match with.iter().find(|name| without.contains(name)) {
        Some(both) => Err(Failure::usage(format!("'{both}' cannot be both --with and --without"))),
        None => Ok((with, without)),
    }
}

/// ", with clean, without lazy", or nothing.
pub(crate) fn changed(with: &[&str], without: &[&str]) -> String {
    let part = |word: &str, names: &[&str]| match names {
        [] => String::new(),
        names => format!(", {word} {}", names.join(", ")),
    };
    part("with", with) + &part("without", without)
}

/// Every mechanism with its explanation.
fn list() -> String {
    let listed = |on: bool| {
        let those = Mechanism::ALL.into_iter().filter(move |one| Switches::DEFAULT.has(*one) == on);
        those.map(|one| format!("\n  {:12} {}", one.name(), one.explanation())).collect::<String>()
    };
    format!(
        "mechanisms that --without can switch off:{}\n  {ALL:12} all of them\nand that --with can switch on:{}",
        listed(true),
        listed(false)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Result<Vec<&'static str>, Failure> {
        parse(&given.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_are_ordered_and_each_comes_once() {
        assert_eq!(names(&["gather", "lazy", "gather"]).unwrap(), ["lazy", "gather"]);
        assert_eq!(names(&["vanilla"]).unwrap(), usual().collect::<Vec<_>>());
        assert_eq!(usual().count() + 2, Mechanism::ALL.len());
        assert!(!usual().any(|name| ["clean", "sharers"].contains(&name)));
        assert!(names(&[]).unwrap().is_empty());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let failure = names(&["lazy", "eager"]).unwrap_err();
        assert_eq!(failure.status(), 2);
        let sentence = failure.sentence().unwrap();
        assert!(sentence.contains("'eager'") && sentence.contains("promotion") && !sentence.contains('\n'));
        assert!(names(&["help"]).unwrap_err().sentence().unwrap().contains("\n  ranged"));
    }

    #[test]
    fn what_is_switched_on_is_not_switched_off() {
        let both = |with: &str, without: &str| parse_both(&[with.to_owned()], &[without.to_owned()]);
        assert_eq!(both("clean", "lazy").unwrap(), (vec!["clean"], vec!["lazy"]));
        assert!(both("clean", "vanilla").unwrap().1.len() > 1);
        for (with, without) in [("clean", "clean"), ("vanilla", "lazy"), ("eager", "lazy")] {
            assert_eq!(both(with, without).unwrap_err().status(), 2);
        }
        assert_eq!(changed(&["clean"], &["lazy", "gather"]), ", with clean, without lazy, gather");
        assert_eq!(changed(&[], &[]), "");
    }
}
