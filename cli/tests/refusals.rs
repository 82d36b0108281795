//! What the command refuses, with one sentence and its status, before anything is built or started.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn ceasefire(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ceasefire"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().expect("the command starts")
}

/// A folder with files that are almost programs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let add = |name: &str, mode: u32, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut elf = [0; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    add("plain", 0o644, &elf);
    add("text", 0o755, b"hello\n");
    add("script", 0o755, b"#!/no/such/shell -e\n");
    add("truncated", 0o755, b"\x7fELF\x02\x01\x01");
    let mut small = elf;
    small[4] = 1;
    add("32-bit", 0o755, &small);
    let mut other = elf;
    other[18] = 183;
    add("arm", 0o755, &other);
    let mut object = elf;
    (object[16], object[18]) = (1, 62);
    add("object", 0o755, &object);
    let mut endless = elf;
    (endless[16], endless[18], endless[32], endless[54], endless[56]) = (2, 62, 64, 56, 200);
    add("endless", 0o755, &endless);
    fs::create_dir(folder.path().join("folder")).unwrap();
    folder
}

/// Refused with status 2 and one line that has all of `words`.
fn assert_refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let output = ceasefire(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    assert!(message.starts_with("ceasefire: "), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    for word in words {
        assert!(message.contains(word), "{arguments:?}: no '{word}' in: {message}");
    }
}

#[test]
fn programs_that_cannot_run() {
    let folder = folder();
    for (program, words) in [
        ("./missing", &["missing", "no such file"][..]),
        ("surely-not-in-path", &["no such program in PATH"]),
        ("text", &["no such program in PATH", "./text"]),
        ("", &["without a name"]),
        ("./folder", &["is a folder"]),
        ("./plain", &["not executable"]),
        ("./text", &["not an x86-64 ELF"]),
        ("./script", &["script for /no/such/shell", "not on this host"]),
        ("./truncated", &["ELF"]),
        ("./32-bit", &["32-bit"]),
        ("./arm", &["another processor"]),
        ("./object", &["object file"]),
        ("./endless", &["damaged"]),
        ("/dev/null", &["not a regular file"]),
    ] {
        assert_refused(folder.path(), &["run", "--", program], words);
    }
}

#[test]
fn flags_that_make_no_sense() {
    let folder = folder();
    for (arguments, words) in [
        (&["--bogus", "x"][..], &["--bogus"][..]),
        (&[], &["<PROGRAM>"]),
        (&["--cpus", "0", "x"], &["--cpus", "1..=64"]),
        (&["--cpus", "65", "x"], &["--cpus", "1..=64"]),
        (&["--cpus", "-1", "x"], &["-1"]),
        (&["--memory", "12", "x"], &["--memory", "512M"]),
        (&["--memory", "1M", "x"], &["--memory", "between"]),
        (&["--machine", "pc", "x"], &["--machine", "q35", "microvm"]),
        (&["--without", "eager", "x"], &["eager", "lazy", "vanilla"]),
        (&["--with", "eager", "x"], &["eager", "clean", "vanilla"]),
        (&["--with", "vanilla", "x"], &["vanilla", "--without"]),
        (&["--with", "clean", "--without", "clean", "x"], &["clean", "both"]),
        (&["--seed", "1", "x"], &["--seed", "--deterministic"]),
        (&["--deterministic", "--mode", "single", "x"], &["--deterministic", "--mode"]),
        (&["--timeout", "10", "x"], &["--timeout", "90s"]),
        (&["--env", "NAME", "--", "/bin/busybox"], &["--env", "NAME=VALUE"]),
        (&["--file", "/no/such", "--", "/bin/busybox"], &["/no/such"]),
        (&["--file", "./plain:/bin", "--", "/bin/busybox"], &["/bin", "file"]),
        (&["--json", "no/such/folder/x", "--", "/bin/busybox"], &["no folder no/such/folder"]),
        (&["--json", "folder", "--", "/bin/busybox"], &["is a folder"]),
        (&["--kernel-log", "no/such/x", "--", "/bin/busybox"], &["no/such/x"]),
        (&["--kernel-image", "no/such/x", "--", "/bin/busybox"], &["no/such/x"]),
    ] {
        let arguments: Vec<_> = std::iter::once("run").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
    }
    for (arguments, words) in [
        (&["--linux", "no/such", "--", "/bin/busybox"][..], &["no/such"][..]),
        (&["--linux", "folder", "--", "/bin/busybox"], &["folder", "it is a folder"]),
        (&["--linux", "text", "--", "/bin/busybox"], &["text", "not a bzImage"]),
        (&["--linux", "plain", "--", "/bin/busybox"], &["plain", "ELF", "bzImage"]),
        (&["--kernel-image", "plain", "--", "/bin/busybox"], &["--linux PATH"]),
        (&["--without", "lazy", "--", "/bin/busybox"], &["--without"]),
        (&["--with", "clean", "--", "/bin/busybox"], &["--with"]),
        (&["--deterministic", "--cpus", "2", "--", "/bin/busybox"], &["--cpus 1"]),
    ] {
        let arguments: Vec<_> = std::iter::once("linux").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
    }
    assert_refused(folder.path(), &["walk"], &["walk"]);
    assert_refused(folder.path(), &["test", "surely-no-test-has-this-name"], &["surely-no-test"]);
}

#[test]
fn comparisons_that_make_no_sense() {
    let folder = folder();
    for (arguments, words) in [
        (&["--runs", "0", "x"][..], &["--runs", "1..=100"][..]),
        (&[], &["<PROGRAM>"]),
        (&["--linux", "no/such/x", "--", "/bin/busybox"], &["no/such/x"]),
        (&["--linux", "plain", "--", "/bin/busybox"], &["plain", "bzImage"]),
        (&["--without", "eager", "x"], &["eager", "vanilla"]),
        (&["--json", "folder", "--", "/bin/busybox"], &["is a folder"]),
        (&["--html", "no/such/folder/x", "--", "/bin/busybox"], &["no folder no/such/folder"]),
        (&["--env", "NAME", "--", "/bin/busybox"], &["--env", "NAME=VALUE"]),
        (&["--", "./missing"], &["missing", "no such file"]),
        (&["--", "./script"], &["script for /no/such/shell", "not on this host"]),
    ] {
        let arguments: Vec<_> = std::iter::once("compare").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
    }
}

#[test]
fn measurements_that_cannot_be() {
    let folder = folder();
    for (arguments, words) in [
        (&["mprotect-flp"][..], &["'mprotect-flp'", "did you mean mprotect-flip?", "dontneed-hop"][..]),
        // A workload that only checks measures nothing.
        (&["litmus"], &["no workload 'litmus'"]),
        (&["--cpus", "0"], &["--cpus", "'0'", "1 to 64"]),
        (&["--cpus", "65"], &["--cpus", "'65'", "1 to 64"]),
        (&["--cpus", "2,,4"], &["--cpus", "missing"]),
        (&["--cpus", "x"], &["--cpus", "'x'"]),
        (&["--json", "no/such/folder/x"], &["no folder no/such/folder"]),
        (&["--html", "folder"], &["is a folder"]),
        (&["--json", "same", "--html", "same"], &["--json", "--html", "same"]),
        (&["--linux", "no/such/bzImage"], &["no/such/bzImage"]),
        (&["--pairs", "0"], &["--pairs", "1..=100"]),
        (&["--bogus"], &["--bogus"]),
    ] {
        let arguments: Vec<_> = std::iter::once("bench").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
        assert!(!folder.path().join("ceasefire-bench.json").exists(), "{arguments:?}");
    }
}

#[test]
fn checks_that_make_no_sense() {
    let folder = folder();
    fs::write(folder.path().join("other.json"), r#"{"schema": "ceasefire.result/1"}"#).unwrap();
    fs::write(folder.path().join("half.json"), r#"{"schema": "ceasefire.ch"#).unwrap();
    fs::write(folder.path().join("empty.json"), r#"{"schema": "ceasefire.check/1"}"#).unwrap();
    for (arguments, words) in [
        (&["--part", "mutant"][..], &["'mutant'", "--part", "loom"][..]),
        (&["--part", "loom", "munmap"], &["'munmap'", "the part loom"]),
        (&["--quick", "--deep"], &["--quick", "--deep"]),
        (&["--jobs", "0"], &["--jobs", "1..=1024"]),
        (&["--seed", "x"], &["--seed", "'x'"]),
        (&["--shard", "1/2"], &["--json"]),
        (&["--shard", "3/2", "--json", "x"], &["--shard", "no shard 3 of 2"]),
        (&["--shard", "2", "--json", "x"], &["--shard", "2/8"]),
        (&["--json", "folder"], &["it is a folder"]),
        (&["--table", "no/such/x"], &["no folder no/such"]),
        (&["--json", "x", "--table", "x"], &["--json and --table", "same file"]),
        (&["--merge"], &["--merge"]),
        (&["--merge", "missing.json"], &["missing.json", "No such file"]),
        (&["--merge", "half.json"], &["half.json", "ends in the middle"]),
        (&["--merge", "other.json"], &["other.json", "ceasefire.result/1", "ceasefire.check/1"]),
        (&["--merge", "empty.json"], &["empty.json", "missing field"]),
        (&["--merge", "folder"], &["folder", "it is a folder"]),
        (&["--merge", "/dev/zero"], &["/dev/zero", "not a regular file"]),
        (&["--quick", "--merge", "empty.json"], &["--quick", "--merge"]),
        (&["--replay", "x", "munmap"], &["--replay", "SCENARIO"]),
    ] {
        let arguments: Vec<_> = std::iter::once("check").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
        assert!(!folder.path().join("x").exists(), "{arguments:?}");
    }
}

#[test]
fn an_older_result_survives_a_refusal() {
    let folder = folder();
    let result = folder.path().join("result.json");
    fs::write(&result, "older").unwrap();
    let output = ceasefire(folder.path(), &["run", "--json", "result.json", "--", "./text"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&result).unwrap(), "older");
}

/// A result that was kept for the tests of the page.
fn kept(name: &str) -> String {
    format!("{}/tests/results/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn files_that_make_no_page() {
    let folder = folder();
    let good = kept("compare.json");
    let whole = fs::read(&good).unwrap();
    fs::write(folder.path().join("half.json"), &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.path().join("empty.json"), "").unwrap();
    fs::write(folder.path().join("other.json"), r#"{"schema": "other/1"}"#).unwrap();
    fs::write(folder.path().join("page.html"), "older").unwrap();
    for (arguments, words) in [
        (&[][..], &["<FILES>"][..]),
        (&["missing.json"], &["missing.json", "No such file"]),
        (&[&good, "missing.json"], &["missing.json", "No such file"]),
        (&["half.json"], &["half.json", "ends in the middle"]),
        (&["empty.json"], &["empty.json", "ends in the middle"]),
        (&["other.json"], &["other.json", "other/1", "ceasefire.result/1"]),
        (&["text"], &["text", "not JSON"]),
        (&["folder"], &["folder", "it is a folder"]),
        (&["/dev/zero"], &["/dev/zero", "not a regular file"]),
        (&[&good, "--html", "folder"], &["folder", "it is a folder"]),
        (&[&good, "--html", "no/such/page.html"], &["no folder no/such"]),
        (&[&good, "--html", "/dev/null"], &["/dev/null", "not a regular file"]),
        (&[&good, "--html", &good], &["would replace the result", "--html"]),
    ] {
        let arguments: Vec<_> = std::iter::once("report").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
    }
    assert_refused(folder.path(), &["report", "--html", "page.html", "half.json"], &["half.json"]);
    assert_eq!(fs::read_to_string(folder.path().join("page.html")).unwrap(), "older");
    assert_eq!(fs::read(&good).unwrap(), whole);
}

#[test]
fn predictions_that_make_no_sense() {
    let folder = folder();
    fs::write(folder.path().join("wrong.toml"), "warp = 9").unwrap();
    fs::write(folder.path().join("negative.toml"), "deliver = -1").unwrap();
    for (arguments, words) in [
        (&["no-such-workload"][..], &["no workload 'no-such-workload'", "tlb-flush2"][..]),
        (&["--cpus", "0"], &["'0' is no number of CPUs"]),
        (&["--cpus", "513"], &["'513'", "512"]),
        (&["--cpus", "2,,4"], &["missing between the commas"]),
        (&["membarrier-loop", "--cpus", "1"], &["so few CPUs"]),
        (&["--policy", "windows"], &["no policy 'windows'", "linux-2015"]),
        (&["--policy", "ceasefire-without-luck"], &["no policy 'ceasefire-without-luck'"]),
        (&["--machine", "toaster"], &["no machine 'toaster'", "firecracker"]),
        (&["--parameters", "missing.toml"], &["missing.toml", "No such file"]),
        (&["--parameters", "text"], &["text", "not TOML"]),
        (&["--parameters", "wrong.toml"], &["no parameter 'warp'"]),
        (&["--parameters", "negative.toml"], &["'deliver' is -1", "must be from 0"]),
        (&["--json", "folder"], &["folder", "it is a folder"]),
        (&["--html", "no/such.html"], &["no folder no"]),
    ] {
        let arguments: Vec<_> = std::iter::once("predict").chain(arguments.iter().copied()).collect();
        assert_refused(folder.path(), &arguments, words);
    }
    let prediction = kept("prediction.json");
    for (arguments, words) in [
        (&[&prediction, &kept("compare.json")][..], &["page of their own"][..]),
        (&[&prediction, &prediction], &["page of their own"]),
    ] {
        let arguments: Vec<_> =
            std::iter::once("report").chain(arguments.iter().map(|path| path.as_str())).collect();
        assert_refused(folder.path(), &arguments, words);
    }
    assert_refused(
        folder.path(),
        &["report", &prediction, "--html", &prediction],
        &["would replace the predictions"],
    );
}

#[test]
fn a_page_stands_beside_its_result() {
    let folder = folder();
    fs::copy(kept("compare.json"), folder.path().join("result.json")).unwrap();
    let output = ceasefire(folder.path(), &["report", "result.json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "result.html\n");
    let page = fs::read_to_string(folder.path().join("result.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
}

#[test]
fn the_mechanisms_are_explained_on_request() {
    let output = ceasefire(Path::new("/"), &["run", "--without", "help", "/bin/busybox"]);
    let message = String::from_utf8(output.stderr).unwrap();
    for name in [
        "lazy",
        "generations",
        "ranged",
        "promotion",
        "gather",
        "batch",
        "moves",
        "mode",
        "unused",
        "vanilla",
        "clean",
    ] {
        assert!(message.lines().any(|line| line.trim_start().starts_with(name)), "{message}");
    }
}

#[test]
fn what_the_sanitizer_cannot_watch() {
    let folder = folder();
    assert_refused(
        folder.path(),
        &["linux", "--sanitize", "--", "/bin/busybox", "true"],
        &["Linux declares nothing"],
    );
    // A kernel that is none of ours.
    assert_refused(
        folder.path(),
        &["run", "--sanitize", "--kernel-image", "./object", "--", "/bin/busybox", "true"],
        &["--sanitize", "declares nothing"],
    );
}
