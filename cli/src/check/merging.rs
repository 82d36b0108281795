//! Joins the results of shards into the result that one run would have had. Whatever does not fit together is refused.

use std::path::PathBuf;

use super::document::Document;
use super::part::PARTS;
use crate::failure::Failure;

/// Reads these files and joins them. One file that is no shard stays as it is.
pub(super) fn merge_files(paths: &[PathBuf]) -> Result<Document, Failure> {
    let mut shards = paths
        .iter()
        .map(|path| Ok((path.display().to_string(), super::read(path)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    if let [(_, whole)] = shards.as_slice()
        && whole.shard.is_none()
    {
        return Ok(whole.clone());
    }
    shards.sort_by_key(|(_, shard)| shard.shard.map(|shard| shard.index));
    fit(&shards).map_err(Failure::usage)?;
    let shards: Vec<_> = shards.into_iter().map(|(_, shard)| shard).collect();
    merge(&shards).map_err(Failure::usage)
}

/// Whether these are all shards of one check, in order.
fn fit(shards: &[(String, Document)]) -> Result<(), String> {
    let [(first_name, first), ..] = shards else { return Err("there is nothing to merge".into()) };
    for (name, document) in shards {
        let differs =
            |what: &str| format!("{name} and {first_name} do not fit together: they differ in {what}");
        let Some(shard) = document.shard else {
            return Err(format!("{name} is no shard but a whole, with which nothing can be merged"));
        };
        let of_first = first.shard.map(|shard| shard.count);
        if document.versions.commit != first.versions.commit {
            return Err(differs("the revision that was checked"));
        } else if document.level != first.level {
            return Err(differs("how much was checked (--quick, --deep)"));
        } else if document.seed != first.seed {
            return Err(differs("the seed"));
        } else if document.parts != first.parts {
            return Err(differs("the parts"));
        } else if document.names != first.names {
            return Err(differs("the scenarios that were asked for"));
        } else if of_first != Some(shard.count) {
            return Err(differs("the number of shards"));
        }
    }
    let count = first.shard.map_or(0, |shard| shard.count);
    for (place, (name, document)) in (1u32..).zip(shards) {
        match document.shard.map_or(0, |shard| shard.index) {
            index if index > place => return Err(format!("shard {place}/{count} is missing")),
            index if index < place => {
                return Err(format!("shard {index}/{count} is there twice, also as {name}"));
            }
            _ => {}
        }
    }
    let last = shards.len() as u32;
    if last < count { Err(format!("shard {}/{count} is missing", last + 1)) } else { Ok(()) }
}

fn merge(shards: &[Document]) -> Result<Document, String> {
    let mut whole = shards[0].emptied();
    for part in PARTS {
        if whole.parts.iter().any(|name| name == part.name()) {
            part.merge(shards, &mut whole)?;
        }
    }
    whole.seconds = shards.iter().map(|shard| shard.seconds).fold(0.0, f64::max);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use protocol::check::ScenarioResult;

    use super::super::document::Level;
    use super::super::part::Asked;
    use super::super::shard::Shard;
    use super::super::summary;
    use super::*;

    /// What a shard found out in the first pieces of a scenario that is cut into three.
    fn shard(index: u32, count: u32, explored: u32) -> (String, Document) {
        let shard = Some(Shard { index, count });
        let asked = Asked { level: Level::Normal, names: vec!["munmap".into()], seed: 1, shard, jobs: 1 };
        let mut document = Document::new(&asked, ["scenarios"].into_iter());
        document.seconds = f64::from(index);
        document.scenarios = Some(vec![ScenarioResult {
            name: "munmap-and-reader".into(),
            passed: true,
            bound: 4,
            pieces: 3,
            explored,
            schedules: 10,
            states: 5,
            random_schedules: 2,
            seconds: 0.5,
            finding: None,
            replay: None,
        }]);
        (format!("{index}.json"), document)
    }

    fn refusal(shards: &[(String, Document)]) -> String {
        fit(shards).unwrap_err()
    }

    #[test]
    fn shards_become_one_result() {
        let shards = [shard(1, 2, 2), shard(2, 2, 1)];
        fit(&shards).unwrap();
        let whole = merge(&shards.map(|(_, shard)| shard)).unwrap();
        assert_eq!((whole.shard, whole.seconds), (None, 2.0));
        let result = &whole.scenarios.as_ref().unwrap()[0];
        assert_eq!((result.explored, result.schedules, result.random_schedules), (3, 20, 4));
        assert!(summary::is_sound(&whole));
        assert!(summary::page(&whole).contains("| munmap-and-reader | 4 | 20 | 10 | 4 | 1.0 | passed |"));
    }

    #[test]
    fn one_finding_fails_the_whole() {
        let (name, mut failed) = shard(2, 2, 1);
        for result in failed.scenarios.iter_mut().flatten() {
            (result.passed, result.finding) = (false, Some("D1".into()));
        }
        let whole = merge(&[shard(1, 2, 2).1, failed]).unwrap();
        assert!(!summary::is_sound(&whole), "{name}");
        assert!(summary::table(&whole).contains("1 scenarios, 1 failed, 24 schedules"));
    }

    #[test]
    fn shards_that_do_not_fit_together_are_refused() {
        assert_eq!(refusal(&[shard(1, 3, 1), shard(3, 3, 1)]), "shard 2/3 is missing");
        assert_eq!(refusal(&[shard(1, 2, 1)]), "shard 2/2 is missing");
        assert_eq!(refusal(&[shard(2, 2, 1)]), "shard 1/2 is missing");
        let twice = refusal(&[shard(1, 2, 1), shard(1, 2, 1), shard(2, 2, 1)]);
        assert!(twice.contains("shard 1/2 is there twice"), "{twice}");
        assert!(refusal(&[shard(1, 2, 1), shard(2, 3, 1)]).contains("the number of shards"));
        let with = |change: fn(&mut Document)| {
            let (name, mut document) = shard(2, 2, 1);
            change(&mut document);
            refusal(&[shard(1, 2, 2), (name, document)])
        };
        assert!(with(|document| document.seed = 2).contains("2.json and 1.json do not fit together"));
        assert!(with(|document| document.seed = 2).contains("the seed"));
        assert!(with(|document| document.level = Level::Quick).contains("--quick"));
        assert!(with(|document| document.names.clear()).contains("asked for"));
        assert!(with(|document| document.parts.clear()).contains("the parts"));
        assert!(with(|document| document.versions.commit = None).contains("the revision"));
        assert!(with(|document| document.shard = None).contains("2.json is no shard but a whole"));
    }

    #[test]
    fn what_the_shards_explored_must_be_everything() {
        let sentence = |one, other| merge(&[shard(1, 2, one).1, shard(2, 2, other).1]).unwrap_err();
        assert!(sentence(1, 1).contains("of scenario munmap-and-reader a piece is missing"));
        assert!(sentence(2, 2).contains("munmap-and-reader does not fit together"));
    }
}
