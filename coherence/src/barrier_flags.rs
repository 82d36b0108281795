//! The interface under which barriers on other CPUs were first proposed (sys_membarrier, version 6, 2010): one word of flags.
//!
//! Linux took the idea with another interface, of commands and registrations, which is what this kernel serves. The source's rules have
//! their place here, and what they come to in the commands that replaced them:
//!
//! | flag | bit | means | today's command |
//! |---|---|---|---|
//! | `EXPEDITED` | 0 | at once, by interrupts | `PRIVATE_EXPEDITED` |
//! | `DELAYED` | 1 | in a while, without interrupts | `GLOBAL` |
//! | `QUERY` | 16 | do nothing; say whether the flags are accepted | `QUERY` |
//!
//! The lower half of the word is *mandatory*: a bit there that is not known is refused, as the caller relies on it. The upper half is
//! *optional*: what is not known there is ignored. Exactly one of `EXPEDITED` and `DELAYED` must be given, also with `QUERY`.

use core::fmt;

use crate::{Coherence, CpuSet, Platform, Space};

const MANDATORY: u32 = 0xffff;

/// A word of flags that follows the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierFlags(u32);

impl BarrierFlags {
    /// A barrier by interrupts.
    pub const EXPEDITED: u32 = 1;
    /// A barrier by a grace period.
    pub const DELAYED: u32 = 1 << 1;
    /// No barrier at all.
    pub const QUERY: u32 = 1 << 16;

    /// Checks the word.
    ///
    /// # Errors
    /// What a system call would answer with EINVAL.
    pub const fn new(flags: u32) -> Result<Self, RefusedFlags> {
        let mandatory = flags & MANDATORY;
        if mandatory & !(Self::EXPEDITED | Self::DELAYED) != 0 {
            return Err(RefusedFlags::Unknown);
        }
        if mandatory.count_ones() != 1 {
            return Err(RefusedFlags::NotOne);
        }
        Ok(BarrierFlags(flags))
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// Why a word of flags is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedFlags {
    /// A bit of the mandatory half is not known.
    Unknown,
    /// Not exactly one of `EXPEDITED` and `DELAYED` is given.
    NotOne,
}

impl fmt::Display for RefusedFlags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RefusedFlags::Unknown => "a flag in the mandatory half is not known",
            RefusedFlags::NotOne => "exactly one of EXPEDITED and DELAYED must be given",
        })
    }
}

impl core::error::Error for RefusedFlags {}

impl<P: Platform> Coherence<P> {
    /// A memory barrier in all threads of `space`, as the flags say.
    ///
    /// `others` are the CPUs online without this one, and `wait` is called while a delayed barrier is not over: it sleeps a little. Otherwise
    /// as [`barrier`](Coherence::barrier).
    pub fn barrier_by_flags(
        &self,
        space: &Space,
        flags: BarrierFlags,
        others: CpuSet,
        mut wait: impl FnMut(),
    ) {
        if flags.has(BarrierFlags::QUERY) {
            return;
        }
        if flags.has(BarrierFlags::EXPEDITED) {
            return self.barrier(space);
        }
        let mut period = self.begin_grace_period(others);
        while !period.is_over(self) {
            wait();
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_mandatory_half_must_be_understood() {
        for bit in 2..16 {
            let flags = 1 << bit | BarrierFlags::EXPEDITED;
            assert_eq!(BarrierFlags::new(flags), Err(RefusedFlags::Unknown));
            assert_eq!(BarrierFlags::new(flags | BarrierFlags::QUERY), Err(RefusedFlags::Unknown));
        }
    }

    #[test]
    fn the_optional_half_may_be_ignored() {
        for bit in 16..32 {
            assert!(BarrierFlags::new(1 << bit | BarrierFlags::EXPEDITED).is_ok());
            assert!(BarrierFlags::new(1 << bit | BarrierFlags::DELAYED).is_ok());
        }
    }

    #[test]
    fn exactly_one_way_must_be_chosen() {
        let both = BarrierFlags::EXPEDITED | BarrierFlags::DELAYED;
        for flags in [0, both, BarrierFlags::QUERY, BarrierFlags::QUERY | both] {
            assert_eq!(BarrierFlags::new(flags), Err(RefusedFlags::NotOne));
        }
        assert_eq!(RefusedFlags::NotOne.to_string(), "exactly one of EXPEDITED and DELAYED must be given");
    }
}
