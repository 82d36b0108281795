//! Programs of memory calls made at random (`./ceasefire fuzz`): a few on the simulated machine alone in the quick check, else on all
//! three systems for some minutes.

use super::document::{Document, Level};
use super::part::{Asked, Part, Verdict};
use super::shard::Shard;
use crate::failure::Failure;
use crate::fuzz::{Plan, Summary};

/// Programs of the quick check.
const QUICK_PROGRAMS: u64 = 250;

/// The fuzzing.
pub(super) struct Fuzzing;

impl Part for Fuzzing {
    fn name(&self) -> &'static str {
        "fuzz"
    }

    fn is_run_by(&self, _: Level) -> bool {
        true
    }

    fn run(&self, asked: &Asked, document: &mut Document) -> Result<(), Failure> {
        println!("programs of memory calls, judged by a model of Linux");
        let Shard { index, count } = asked.shard.unwrap_or(Shard { index: 1, count: 1 });
        let (systems, programs, minutes): (&[&str], _, _) = match asked.level {
            Level::Quick => (&["machine"], Some(QUICK_PROGRAMS.div_ceil(count.into())), None),
            Level::Normal => (&["machine", "ceasefire", "linux"], None, Some(2.0 / f64::from(count))),
            Level::Deep => (&["machine", "ceasefire", "linux"], None, Some(10.0 / f64::from(count))),
        };
        let systems: Vec<_> = systems.iter().map(|&name| name.to_owned()).collect();
        let shard = (index.into(), count.into());
        let plan =
            Plan { seed: asked.seed, minutes, programs, systems: &systems, cpus: None, shard, keep: None };
        let summary = plan.carry_out()?;
        print!("{}", summary.table());
        document.fuzz = Some(summary);
        Ok(())
    }

    fn merge(&self, shards: &[Document], whole: &mut Document) -> Result<(), String> {
        let parts: Option<Vec<_>> = shards.iter().map(|shard| shard.fuzz.clone()).collect();
        whole.fuzz = Some(Summary::sum(parts.ok_or("the fuzzing of a shard is missing")?));
        Ok(())
    }

    fn verdict(&self, document: &Document) -> Option<Verdict> {
        let summary = document.fuzz.as_ref()?;
        let traces: u64 = summary.traces.values().sum();
        let known: u64 = summary.known.values().sum();
        let unexplained: u64 = summary.unexplained.iter().map(|finding| finding.count).sum();
        Some(Verdict {
            // A fuzzing of which nothing was judged says nothing.
            is_sound: summary.is_sound() && traces > 0,
            counts: format!(
                "{} programs, {traces} traces, {known} known differences, {unexplained} unexplained",
                summary.programs
            ),
            seconds: summary.seconds,
        })
    }

    fn section(&self, document: &Document) -> Option<String> {
        let summary = document.fuzz.as_ref()?;
        let classes = summary.unexplained.iter().map(|finding| format!("\n- **{}**", finding.class));
        Some(format!(
            "Fuzzing ({}): {} ([fuzz.md](fuzz.md) has a longer run).{}\n",
            summary.systems.join(", "),
            self.verdict(document)?.counts,
            classes.collect::<String>()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shard of one program found out.
    fn shard(index: u32, traces: u64, findings: &[&str]) -> Document {
        let shard = Some(Shard { index, count: 2 });
        let asked = Asked { level: Level::Quick, names: Vec::new(), seed: 1, shard, jobs: 1 };
        let mut summary = Summary::new(1, vec!["machine".into()]);
        summary.programs = 1;
        summary.traces.insert("machine".into(), traces);
        let program = fuzz::unpack("program p threads 1 spin\n0 load @3\nend\n").unwrap().remove(0);
        for class in findings {
            let class = ((*class).to_owned(), None);
            summary.add(crate::fuzz::Finding::new(&program, class, "machine"));
        }
        let mut document = Document::new(&asked, ["fuzz"].into_iter());
        document.fuzz = Some(summary);
        document
    }

    fn verdict(shards: &[Document]) -> Verdict {
        let mut whole = shards[0].emptied();
        Fuzzing.merge(shards, &mut whole).unwrap();
        Fuzzing.verdict(&whole).unwrap()
    }

    #[test]
    fn a_difference_or_silence_fails_it() {
        let sound = verdict(&[shard(1, 1, &[]), shard(2, 3, &[])]);
        assert!(sound.is_sound);
        assert_eq!(sound.counts, "2 programs, 4 traces, 0 known differences, 0 unexplained");
        assert!(!verdict(&[shard(1, 1, &[]), shard(2, 3, &["machine: load: 1, not 0"])]).is_sound);
        assert!(!verdict(&[shard(1, 0, &[]), shard(2, 0, &[])]).is_sound);
    }

    #[test]
    fn a_shard_without_it_is_refused() {
        let mut second = shard(2, 1, &[]);
        second.fuzz = None;
        let shards = [shard(1, 1, &[]), second];
        assert!(Fuzzing.merge(&shards, &mut shards[0].emptied()).unwrap_err().contains("missing"));
    }
}
