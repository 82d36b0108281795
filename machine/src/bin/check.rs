//! The checkers as a program: what `./ceasefire check` builds with `--cfg simulated` and runs.

#[cfg(simulated)]
fn main() -> std::process::ExitCode {
    match machine::simulated::Check::from_arguments(std::env::args().skip(1))
        .and_then(|check| machine::simulated::main(&check))
    {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("ceasefire: {sentence}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(not(simulated))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "ceasefire: this was built without --cfg simulated; './ceasefire check' builds and runs it as it must be"
    );
    std::process::ExitCode::from(4)
}
