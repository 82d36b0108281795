//! Amounts that people type: bytes ("512M") and durations ("90s").

use std::time::Duration;

/// Guest memory, in mebibytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) mebibytes: u64,
}

impl Memory {
    const LEAST: u64 = 32;
    const MOST: u64 = 1 << 20;

    /// Reads a number with the unit M or G (binary, upper or lower case, an `iB` or `B` may follow).
    ///
    /// # Errors
    /// A sentence when it is not such a number, or outside 32M to 1024G.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let bare = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
        let (digits, unit) = match (bare.strip_suffix('m'), bare.strip_suffix('g')) {
            (Some(digits), _) => (digits, 1),
            (_, Some(digits)) => (digits, 1024),
            _ => return Err("a size is a number with M or G, such as 512M or 2G".into()),
        };
        let mebibytes = digits
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit))
            .ok_or("a size is a whole number with M or G, such as 512M or 2G")?;
        if !(Self::LEAST..=Self::MOST).contains(&mebibytes) {
            return Err(format!("memory is between {}M and {}G", Self::LEAST, Self::MOST / 1024));
        }
        Ok(Memory { mebibytes })
    }
}

/// How long a run may take; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

impl Limit {
    /// Reads a number with `ms`, `s`, `m` or `h`, or the word `none`.
    ///
    /// # Errors
    /// A sentence when it is neither, or not more than zero.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const SHAPE: &str = "a time is a whole number with ms, s, m or h, such as 90s, or 'none'";
        if text == "none" {
            return Ok(Limit(None));
        }
        let split = text.find(|character: char| !character.is_ascii_digit()).ok_or(SHAPE)?;
        let number: u64 = text[..split].parse().map_err(|_| SHAPE)?;
        let milliseconds = match &text[split..] {
            "ms" => Some(number),
            "s" => number.checked_mul(1000),
            "m" => number.checked_mul(60 * 1000),
            "h" => number.checked_mul(60 * 60 * 1000),
            _ => None,
        };
        match milliseconds {
            Some(milliseconds) if milliseconds > 0 => Ok(Limit(Some(Duration::from_millis(milliseconds)))),
            _ => Err(SHAPE.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_unit_and_bounds() {
        assert_eq!(Memory::parse("512M"), Ok(Memory { mebibytes: 512 }));
        assert_eq!(Memory::parse("2g"), Ok(Memory { mebibytes: 2048 }));
        assert_eq!(Memory::parse("2GiB"), Ok(Memory { mebibytes: 2048 }));
        for wrong in
            ["", "512", "M", "-1G", "1.5G", "16M", "99999999999999999999G", "18446744073709551615G", "1T"]
        {
            assert!(Memory::parse(wrong).is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn limit_has_a_unit_or_is_none() {
        assert_eq!(Limit::parse("none"), Ok(Limit(None)));
        assert_eq!(Limit::parse("1500ms"), Ok(Limit(Some(Duration::from_millis(1500)))));
        assert_eq!(Limit::parse("2m"), Ok(Limit(Some(Duration::from_secs(120)))));
        for wrong in ["", "10", "s", "0s", "-1s", "1d", "18446744073709551615h"] {
            assert!(Limit::parse(wrong).is_err(), "{wrong} was accepted");
        }
    }
}
