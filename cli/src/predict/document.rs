//! The form in which predictions are saved: `ceasefire.prediction/1`.
//!
//! Its records have the fields of measured ones (`crate::result`) as far as they make sense, and `system` names the policy. It is a form of its
//! own, and each record says `predicted`, so that nobody takes a prediction for a measurement. `docs/guide/predict.md` explains it.

use std::collections::BTreeMap;
use std::path::Path;

use machine::cost::{Case, Outcome, Parameters, Policy, WORKLOADS};
use serde::{Deserialize, Serialize};

use super::selection::Selection;
use crate::failure::Failure;
use crate::result::{Versions, read_form};

/// Name and version of the form.
const SCHEMA: &str = "ceasefire.prediction/1";

/// All predictions of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) schema: String,
    /// Which model it was: the versions of this program.
    pub(crate) versions: Versions,
    /// What the CPUs are.
    pub(crate) machine: String,
    pub(crate) seed: u64,
    /// What everything cost.
    pub(crate) parameters: Vec<Parameter>,
    /// Who was compared, in the tables' order.
    pub(crate) policies: Vec<System>,
    /// What an operation is, by workload, in the tables' order.
    pub(crate) workloads: Vec<Operation>,
    pub(crate) records: Vec<Record>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) meaning: String,
    /// `cited`, `derived`, `assumed`, `fitted`, or `chosen` by whoever asked.
    pub(crate) basis: String,
    pub(crate) source: String,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) meaning: String,
    /// Empty, `UNSOUND` or `not built`.
    pub(crate) mark: String,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) workload: String,
    pub(crate) operation: String,
}

/// One case under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) workload: String,
    pub(crate) case: Option<String>,
    /// The policy.
    pub(crate) system: String,
    /// Always true.
    pub(crate) predicted: bool,
    pub(crate) seed: u64,
    pub(crate) cpus: u32,
    pub(crate) threads: u32,
    pub(crate) operations: u64,
    pub(crate) interrupts_per_operation: f64,
    pub(crate) bound_per_operation: Option<f64>,
    pub(crate) nanoseconds_per_operation: f64,
    /// Further figures by name.
    pub(crate) figures: BTreeMap<String, f64>,
}

impl Record {
    pub(super) fn new(case: &Case, policy: &Policy, seed: u64, outcome: &Outcome) -> Self {
        let [user, kernel, idle] = outcome.received.map(|count| count as f64);
        let throughput = case.actors as f64 * 1e9 / outcome.nanoseconds_per_operation;
        let figures = [
            ("wait_median_ns", outcome.wait_median),
            ("wait_99_ns", outcome.wait_most),
            ("interrupted_share", outcome.interrupted_share),
            ("operations_per_second", throughput),
            ("received_user", user),
            ("received_kernel", kernel),
            ("received_idle", idle),
            ("merged", outcome.merged as f64),
            ("broadcasts", outcome.broadcasts as f64),
            ("put_off", outcome.put_off as f64),
        ];
        Record {
            workload: case.workload.to_owned(),
            case: case.name.clone(),
            system: policy.name.clone(),
            predicted: true,
            seed,
            cpus: case.cpus as u32,
            threads: case.threads as u32,
            operations: outcome.operations,
            interrupts_per_operation: outcome.interrupts_per_operation,
            bound_per_operation: case.bound,
            nanoseconds_per_operation: outcome.nanoseconds_per_operation,
            figures: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// The case without its number, which is the same for all numbers of CPUs.
    pub(crate) fn family(&self) -> &str {
        family(self.case.as_deref().unwrap_or(""))
    }
}

/// A case's name without the number at its end.
pub(super) fn family(name: &str) -> &str {
    let start = name.trim_end_matches(|character: char| character.is_ascii_digit());
    if start.ends_with('-') { start.trim_end_matches('-') } else { name }
}

/// The records of one case, by rising CPUs and then in the policies' order.
pub(crate) struct Series<'a> {
    pub(crate) workload: &'a str,
    pub(crate) family: &'a str,
    pub(crate) records: Vec<&'a Record>,
}

impl Series<'_> {
    /// The numbers of CPUs.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.records.iter().map(|record| record.cpus).collect();
        cpus.dedup();
        cpus
    }

    /// What was predicted for that policy there.
    pub(crate) fn at(&self, cpus: u32, system: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.cpus == cpus && record.system == system).copied()
    }
}

impl Document {
    pub(super) fn new(selection: &Selection, records: Vec<Record>) -> Self {
        let values = selection.parameters.values().into_iter().zip(Parameters::START.values());
        let parameters =
            values.zip(Parameters::DESCRIPTIONS).map(|(((name, value), (_, start)), described)| Parameter {
                name: name.to_owned(),
                value,
                unit: described.unit.to_owned(),
                meaning: described.meaning.trim().to_owned(),
                basis: if value == start { described.basis.name() } else { "chosen" }.to_owned(),
                source: described.source.to_owned(),
            });
        let policies = selection.policies.iter().map(|policy| System {
            name: policy.name.clone(),
            meaning: policy.meaning.to_owned(),
            mark: policy.mark().to_owned(),
        });
        let used =
            WORKLOADS.iter().filter(|workload| records.iter().any(|record| record.workload == workload.name));
        let workloads = used.map(|workload| Operation {
            workload: workload.name.to_owned(),
            operation: workload.operation.to_owned(),
        });
        Document {
            schema: SCHEMA.to_owned(),
            versions: Versions::this(),
            machine: selection.platform.name().to_owned(),
            seed: selection.seed,
            parameters: parameters.collect(),
            policies: policies.collect(),
            workloads: workloads.collect(),
            records,
        }
    }

    /// The records by case.
    pub(crate) fn series(&self) -> Vec<Series<'_>> {
        let chunks = self
            .records
            .chunk_by(|one, next| (&one.workload, one.family()) == (&next.workload, next.family()));
        chunks
            .map(|chunk| Series {
                workload: &chunk[0].workload,
                family: chunk[0].family(),
                records: chunk.iter().collect(),
            })
            .collect()
    }
}

/// Whether a file says of itself that it holds predictions. Whatever else is wrong with it is for those who read it.
pub(crate) fn is_prediction(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let text = if is_file { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
    let value: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    value.is_some_and(|value| value.get("schema").and_then(serde_json::Value::as_str) == Some(SCHEMA))
}

/// Predictions that were saved.
///
/// # Errors
/// A usage failure of one sentence when the file is not as the form says.
pub(crate) fn read(path: &Path) -> Result<Document, Failure> {
    let document: Document = read_form(path, SCHEMA)?;
    match document.policies.is_empty() || document.records.iter().any(|record| !record.predicted) {
        true => {
            Err(Failure::usage(format!("cannot use {}: it does not hold predictions only", path.display())))
        }
        false => Ok(document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_a_name_without_its_number() {
        assert_eq!(family("threads-8"), "threads");
        assert_eq!(family("anonymous-threads-16"), "anonymous-threads");
        assert_eq!(family("every"), "every");
        assert_eq!(family(""), "");
    }
}
