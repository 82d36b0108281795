//! `--without`: names of mechanisms, as the `coherence` library knows them.

use coherence::Mechanism;

use crate::failure::Failure;

/// The name for all mechanisms at once.
const ALL: &str = "vanilla";

/// The names in `given`, each once and in the library's order; `vanilla` becomes all of them.
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
    let chosen = |mechanism: &Mechanism| given.iter().any(|name| name == ALL || name == mechanism.name());
    Ok(Mechanism::ALL
        .iter()
        .filter(|mechanism| chosen(mechanism))
        .map(|mechanism| mechanism.name())
        .collect())
}

/// Every mechanism with its explanation.
fn list() -> String {
    let mut text = String::from("mechanisms that --without can switch off:");
    for mechanism in Mechanism::ALL {
        text.push_str(&format!("\n  {:12} {}", mechanism.name(), mechanism.explanation()));
    }
    text.push_str(&format!("\n  {ALL:12} all of them"));
    text
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
        assert_eq!(names(&["vanilla"]).unwrap().len(), Mechanism::ALL.len());
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
}
