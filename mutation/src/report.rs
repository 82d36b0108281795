//! What became of the mutants, as lines and as the page of the documents.

use protocol::mutants::{Kind, MutantResult, Mutants, Verdict};

use crate::mutant::Mutant;

/// Of a mutant that nobody has seen yet.
pub(crate) fn untried(mutant: &Mutant) -> MutantResult {
    MutantResult {
        number: mutant.number,
        file: mutant.file.clone(),
        line: mutant.line,
        kind: mutant.kind,
        mutant: mutant.key.clone(),
        verdict: Verdict::Undecided,
        checker: None,
        promise: None,
        finding: None,
        because: None,
        seen_by: 0,
        seconds: 0.0,
    }
}

/// What became of a mutant, on a line.
pub(crate) fn line(result: &MutantResult) -> String {
    let fate = match result.verdict {
        Verdict::Killed => {
            let [checker, finding] =
                [&result.checker, &result.finding].map(|text| text.as_deref().unwrap_or_default());
            format!("killed by {checker}: {}", shortened(finding))
        }
        Verdict::Equivalent => "equivalent".into(),
        Verdict::Survived => format!("SURVIVED {} checkers that come by it", result.seen_by),
        Verdict::Undecided => "not noticed so far".into(),
    };
    let MutantResult { number, file, line, seconds, .. } = result;
    format!("{file}:{line} {} (mutant {number}): {fate} ({seconds:.1} s)", shortened(change(result)))
}

/// What was changed, without the file.
fn change(result: &MutantResult) -> &str {
    result.mutant.split_once(' ').map_or(result.mutant.as_str(), |(_, change)| change)
}

/// A text that fits a line.
fn shortened(text: &str) -> String {
    const MOST: usize = 110;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let [front, back] = [MOST * 2 / 3, MOST / 3];
    let letters: Vec<char> = text.chars().collect();
    let [front, back]: [String; 2] =
        [letters[..front].iter().collect(), letters[letters.len() - back..].iter().collect()];
    format!("{front}…{back}")
}

/// What is said in the end.
pub(crate) fn summary(mutants: &Mutants) -> String {
    let Mutants { total, killed, equivalent, survivors, undecided, complaints, seconds, .. } = mutants;
    let survived = survivors.len();
    let mut text = format!(
        "\n{total} mutants: {killed} killed, {equivalent} equivalent, {survived} survived, {undecided} undecided; \
         {seconds:.0} s of work\n"
    );
    survivors.iter().for_each(|key| text += &format!("SURVIVED {key}\n"));
    complaints.iter().for_each(|complaint| text += &format!("{complaint}\n"));
    text
}

/// `docs/results/mutants.md`.
pub(crate) fn page(mutants: &Mutants) -> String {
    let Mutants { total, killed, equivalent, survivors, undecided, .. } = mutants;
    let mut text = format!(
        "# What the checkers make of each line taken away\n\nWritten by `cargo run -p mutation -- --table docs/results/mutants.md`. \
         docs/design/0012-mutation.md says what is taken\naway, and how. Numbers of lines are those of the code that was tried.\n\n\
         **{total} mutants: {killed} killed, {equivalent} equivalent, {} survived, {undecided} undecided.**\n\n",
        survivors.len()
    );
    if *undecided > 0 {
        let is_untried =
            |mutant: &&MutantResult| mutant.verdict == Verdict::Undecided && mutant.seconds == 0.0;
        let untried = mutants.mutants.iter().filter(is_untried).count();
        text += &format!(
            "Undecided are those that some checkers had not seen yet when the time of the run (`--minutes`) was over, and no other \
             had noticed;\n{untried} of them no checker had seen.\n\n"
        );
    }
    text += &by_kind(mutants);
    let is_order = |mutant: &&MutantResult| matches!(mutant.kind, Kind::Fence | Kind::Ordering);
    text += &rows("Fences and orderings", mutants.mutants.iter().filter(is_order));
    text += "\n## Equivalent\n\n| mutant | because |\n|---|---|\n";
    for mutant in mutants.mutants.iter().filter(|mutant| mutant.verdict == Verdict::Equivalent) {
        let because = mutant.because.as_deref().unwrap_or_default();
        text += &format!("| {} | {} |\n", cell(&mutant.mutant), cell(because));
    }
    let is_other = |mutant: &&MutantResult| !is_order(mutant) && mutant.verdict != Verdict::Equivalent;
    text + &rows("All the others", mutants.mutants.iter().filter(is_other))
}

fn by_kind(mutants: &Mutants) -> String {
    let mut text = String::from(
        "| | mutants | killed | by a finding that names the promise | equivalent | survived | undecided |\n|---|---|---|---|---|---|---|\n",
    );
    for kind in Kind::ALL {
        let of_kind: Vec<_> = mutants.mutants.iter().filter(|mutant| mutant.kind == kind).collect();
        let count = |is: fn(&MutantResult) -> bool| of_kind.iter().filter(|mutant| is(mutant)).count();
        text += &format!(
            "| {kind} | {} | {} | {} | {} | {} | {} |\n",
            of_kind.len(),
            count(|mutant| mutant.verdict == Verdict::Killed),
            count(|mutant| mutant.promise.is_some()),
            count(|mutant| mutant.verdict == Verdict::Equivalent),
            count(|mutant| mutant.verdict == Verdict::Survived),
            count(|mutant| mutant.verdict == Verdict::Undecided)
        );
    }
    text
}

fn rows<'a>(title: &str, mutants: impl Iterator<Item = &'a MutantResult>) -> String {
    let mut text =
        format!("\n## {title}\n\n| where | mutant | verdict | by | what it said |\n|---|---|---|---|---|\n");
    for result in mutants {
        let verdict = match result.verdict {
            Verdict::Killed => "killed",
            Verdict::Equivalent => "equivalent",
            Verdict::Survived => "**survived**",
            Verdict::Undecided if result.seconds > 0.0 => "undecided",
            Verdict::Undecided => "not tried",
        };
        let [checker, finding] =
            [&result.checker, &result.finding].map(|text| text.as_deref().unwrap_or_default());
        let [change, finding] = [change(result), finding].map(|text| cell(&shortened(text)));
        text +=
            &format!("| {}:{} | {change} | {verdict} | {checker} | {finding} |\n", result.file, result.line);
    }
    text
}

/// A text as it may stand in a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("a{}z", "-".repeat(200));
        let short = shortened(&text);
        assert!(short.starts_with('a') && short.ends_with('z') && short.chars().count() < 120);
        assert_eq!(shortened("short"), "short");
    }
}
