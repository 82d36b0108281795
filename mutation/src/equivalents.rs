//! The mutants that no checker can notice because they do nothing wrong, each with the argument (`mutation/equivalents.toml`).
//!
//! The list cannot rot: an entry that fits no mutant, or whose mutant is noticed after all, makes the run fail.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::mutant::Mutant;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    equivalent: Vec<Equivalent>,
}

/// One entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Equivalent {
    /// The key of a mutant.
    pub(crate) mutant: String,
    /// Why it does nothing wrong.
    pub(crate) because: String,
}

/// The whole list.
#[derive(Debug)]
pub(crate) struct Equivalents(Vec<Equivalent>);

impl Equivalents {
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        if let Some(entry) = file.equivalent.iter().find(|entry| entry.because.trim().is_empty()) {
            return Err(format!("'{}' has no argument", entry.mutant));
        }
        Ok(Equivalents(file.equivalent))
    }

    /// The argument for a mutant.
    pub(crate) fn argument(&self, mutant: &Mutant) -> Option<String> {
        self.0.iter().find(|entry| entry.mutant == mutant.key).map(|entry| entry.because.clone())
    }

    /// Entries that fit no mutant.
    pub(crate) fn without_mutant<'a>(&'a self, mutants: &'a [Mutant]) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .map(|entry| entry.mutant.as_str())
            .filter(|key| !mutants.iter().any(|mutant| mutant.key == *key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_needs_an_argument() {
        let entry = |because: &str| format!("[[equivalent]]\nmutant = 'a.rs f: x'\nbecause = '{because}'\n");
        assert!(Equivalents::parse(&entry("it is so")).is_ok());
        assert!(Equivalents::parse(&entry(" ")).unwrap_err().contains("has no argument"));
        assert!(Equivalents::parse("[[equivalent]]\nmutant = 'a'").is_err());
    }

    #[test]
    fn an_entry_without_a_mutant_is_told() {
        let list = Equivalents::parse("[[equivalent]]\nmutant = 'a.rs f: x'\nbecause = 'y'").unwrap();
        assert_eq!(list.without_mutant(&[]).collect::<Vec<_>>(), ["a.rs f: x"]);
    }
}
