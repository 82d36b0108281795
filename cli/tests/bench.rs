//! `bench` from outside, with guests: its counts repeat, and Ctrl-C keeps what was measured. `./ceasefire test` runs these.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Counts of several runs that differ by less are the same.
const SAME: f64 = 0.02;

fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ceasefire"));
    command.arg("bench").args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

fn result(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Interrupts for each operation, by what distinguishes a record.
fn counts(document: &Value) -> BTreeMap<String, f64> {
    let key = |record: &Value| {
        ["workload", "case", "system", "without", "mode", "cpus"]
            .map(|field| record[field].to_string())
            .join(" ")
    };
    let records = document["records"].as_array().unwrap().iter();
    records.filter_map(|record| Some((key(record), record["interrupts_per_operation"].as_f64()?))).collect()
}

#[test]
#[ignore = "boots guests: ./ceasefire test bench"]
fn counts_repeat_within_two_per_cent() {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<BTreeMap<String, f64>> = Vec::new();
    for turn in 1..=3 {
        let json = folder.path().join(format!("{turn}.json"));
        let arguments =
            ["dontneed-hop", "mprotect-flip", "--quick", "--pairs", "1", "--json", json.to_str().unwrap()];
        let output = bench(folder.path(), &arguments).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}");
        let document = result(&json);
        let linux = document["absent"].as_array().unwrap().iter().find(|absent| absent["system"] == "linux");
        if let Some(absent) = linux {
            eprintln!("skipped on Linux: {}", absent["reason"]);
        }
        all.push(counts(&document));
        let systems = if linux.is_some() { &["ceasefire"][..] } else { &["ceasefire", "linux"] };
        for system in systems {
            for workload in ["dontneed-hop", "mprotect-flip"] {
                let of_both = |key: &&String| key.contains(system) && key.contains(workload);
                assert!(all[0].keys().any(|key| of_both(&key)), "{workload} was not counted on {system}");
            }
        }
    }
    for (key, first) in &all[0] {
        for other in &all[1..] {
            let again = other[key];
            let most = (first.abs() * SAME).max(SAME);
            assert!((again - first).abs() <= most, "{key}: {first}, then {again}");
        }
    }
    assert!(folder.path().join("ceasefire-bench.html").exists());
}

#[test]
#[ignore = "boots guests: ./ceasefire test bench"]
fn an_interruption_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        bench(folder.path(), &["mprotect-flip", "--quick", "--json", "cut.json", "--html", "cut.html"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    // The runs side by side have begun or ended when the first of the next phase begins.
    assert!(lines.any(|line| line.starts_with("[3/")), "it ended before its third run");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    // Drained, so that it is not kept from writing.
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let document = result(&folder.path().join("cut.json"));
    assert!(
        document["incomplete"].as_str().unwrap().starts_with("interrupted after"),
        "{}",
        document["incomplete"]
    );
    assert!(!document["records"].as_array().unwrap().is_empty());
    assert!(folder.path().join("cut.html").exists());
}
