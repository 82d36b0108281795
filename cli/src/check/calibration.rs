//! The cost model, held against what others have measured (`machine/src/cost/calibration/`).
//!
//! Its figures repeat exactly, so this is no test of luck: it fails when somebody changes the model, or what `coherence` does, so that a
//! published figure is not reproduced any more that the documents say is, or the other way round.

use std::time::Instant;

use super::document::{Document, Level};
use super::part::{Asked, Part, Verdict};
use crate::failure::Failure;
use crate::predict::calibration::calibrate;

/// The nine targets.
pub(super) struct Calibration;

impl Part for Calibration {
    fn name(&self) -> &'static str {
        "calibration"
    }

    fn is_run_by(&self, _: Level) -> bool {
        true
    }

    fn is_sharded(&self) -> bool {
        false
    }

    fn run(&self, _: &Asked, document: &mut Document) -> Result<(), Failure> {
        println!("the cost model beside what others have measured");
        let started = Instant::now();
        let calibration = calibrate();
        println!("{}", calibration.render());
        document.calibration = Some(calibration.summary(started.elapsed().as_secs_f64()));
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        whole.calibration = shards.iter().find_map(|shard| shard.calibration.clone());
        whole.calibration.is_some().then_some(()).ok_or_else(|| "the calibration is missing".into())
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let summary = document.calibration.as_ref()?;
        Some(Verdict {
            is_sound: summary.passed,
            counts: format!(
                "{} of {} predicted figures within a quarter{}",
                summary.reproduced,
                summary.predicted,
                if summary.passed { ", as listed" } else { ", and not as listed" }
            ),
            seconds: summary.seconds,
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let counts = self.verdict(document)?.counts;
        Some(format!("The cost model: {counts} ([predictions.md](predictions.md) has them all).\n"))
    }
}
