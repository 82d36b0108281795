//! The job files in `scale-out/`: that they are what a shell and a scheduler understand. That a real Slurm runs them is for
//! `scale-out/slurm/on-one-node` to show, which needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn scale_out() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scale-out")
}

/// Runs `submit` with an `sbatch` that only notes down what it is asked for, and answers with a number.
fn submit(folder: &Path, arguments: &[&str]) -> Output {
    let sbatch = folder.join("sbatch");
    let noting = "#!/bin/sh\necho \"$@\" >>\"$NOTES\"\nwc -l <\"$NOTES\"\n";
    fs::write(&sbatch, noting).unwrap();
    fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(scale_out().join("slurm/submit"));
    command.args(arguments).current_dir(folder).env("PATH", path).env("NOTES", folder.join("notes"));
    command.output().expect("the script starts")
}

#[test]
fn three_jobs_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let output = submit(folder.path(), &["8", "results", "--deep", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "3", "the last job's number");
    let notes = fs::read_to_string(folder.path().join("notes")).unwrap();
    let jobs: Vec<_> = notes.lines().collect();
    let results = folder.path().canonicalize().unwrap().join("results");
    assert!(jobs[0].ends_with("prepare.sbatch"), "{notes}");
    let shards = format!("shard.sbatch {} --deep --seed 3", results.display());
    assert!(jobs[1].contains("--dependency=afterok:1 --array=1-8") && jobs[1].ends_with(&shards), "{notes}");
    let merge = format!("merge.sbatch {}", results.display());
    assert!(jobs[2].contains("--dependency=afterany:2") && jobs[2].ends_with(&merge), "{notes}");
}

#[test]
fn what_cannot_be_submitted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["8"], &["0", "results"], &["-1", "results"], &["x", "results"]] {
        assert_eq!(submit(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    fs::create_dir(folder.path().join("results")).unwrap();
    fs::write(folder.path().join("results/shard-1.json"), "{}").unwrap();
    let output = submit(folder.path(), &["8", "results"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("results of another run"));
    assert!(!folder.path().join("notes").exists(), "something was submitted");
}

#[test]
fn a_shell_understands_the_scripts() {
    for entry in fs::read_dir(scale_out().join("slurm")).unwrap() {
        let script = entry.unwrap().path();
        let status = Command::new("sh").arg("-n").arg(&script).status().unwrap();
        assert!(status.success(), "{}", script.display());
    }
}

/// The number of shards stands in several places, which must be the same.
#[test]
fn the_kubernetes_jobs_agree_on_the_number_of_shards() {
    let job = fs::read_to_string(scale_out().join("kubernetes/job.yaml")).unwrap();
    let marked = job.lines().filter(|line| line.trim_end().ends_with("# SHARDS"));
    let numbers: Vec<String> =
        marked.map(|line| line.chars().filter(char::is_ascii_digit).collect::<String>()).collect();
    assert_eq!(numbers, ["16", "16", "16"]);
}
