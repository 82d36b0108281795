//! `ceasefire predict` from outside: what it prints and writes, and that a prediction is never taken for a measurement.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn ceasefire(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ceasefire"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("the command starts")
}

/// What it prints.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = ceasefire(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SMALL: [&str; 6] =
    ["predict", "mprotect-flip", "--cpus", "2,4", "--policy", "linux,ceasefire,lazy-free"];

#[test]
fn tables_json_and_page_say_that_it_is_a_prediction() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--json", "flip.json", "--html", "flip.html"];
    let text = printed(folder.path(), &[&SMALL[..], &files].concat());
    for words in [
        "INTERRUPTS PER OPERATION, predicted",
        "TIME PER OPERATION, predicted",
        "lazy-free (UNSOUND)",
        "nobody has measured them",
    ] {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("flip.json")).unwrap()).unwrap();
    assert_eq!(json["schema"], "ceasefire.prediction/1");
    let records = json["records"].as_array().unwrap();
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["predicted"] == true));
    let count = |cpus: u64, system: &str| {
        let found = records.iter().find(|record| record["cpus"] == cpus && record["system"] == system);
        found.unwrap()["interrupts_per_operation"].as_f64().unwrap()
    };
    assert_eq!((count(4, "linux"), count(4, "ceasefire")), (6.0, 3.0));
    let page = fs::read_to_string(folder.path().join("flip.html")).unwrap();
    assert!(page.contains("Nothing on this page was measured") && page.contains("UNSOUND"));
    // The same page comes from the file.
    assert_eq!(printed(folder.path(), &["report", "flip.json", "--html", "again.html"]), "again.html\n");
    assert_eq!(fs::read_to_string(folder.path().join("again.html")).unwrap(), page);
}

#[test]
fn the_same_seed_prints_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let of_seed = |seed| {
        printed(folder.path(), &["predict", "tlb-flush2", "--cpus", "8", "--policy", "linux", "--seed", seed])
    };
    assert_eq!(of_seed("3"), of_seed("3"));
    assert_ne!(of_seed("3"), of_seed("4"));
}

#[test]
fn machines_and_parameters_change_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("slow.toml"), "deliver = 50000 # ns\n").unwrap();
    let time = |further: &[&str]| {
        let json = [&SMALL[..], further, &["--json", "out.json"]].concat();
        printed(folder.path(), &json);
        let value: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.path().join("out.json")).unwrap()).unwrap();
        value["records"][0]["nanoseconds_per_operation"].as_f64().unwrap()
    };
    let bare = time(&[]);
    assert!(time(&["--machine", "kvm"]) > bare && time(&["--machine", "firecracker"]) > bare + 50_000.0);
    assert!(time(&["--parameters", "slow.toml"]) > bare + 90_000.0);
    let text = printed(folder.path(), &[&SMALL[..], &["--parameters", "slow.toml"]].concat());
    assert!(text.contains("Other than usual: deliver = 50000."), "{text}");
}

#[test]
fn help_lists_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    assert!(printed(folder.path(), &["predict", "help"]).contains("tlb-flush2"));
    assert!(printed(folder.path(), &["predict", "--policy", "help"]).contains("Breaks D3"));
    let parameters = printed(folder.path(), &["predict", "--parameters", "help"]);
    // It is a file of parameters itself.
    fs::write(folder.path().join("all.toml"), parameters).unwrap();
    let usual = printed(folder.path(), &SMALL);
    assert_eq!(printed(folder.path(), &[&SMALL[..], &["--parameters", "all.toml"]].concat()), usual);
}
