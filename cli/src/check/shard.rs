//! One of several shares of the work, which may be done on several machines.

use std::fmt;

use serde::{Deserialize, Serialize};

/// More shards than any check has work for.
const MOST: u32 = 100_000;

/// Share `index` of `count`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shard {
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl Shard {
    /// From "2/8".
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some(Shard { index: index.parse().ok()?, count: count.parse().ok()? })
        });
        match numbers {
            Some(shard) if shard.count > MOST => Err(format!("more than {MOST} shards")),
            Some(shard) if shard.index >= 1 && shard.index <= shard.count => Ok(shard),
            Some(shard) => Err(format!("there is no shard {} of {}", shard.index, shard.count)),
            None => Err("a shard is I/N, such as 2/8".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_several() {
        assert_eq!(Shard::parse("2/8"), Ok(Shard { index: 2, count: 8 }));
        assert_eq!(Shard::parse("1/1").unwrap().to_string(), "1/1");
        for (text, why) in [
            ("", "2/8"),
            ("3", "2/8"),
            ("a/b", "2/8"),
            ("-1/2", "2/8"),
            ("1/2/3", "2/8"),
            ("0/2", "no shard 0 of 2"),
            ("3/2", "no shard 3 of 2"),
            ("0/0", "no shard 0 of 0"),
            ("1/4000000000", "more than"),
        ] {
            assert!(Shard::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
