//! What is to be predicted: workloads, numbers of CPUs, policies, and what everything costs.

use std::path::Path;

use machine::cost::{Case, NAMES, Parameters, Platform, Policy, WORKLOADS, Workload};

use crate::command_line::Predict;
use crate::failure::Failure;

/// The largest machine.
const MOST_CPUS: u32 = 512;
/// The word that asks for a list instead.
const HELP: &str = "help";

/// `--cpus`: rising, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<u32>);

/// Reads numbers with commas between them.
///
/// # Errors
/// A sentence that names what is no number of CPUs.
pub(crate) fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let number = |word: &str| match word.parse::<u32>() {
        Ok(cpus) if (1..=MOST_CPUS).contains(&cpus) => Ok(cpus),
        _ if word.is_empty() => Err("a number of CPUs is missing between the commas".to_owned()),
        _ => Err(format!("'{word}' is no number of CPUs; there can be 1 to {MOST_CPUS}, such as 2,64,512")),
    };
    let mut cpus = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

/// Everything that was chosen.
pub(super) struct Selection {
    pub(super) platform: Platform,
    pub(super) parameters: Parameters,
    pub(super) policies: Vec<Policy>,
    /// A workload's cases together, each by rising CPUs.
    pub(super) cases: Vec<Case>,
    pub(super) seed: u64,
}

impl Selection {
    /// # Errors
    /// A usage failure that names the word that makes no sense.
    pub(super) fn new(options: &Predict) -> Result<Self, Failure> {
        let platform = platform(&options.machine)?;
        let mut parameters = Parameters::START;
        platform.apply(&mut parameters);
        if let Some(file) = &options.parameters {
            override_from(file, &mut parameters)?;
        }
        let mut policies: Vec<Policy> = Vec::new();
        for name in &options.policy {
            let policy = policy(name)?;
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        let cases = cases(&options.names, &options.cpus.0)?;
        Ok(Selection { platform, parameters, policies, cases, seed: options.seed })
    }
}

fn platform(name: &str) -> Result<Platform, Failure> {
    let names = Platform::ALL.map(Platform::name);
    let found = Platform::ALL.into_iter().find(|platform| platform.name() == name);
    found.ok_or_else(|| {
        Failure::usage(format!("there is no machine '{name}' to predict for; there are {}", names.join(", ")))
    })
}

fn policy(name: &str) -> Result<Policy, Failure> {
    Policy::find(name).ok_or_else(|| {
        Failure::usage(format!(
            "there is no policy '{name}'; there are {}, and ceasefire-without-MECHANISM",
            NAMES.join(", ")
        ))
    })
}

/// The cases of these workloads, or of all, in the table's order.
fn cases(names: &[String], cpus: &[u32]) -> Result<Vec<Case>, Failure> {
    if let Some(unknown) = names.iter().find(|name| Workload::find(name).is_none()) {
        let known = WORKLOADS.map(|workload| workload.name).join(", ");
        return Err(Failure::usage(format!("the model has no workload '{unknown}'; it has {known}")));
    }
    let mut cases = Vec::new();
    for workload in
        WORKLOADS.iter().filter(|workload| names.is_empty() || names.iter().any(|name| name == workload.name))
    {
        let all: Vec<Case> = cpus.iter().flat_map(|cpus| workload.cases(*cpus as usize)).collect();
        let mut families: Vec<String> = Vec::new();
        for case in &all {
            let family = family(case);
            if !families.contains(&family) {
                families.push(family);
            }
        }
        for wanted in families {
            cases.extend(all.iter().filter(|case| family(case) == wanted).cloned());
        }
    }
    match cases.is_empty() {
        true => Err(Failure::usage("nothing that was asked for makes sense on so few CPUs")),
        false => Ok(cases),
    }
}

/// A case's name without its number: what stays the same when CPUs are added.
fn family(case: &Case) -> String {
    super::document::family(case.name.as_deref().unwrap_or("")).to_owned()
}

/// Takes over the values of a file.
fn override_from(file: &Path, parameters: &mut Parameters) -> Result<(), Failure> {
    let refuse = |why: String| Failure::usage(format!("cannot use {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    let values: toml::Table =
        toml::from_str(&text).map_err(|error| refuse(format!("it is not TOML ({})", error.message())))?;
    for (name, value) in values {
        let number = match value {
            toml::Value::Float(number) => number,
            toml::Value::Integer(number) => number as f64,
            _ => return Err(refuse(format!("'{name}' is no number"))),
        };
        parameters.set(&name, number).map_err(refuse)?;
    }
    Ok(())
}

/// A list that was asked for by the word `help` in place of a name.
pub(super) fn help(options: &Predict) -> Option<String> {
    let is_asked = |names: &[String]| names.iter().any(|name| name == HELP);
    if is_asked(&options.names) {
        let rows = WORKLOADS.map(|workload| format!("{:20} {}\n", workload.name, workload.operation));
        return Some(rows.concat());
    }
    if is_asked(&options.policy) {
        let rows = NAMES.map(|name| {
            let policy = Policy::find(name).map_or("", |policy| policy.meaning);
            format!("{name:20} {policy}\n")
        });
        let further =
            "ceasefire-without-X  ceasefire without the mechanism X, or 'vanilla' for all of them.\n";
        return Some(rows.concat() + further);
    }
    if options.parameters.as_deref() == Some(Path::new(HELP)) {
        let values = Parameters::START.values();
        let rows = values.iter().zip(Parameters::DESCRIPTIONS).map(|((name, value), described)| {
            let (basis, source, meaning) =
                (described.basis.name(), described.source, described.meaning.trim());
            format!("# {meaning} ({}; {basis}: {source})\n{name} = {value:?}\n", described.unit)
        });
        return Some(rows.collect());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_numbers_up_to_512() {
        assert_eq!(parse_cpus("512,2,2").unwrap().0, [2, 512]);
        for wrong in ["", "0", "513", "2,,4", "many"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_workloads_cases_stand_together() {
        let cases = cases(&["private-dontneed".into()], &[2, 4]).unwrap();
        let names: Vec<_> = cases.iter().map(|case| case.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["alone-2", "alone-4", "all-2", "all-4"]);
        assert!(super::cases(&["membarrier-loop".into()], &[1]).is_err());
    }

    #[test]
    fn what_help_lists_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("parameters.toml");
        let values = Parameters::START.values();
        let text: String = values.iter().map(|(name, value)| format!("{name} = {value:?}\n")).collect();
        std::fs::write(&file, text).unwrap();
        let mut parameters = Parameters { gigahertz: 1.0, ..Parameters::START };
        override_from(&file, &mut parameters).unwrap();
        assert_eq!(parameters, Parameters::START);
        for (text, words) in [
            ("gigahertz = 0", "from 0.1 to 10"),
            ("gigahertz = 'fast'", "no number"),
            ("warp = 1", "no parameter 'warp'"),
            ("gigahertz", "not TOML"),
        ] {
            std::fs::write(&file, text).unwrap();
            let failure = override_from(&file, &mut parameters).unwrap_err();
            assert!(
                failure.status() == 2 && failure.sentence().unwrap().contains(words),
                "{text}: {failure:?}"
            );
        }
    }
}
