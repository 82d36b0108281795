//! `ceasefire doctor`: what this machine has, what it lacks, what that is for and how to get it. Changes nothing.

use std::process::{Command, ExitCode};

use crate::failure::Failure;
use crate::project::{self, CoreLibrary};
use crate::qemu;
use crate::tables;

/// Without it nothing runs, or only some of the tests cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Required,
    ForSomeTests,
}

struct Finding {
    what: &'static str,
    need: Need,
    /// A version or a path; what to do when missing.
    found: Result<String, &'static str>,
}

/// Prints the findings; status 0 when programs can be run, 4 when something required is missing.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let findings = findings();
    let mut table = tables::plain(&["", "found", "what to do"]);
    for finding in &findings {
        let (found, remedy) = match &finding.found {
            Ok(found) => (found.as_str(), String::new()),
            Err(remedy) if finding.need == Need::Required => ("missing", (*remedy).to_owned()),
            Err(remedy) => ("missing", format!("{remedy} (only some tests need it)")),
        };
        table.add_row([finding.what, found, &remedy]);
    }
    println!("{}", tables::lines(&table));
    let missing =
        findings.iter().filter(|finding| finding.need == Need::Required && finding.found.is_err()).count();
    println!();
    if missing == 0 {
        println!("Ready: ./ceasefire run -- PROGRAM runs a program.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("Not ready: as root on Debian, ./ceasefire run installs what is missing, and says so first.");
    Ok(ExitCode::from(4))
}

fn findings() -> Vec<Finding> {
    use Need::{ForSomeTests, Required};
    let tool = |what, need, program, argument, remedy| Finding {
        what,
        need,
        found: answer(program, argument).ok_or(remedy),
    };
    let mut findings = vec![
        tool("Rust compiler", Required, "rustc", "--version", "apt-get install rustc-web, or rustup"),
        tool("cargo", Required, "cargo", "--version", "apt-get install cargo-web, or rustup"),
        Finding { what: "kernel's target", need: Required, found: kernel_target() },
        tool("C compiler", Required, "cc", "--version", "apt-get install gcc libc6-dev"),
        Finding {
            what: "emulator",
            need: Required,
            found: qemu::version().ok_or("apt-get install qemu-system-x86"),
        },
        tool("musl C compiler", ForSomeTests, "musl-gcc", "--version", "apt-get install musl-tools"),
        tool("Go", ForSomeTests, "go", "version", "apt-get install golang-go"),
        tool(
            "browser",
            ForSomeTests,
            "chromium",
            "--version",
            "apt-get install --no-install-recommends chromium",
        ),
        tool("BusyBox", ForSomeTests, "/bin/busybox", "--help", "apt-get install busybox-static"),
    ];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let advice = format!("{cores} (guests with more CPUs take turns on one, unless --mode parallel)");
    findings.push(Finding { what: "host cores", need: Required, found: Ok(advice) });
    findings
}

fn kernel_target() -> Result<String, &'static str> {
    const REMEDY: &str = "rustup target add x86_64-unknown-none, or apt-get install rust-web-src lld";
    let sysroot = answer("rustc", "--print=sysroot").ok_or(REMEDY)?;
    let libraries = std::path::Path::new(&sysroot).join("lib/rustlib");
    match CoreLibrary::chosen() {
        CoreLibrary::Packaged if libraries.join(project::KERNEL_TARGET).is_dir() => {
            Ok(project::KERNEL_TARGET.into())
        }
        CoreLibrary::FromSource => Ok(format!("{}, core library built from source", project::KERNEL_TARGET)),
        CoreLibrary::Packaged => Err(REMEDY),
    }
}

/// The first line that a program answers.
fn answer(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).current_dir(project::root()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}
