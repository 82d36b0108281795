//! `probe` lists the scenarios; `probe NAME` explores one as far as its first finding. Status 1 with the finding's sentence.

#[cfg(simulated)]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name] = words.as_slice() else {
        machine::simulated::names().for_each(|name| println!("{name}"));
        return std::process::ExitCode::SUCCESS;
    };
    match machine::simulated::probe(name) {
        Ok(None) => std::process::ExitCode::SUCCESS,
        Ok(Some(finding)) => {
            println!("{finding}");
            std::process::ExitCode::FAILURE
        }
        Err(sentence) => {
            eprintln!("ceasefire: {sentence}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(not(simulated))]
fn main() -> std::process::ExitCode {
    eprintln!("ceasefire: this was built without --cfg simulated; 'mutation' builds it as it must be");
    std::process::ExitCode::from(4)
}
