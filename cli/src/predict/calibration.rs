//! The model held against what others have measured: as a table, as JSON, and as a verdict.

use machine::cost::calibration::{self, Row, Standing, TOLERANCE, Target};
use serde::{Deserialize, Serialize};

use crate::number;
use crate::tables;

/// What came of it.
pub(crate) struct Calibration {
    targets: Vec<Target>,
}

/// Its form in the check's JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Within which part of the published figure a prediction counts as reproduced.
    pub(crate) tolerance: f64,
    /// Every figure is reproduced that is listed so, and no other.
    pub(crate) passed: bool,
    /// Figures that are predictions, and how many of them are reproduced.
    pub(crate) predicted: usize,
    pub(crate) reproduced: usize,
    pub(crate) figures: Vec<Figure>,
    pub(crate) seconds: f64,
}

/// A published figure beside the model's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) target: u8,
    pub(crate) figure: String,
    pub(crate) unit: String,
    pub(crate) published: f64,
    pub(crate) model: f64,
    pub(crate) reproduced: bool,
    /// The parameter that was chosen for its sake; null for a prediction.
    pub(crate) fitted: Option<String>,
    /// Why the model is known to miss it; null where it is known to reproduce it.
    pub(crate) known_miss: Option<String>,
}

/// Runs the model on everything that others have published. Takes seconds.
pub(crate) fn calibrate() -> Calibration {
    Calibration { targets: calibration::run() }
}

impl Calibration {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.targets.iter().flat_map(|target| &target.rows)
    }

    /// What came of it, after so many seconds.
    pub(crate) fn summary(&self, seconds: f64) -> Summary {
        let predicted: Vec<&Row> = self.rows().filter(|row| row.standing == Standing::Predicted).collect();
        Summary {
            tolerance: TOLERANCE,
            passed: self.rows().all(Row::is_as_listed),
            predicted: predicted.len(),
            reproduced: predicted.iter().filter(|row| row.is_reproduced()).count(),
            figures: self.rows().map(Figure::of).collect(),
            seconds,
        }
    }

    /// A line for each target, and one for each figure that is not as it is listed.
    pub(crate) fn render(&self) -> String {
        let mut table =
            tables::plain(&["calibration target", "predicted", "within 25 %", "ratios", "fitted"]);
        tables::align_right(&mut table, &[1, 2, 4]);
        for target in &self.targets {
            let (predicted, fitted): (Vec<&Row>, Vec<&Row>) =
                target.rows.iter().partition(|row| row.standing == Standing::Predicted);
            let reproduced = predicted.iter().filter(|row| row.is_reproduced()).count();
            table.add_row([
                format!("{} {}", target.number, target.title),
                predicted.len().to_string(),
                reproduced.to_string(),
                ratios(&predicted),
                fitted.len().to_string(),
            ]);
        }
        let wrong = self.rows().filter(|row| !row.is_as_listed()).map(|row| {
            let state = if row.is_reproduced() {
                "reproduced, and listed as missed"
            } else {
                "missed, and listed as reproduced"
            };
            format!("\ntarget {}: {} is {state}: {}", row.target, row.figure, number::ratio(row.ratio()))
        });
        let wrong: String = wrong.collect();
        format!("{}{wrong}", tables::lines(&table))
    }

    /// The tables of the documents.
    pub(crate) fn markdown(&self) -> String {
        let mut text =
            String::from("| target | figure | published | model | ratio | |\n|---|---|---|---|---|---|\n");
        for row in self.rows() {
            let state = match (row.standing, row.is_reproduced()) {
                (Standing::Fitted(what), _) => format!("fitted: {what}"),
                (Standing::Predicted, true) => "predicted".to_owned(),
                (Standing::Predicted, false) => {
                    format!("**missed**: {}", row.known_miss.unwrap_or("not known why"))
                }
            };
            text += &format!(
                "| {} | {} | {} | {} | {:.2} | {state} |\n",
                row.target,
                row.figure,
                with_unit(row.published, row.unit),
                with_unit(row.model, row.unit),
                row.ratio(),
            );
        }
        text
    }
}

/// What is predicted of techniques before they are built.
pub(super) fn claims_markdown() -> String {
    let mut text = String::from("| technique | expected | model | holds | |\n|---|---|---|---|---|\n");
    for claim in calibration::claims() {
        let figures =
            claim.figures.iter().map(|(cpus, value)| format!("{} at {cpus}", with_unit(*value, claim.unit)));
        let figures: Vec<String> = figures.collect();
        let holds = if claim.holds { "yes" } else { "**no**" };
        text += &format!(
            "| {} | {} | {} | {holds} | {} |\n",
            claim.technique,
            claim.expected,
            figures.join(", "),
            claim.remark
        );
    }
    text
}

fn with_unit(value: f64, unit: &str) -> String {
    let digits = if value >= 1000.0 { number::whole(value.round() as u64) } else { number::short(value) };
    format!("{digits} {unit}").trim_end().to_owned()
}

/// The least and the most of the model's figures divided by the published ones.
fn ratios(rows: &[&Row]) -> String {
    let ratios = || rows.iter().map(|row| row.ratio());
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    if rows.is_empty() { String::new() } else { format!("{least:.2} to {most:.2}") }
}

impl Figure {
    fn of(row: &Row) -> Self {
        Figure {
            target: row.target,
            figure: row.figure.clone(),
            unit: row.unit.to_owned(),
            published: row.published,
            model: row.model,
            reproduced: row.is_reproduced(),
            fitted: match row.standing {
                Standing::Predicted => None,
                Standing::Fitted(what) => Some(what.to_owned()),
            },
            known_miss: row.known_miss.map(str::to_owned),
        }
    }
}
