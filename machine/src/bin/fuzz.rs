//! Programs of memory calls on the simulated machine: what `./ceasefire fuzz` builds with `--cfg simulated` and runs.

#[cfg(simulated)]
fn main() -> std::process::ExitCode {
    match machine::simulated::Fuzzing::from_arguments(std::env::args().skip(1))
        .and_then(|fuzzing| fuzzing.run())
    {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("ceasefire: {sentence}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(not(simulated))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "ceasefire: this was built without --cfg simulated; './ceasefire fuzz' builds and runs it as it must be"
    );
    std::process::ExitCode::from(4)
}
