//! `compare` from outside, with guests. `./ceasefire test compare` runs these. Where Linux cannot be had its part is skipped, with the
//! reason; what our side alone must show is not.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

const BUSYBOX: &str = "/bin/busybox";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ceasefire"));
    command.arg("compare").args(arguments).stdin(Stdio::null());
    command
}

fn compare(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "boots guests: ./ceasefire test compare"]
fn both_sides_are_shown_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result.json");
    let script = "echo hello; echo oops >&2; exit 7";
    let output = compare(&[
        "--runs",
        "1",
        "--cpus",
        "1",
        "--json",
        result.to_str().unwrap(),
        "--",
        BUSYBOX,
        "sh",
        "-c",
        script,
    ]);
    let errors = text(&output.stderr);
    assert_eq!(text(&output.stdout), "hello\n", "{errors}");
    for part in ["oops", "Ceasefire", "1 run on Ceasefire", "interrupts of all CPUs", "elapsed"] {
        assert!(errors.contains(part), "no '{part}' in: {errors}");
    }
    let saved: serde_json::Value = serde_json::from_slice(&fs::read(&result).unwrap()).unwrap();
    assert_eq!(saved["schema"], "ceasefire.result/1");
    assert_eq!((&saved["runs"][0]["system"], &saved["runs"][0]["pair"]), (&"ceasefire".into(), &0.into()));
    if errors.contains("LINUX IS ABSENT") {
        assert_eq!(saved["absent"][0]["system"], "linux");
        return eprintln!("Linux's part skipped: {}", saved["absent"][0]["reason"]);
    }
    assert_eq!(output.status.code(), Some(7), "{errors}");
    assert!(errors.contains("Both runs print the same and end with status 7."), "{errors}");
    assert!(errors.contains("Linux, traced") && errors.contains("on either side"), "{errors}");
    assert_eq!((&saved["runs"][1]["system"], &saved["runs"][1]["pair"]), (&"linux".into(), &0.into()));
    assert_eq!(
        (&saved["runs"][2]["traced"], &saved["runs"][2]["pair"]),
        (&true.into(), &serde_json::Value::Null)
    );
}

#[test]
#[ignore = "boots guests: ./ceasefire test compare"]
fn a_linux_that_does_not_boot_is_absent_and_ours_is_shown() {
    // All that a bzImage's header must have (boot protocol 2.15), and nothing that could run.
    let mut image = vec![0; 8192];
    image[0x1f1] = 1;
    image[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&[0x0f, 0x02]);
    image[0x211] = 1;
    image[0x236] = 0x7f;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bzImage");
    fs::write(&path, image).unwrap();
    let output = compare(&[
        "--runs",
        "2",
        "--cpus",
        "1",
        "--timeout",
        "20s",
        "--linux",
        path.to_str().unwrap(),
        "--",
        BUSYBOX,
        "true",
    ]);
    let errors = text(&output.stderr);
    assert!(errors.contains("LINUX IS ABSENT: "), "{errors}");
    assert!(
        errors.contains("2 runs on Ceasefire") && errors.contains("There is nothing to compare with."),
        "{errors}"
    );
    assert!(matches!(output.status.code(), Some(3 | 4)), "{:?}: {errors}", output.status);
}

#[test]
#[ignore = "boots guests: ./ceasefire test compare"]
fn a_program_without_end_gets_one_sentence() {
    let output =
        compare(&["--cpus", "1", "--timeout", "6s", "--", BUSYBOX, "sh", "-c", "while :; do :; done"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    let expected = "ceasefire: on Ceasefire the program did not end within 6 s (--timeout)";
    // Before it there may only be notes on what is built and fetched.
    assert_eq!(errors.lines().last(), Some(expected), "{errors}");
    assert!(!errors.contains("RIP") && !errors.contains("log"), "{errors}");
}

#[test]
#[ignore = "boots guests: ./ceasefire test compare"]
fn an_interruption_shows_what_was_measured() {
    let mut child = command(&["--cpus", "1", "--runs", "50", "--", BUSYBOX, "echo", "hello"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "hello\n");
    // The first run is over; a later one has begun.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{errors}");
    for part in ["INCOMPLETE: it was interrupted", "on Ceasefire", "interrupts of all CPUs", "elapsed"] {
        assert!(errors.contains(part), "no '{part}' in: {errors}");
    }
}
