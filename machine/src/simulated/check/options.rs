//! What the program is asked for, and what of it is this process's share.

use std::path::PathBuf;

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Quick,
    Normal,
    Deep,
}

impl Level {
    /// Schedules at random for each scenario, of each of two kinds.
    pub(super) fn random_schedules(self) -> u64 {
        [200, 2_000, 50_000][self as usize]
    }

    /// Into how many pieces each scenario's schedules are cut, so that many threads or machines have something to do to the end. It
    /// depends on nothing else, so that what is explored does not either.
    pub(super) fn pieces(self) -> u32 {
        [1, 4, 16][self as usize]
    }
}

/// Which part of all the work: every piece of a scenario and every past bug is dealt to one shard, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    /// From 0.
    pub(super) index: usize,
    pub(super) count: usize,
}

/// What is asked for.
#[derive(Debug)]
pub struct Check {
    pub(super) level: Level,
    pub(super) names: Vec<String>,
    pub(super) scenarios: bool,
    pub(super) past_bugs: bool,
    pub(super) seed: u64,
    pub(super) shard: Shard,
    pub(super) jobs: usize,
    pub(super) replay: Option<String>,
    pub(super) json: Option<PathBuf>,
}

impl Check {
    /// From the words of a command line.
    ///
    /// # Errors
    /// A sentence about the first word that makes no sense.
    pub fn from_arguments(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut check = Check {
            level: Level::Normal,
            names: Vec::new(),
            scenarios: true,
            past_bugs: true,
            seed: 1,
            shard: Shard { index: 0, count: 1 },
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            replay: None,
            json: None,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("'{word}' needs a value"));
            match word.as_str() {
                "--quick" => check.level = Level::Quick,
                "--deep" => check.level = Level::Deep,
                "--replay" => check.replay = Some(value()?),
                "--json" => check.json = Some(value()?.into()),
                "--seed" => check.seed = number(&value()?)?,
                "--jobs" => check.jobs = number(&value()?)?,
                "--shard" => check.shard = shard(&value()?)?,
                "--only" => {
                    let part = value()?;
                    (check.scenarios, check.past_bugs) = (part == "scenarios", part == "past-bugs");
                }
                other if other.starts_with('-') => return Err(format!("there is no option '{other}'")),
                _ => check.names.push(word),
            }
        }
        if check.jobs == 0 || !(check.scenarios || check.past_bugs) {
            return Err("there is nothing to do, or nobody to do it".into());
        }
        Ok(check)
    }

    /// Whether this scenario or bug is asked for.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| name.contains(wanted.as_str()))
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number that makes sense here"))
}

fn shard(text: &str) -> Result<Shard, String> {
    let (index, count) = text.split_once('/').ok_or(format!("'{text}' is no shard, such as 2/8"))?;
    let (index, count) = (number::<usize>(index)?, number::<usize>(count)?);
    if index < 1 || index > count {
        return Err(format!("there is no shard {index} of {count}"));
    }
    Ok(Shard { index: index - 1, count })
}
