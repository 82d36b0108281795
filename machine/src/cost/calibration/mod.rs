//! The model held against what others have measured: the nine targets of the performance page, 5.3.
//!
//! A figure is *predicted* when nothing was chosen for its sake, *fitted* when a parameter was chosen so that it comes out. Only the predicted
//! ones say anything; the fitted ones are listed so that nobody takes them for more. Each row says whether the model is known to
//! reproduce it, within a quarter; `./ceasefire check` fails when one that is known to be reproduced is not any more, or the other way round, so that
//! the documents cannot go stale.

mod barriers;
mod claims;
mod flushes;
mod machines;
mod reclaim;
mod storms;
mod virtual_machines;

pub use claims::{Claim, claims};

/// Predictions within this of what was published count as reproduced.
pub const TOLERANCE: f64 = 0.25;

/// How a figure came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was chosen for its sake.
    Predicted,
    /// This was chosen so that it comes out.
    Fitted(&'static str),
}

/// One published figure beside the model's.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of the target in the list.
    pub target: u8,
    /// What was measured.
    pub figure: String,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// What was published.
    pub published: f64,
    /// What the model says.
    pub model: f64,
    /// How that came to be.
    pub standing: Standing,
    /// Why the model is known to miss it; none where it is known to reproduce it.
    pub known_miss: Option<&'static str>,
}

impl Row {
    /// The model's figure divided by the published one.
    pub fn ratio(&self) -> f64 {
        self.model / self.published
    }

    /// Whether it lies within [`TOLERANCE`].
    pub fn is_reproduced(&self) -> bool {
        (self.ratio() - 1.0).abs() <= TOLERANCE
    }

    /// Whether that is as the row says.
    pub fn is_as_listed(&self) -> bool {
        self.is_reproduced() == self.known_miss.is_none()
    }
}

/// One of the nine.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its number in the list.
    pub number: u8,
    /// What it is about.
    pub title: &'static str,
    /// Its figures.
    pub rows: Vec<Row>,
}

impl Target {
    /// Whether all figures that are predictions are reproduced; none if none is a prediction.
    pub fn is_reproduced(&self) -> Option<bool> {
        let mut predicted = self.rows.iter().filter(|row| row.standing == Standing::Predicted).peekable();
        predicted.peek()?;
        Some(predicted.all(Row::is_reproduced))
    }
}

/// All targets. Takes seconds.
pub fn run() -> Vec<Target> {
    vec![
        flushes::one_socket(),
        barriers::membarrier(),
        flushes::ranges(),
        flushes::many_sockets(),
        storms::many_threads(),
        reclaim::reclaim(),
        virtual_machines::overcommitted(),
        flushes::counter(),
        virtual_machines::protection(),
    ]
}

/// A row before it is known what becomes of it.
fn row(figure: impl Into<String>, unit: &'static str, published: f64, model: f64) -> Row {
    let (standing, known_miss) = (Standing::Predicted, None);
    Row { target: 0, figure: figure.into(), unit, published, model, standing, known_miss }
}

impl Row {
    fn fitted(self, what: &'static str) -> Self {
        Row { standing: Standing::Fitted(what), ..self }
    }

    fn missed(self, why: &'static str) -> Self {
        Row { known_miss: Some(why), ..self }
    }
}

fn target(number: u8, title: &'static str, rows: Vec<Row>) -> Target {
    let rows = rows.into_iter().map(|row| Row { target: number, ..row }).collect();
    Target { number, title, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_as_it_is_listed() {
        let targets = run();
        assert_eq!(
            targets.iter().map(|target| target.number).collect::<Vec<_>>(),
            (1..=9).collect::<Vec<_>>()
        );
        for row in targets.iter().flat_map(|target| &target.rows) {
            println!(
                "{} {:44} {:>10.2} {:>10.2} {:5.2} {} {:?}",
                row.target,
                row.figure,
                row.published,
                row.model,
                row.ratio(),
                row.is_reproduced(),
                row.standing
            );
        }
        for row in targets.iter().flat_map(|target| &target.rows) {
            assert!(row.is_as_listed(), "target {}: {}: {:.2}", row.target, row.figure, row.ratio());
        }
    }

    #[test]
    fn a_quarter_is_a_quarter() {
        assert!(row("", "", 100.0, 125.0).is_reproduced() && row("", "", 100.0, 75.0).is_reproduced());
        assert!(!row("", "", 100.0, 126.0).is_reproduced() && !row("", "", 100.0, 74.0).is_reproduced());
        assert!(!row("", "", 100.0, 200.0).is_as_listed());
        assert!(row("", "", 100.0, 200.0).missed("too slow").is_as_listed());
        assert!(!row("", "", 100.0, 100.0).missed("too slow").is_as_listed());
        assert_eq!(target(1, "", vec![row("", "", 1.0, 1.0).fitted("it")]).is_reproduced(), None);
    }
}
