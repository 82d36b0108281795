//! The mechanisms that avoid interrupts and flushes, each of which can be turned off to measure what it does. All are on by default
//! but those that not every processor or program can bear.

use core::fmt;

use crate::names::names;

names! {
    /// One mechanism. Its name is the same on the kernel's command line, in `--without`, in the ledger and in the documents.
    pub enum Mechanism {
        Lazy "lazy": "A CPU that only borrows an address space (idle, kernel threads) is told of nothing but freed page \
            tables; without it the CPU stays in the set of those told, and lets go at the first interrupt.",
        Generations "generations": "A CPU compares generations and flushes only what it missed; without it every request, \
            every return from borrowing and every switch flushes everything.",
        Ranged "ranged": "Small changes are invalidated page by page; without it each flush drops the whole address space.",
        Promotion "promotion": "A change that only adds permissions is not flushed; without it every permission change is.",
        Gather "gather": "One flush serves all changes of an operation; without it each changed page is flushed on its own.",
        Batch "batch": "Pages that are taken back behind a program's back are flushed together, before the first is used again; \
            without it each is flushed at once.",
        Epochs "epochs": "Pages that are clean and could not be stored to are taken back without a flush: that waits until their frames are \
            needed, and is owed only by CPUs which have not flushed meanwhile for another reason; without it, or without batch, the batch's end flushes.",
        Moves "moves": "A move of pages is flushed once, at its end, and those who come to pages by the reverse way wait until then; \
            without it each step is flushed: the entries of a pair of page tables, or one table that moves as a whole.",
        Mode "mode": "A CPU in the kernel, which uses no user translation there, is not interrupted; it flushes what it has missed before it \
            returns to user mode. Without it, or without lazy, every CPU that uses the address space is interrupted.",
        Unused "unused": "An entry that no CPU has used since it was last flushed is not flushed when it changes: a processor marks an entry \
            as used before it caches it. Without it every entry that was present is.",
        Sharers "sharers": "Each CPU has upper page tables of its own for a program with several threads, so that an operation tells only \
            those CPUs that have found the tables in which it changes something. It costs a fault for each CPU and each 2 MiB, and is off unless asked for.",
        Clean "clean": "Write taken from an entry that is not dirty is not flushed: a processor that looks at an entry again before \
            it marks it dirty stores nothing through an old copy of it. Not every processor does, so this is off unless asked for.",
    }
}

/// Which mechanisms are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// See [`Mechanism::Lazy`].
    pub lazy: bool,
    /// See [`Mechanism::Generations`].
    pub generations: bool,
    /// See [`Mechanism::Ranged`].
    pub ranged: bool,
    /// See [`Mechanism::Promotion`].
    pub promotion: bool,
    /// See [`Mechanism::Gather`].
    pub gather: bool,
    /// See [`Mechanism::Batch`].
    pub batch: bool,
    /// See [`Mechanism::Epochs`].
    pub epochs: bool,
    /// See [`Mechanism::Moves`].
    pub moves: bool,
    /// See [`Mechanism::Mode`].
    pub mode: bool,
    /// See [`Mechanism::Unused`].
    pub unused: bool,
    /// See [`Mechanism::Sharers`].
    pub sharers: bool,
    /// See [`Mechanism::Clean`].
    pub clean: bool,
}

impl Switches {
    /// What is on unless somebody says otherwise: all that any processor and any program can bear.
    pub const DEFAULT: Self = Switches {
        lazy: true,
        generations: true,
        ranged: true,
        promotion: true,
        gather: true,
        batch: true,
        epochs: true,
        moves: true,
        mode: true,
        unused: true,
        sharers: false,
        clean: false,
    };

    /// Every mechanism off: the name for this is `vanilla`.
    pub const VANILLA: Self = Switches {
        lazy: false,
        generations: false,
        ranged: false,
        promotion: false,
        gather: false,
        batch: false,
        epochs: false,
        moves: false,
        mode: false,
        unused: false,
        sharers: false,
        clean: false,
    };

    /// These, but for the mechanisms named in a list like `lazy,ranged`. `vanilla` names them all; the empty list none.
    ///
    /// # Errors
    /// The first name that is no mechanism's.
    pub fn without(self, list: &str) -> Result<Self, UnknownMechanism<'_>> {
        names_in(list).try_fold(self, |switches, name| match name {
            "vanilla" => Ok(Self::VANILLA),
            name => switches.set(name, false),
        })
    }

    /// These, and the mechanisms named in a list like `clean`.
    ///
    /// # Errors
    /// The first name that is no mechanism's; `vanilla` is none.
    pub fn with(self, list: &str) -> Result<Self, UnknownMechanism<'_>> {
        names_in(list).try_fold(self, |switches, name| switches.set(name, true))
    }

    fn set(mut self, name: &str, on: bool) -> Result<Self, UnknownMechanism<'_>> {
        *self.switch(Mechanism::from_name(name).ok_or(UnknownMechanism(name))?) = on;
        Ok(self)
    }

    /// Whether a mechanism is on.
    pub const fn has(&self, mechanism: Mechanism) -> bool {
        match mechanism {
            Mechanism::Lazy => self.lazy,
            Mechanism::Generations => self.generations,
            Mechanism::Ranged => self.ranged,
            Mechanism::Promotion => self.promotion,
            Mechanism::Gather => self.gather,
            Mechanism::Batch => self.batch,
            Mechanism::Epochs => self.epochs,
            Mechanism::Moves => self.moves,
            Mechanism::Mode => self.mode,
            Mechanism::Unused => self.unused,
            Mechanism::Sharers => self.sharers,
            Mechanism::Clean => self.clean,
        }
    }

    const fn switch(&mut self, mechanism: Mechanism) -> &mut bool {
        match mechanism {
            Mechanism::Lazy => &mut self.lazy,
            Mechanism::Generations => &mut self.generations,
            Mechanism::Ranged => &mut self.ranged,
            Mechanism::Promotion => &mut self.promotion,
            Mechanism::Gather => &mut self.gather,
            Mechanism::Batch => &mut self.batch,
            Mechanism::Epochs => &mut self.epochs,
            Mechanism::Moves => &mut self.moves,
            Mechanism::Mode => &mut self.mode,
            Mechanism::Unused => &mut self.unused,
            Mechanism::Sharers => &mut self.sharers,
            Mechanism::Clean => &mut self.clean,
        }
    }

    /// One bit per mechanism, in the order of [`Mechanism::ALL`].
    pub(crate) const fn to_bits(self) -> u64 {
        let mut bits = 0;
        let mut index = 0;
        while index < Mechanism::ALL.len() {
            bits |= (self.has(Mechanism::ALL[index]) as u64) << index;
            index += 1;
        }
        bits
    }

    /// Asked for at every flush, so without a loop.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Switches {
            lazy: bits >> Mechanism::Lazy as u64 & 1 == 1,
            generations: bits >> Mechanism::Generations as u64 & 1 == 1,
            ranged: bits >> Mechanism::Ranged as u64 & 1 == 1,
            promotion: bits >> Mechanism::Promotion as u64 & 1 == 1,
            gather: bits >> Mechanism::Gather as u64 & 1 == 1,
            batch: bits >> Mechanism::Batch as u64 & 1 == 1,
            epochs: bits >> Mechanism::Epochs as u64 & 1 == 1,
            moves: bits >> Mechanism::Moves as u64 & 1 == 1,
            mode: bits >> Mechanism::Mode as u64 & 1 == 1,
            unused: bits >> Mechanism::Unused as u64 & 1 == 1,
            sharers: bits >> Mechanism::Sharers as u64 & 1 == 1,
            clean: bits >> Mechanism::Clean as u64 & 1 == 1,
        }
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The names in a list like `lazy,ranged`.
fn names_in(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// A name that is no mechanism's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMechanism<'a>(pub &'a str);

impl fmt::Display for UnknownMechanism<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no mechanism '{}'; there are", self.0)?;
        for mechanism in Mechanism::ALL {
            write!(formatter, " {},", mechanism.name())?;
        }
        write!(formatter, " and vanilla for all of them")
    }
}

impl core::error::Error for UnknownMechanism<'_> {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_turn_mechanisms_off() {
        let without = |list| Switches::DEFAULT.without(list);
        assert_eq!(without(""), Ok(Switches::DEFAULT));
        assert_eq!(without("lazy"), Ok(Switches { lazy: false, ..Switches::DEFAULT }));
        assert_eq!(
            without("ranged, promotion,"),
            Ok(Switches { ranged: false, promotion: false, ..Switches::DEFAULT })
        );
        assert_eq!(without("vanilla"), Ok(Switches::VANILLA));
        assert_eq!(
            without("lazy,generations,ranged,promotion,gather,batch,epochs,moves,mode,unused"),
            Ok(Switches::VANILLA)
        );
    }

    #[test]
    fn names_turn_mechanisms_on() {
        let with_clean = Switches { clean: true, ..Switches::DEFAULT };
        assert_eq!(Switches::DEFAULT.with("clean"), Ok(with_clean));
        assert_eq!(Switches::DEFAULT.with(" lazy,"), Ok(Switches::DEFAULT));
        assert_eq!(with_clean.without("vanilla"), Ok(Switches::VANILLA));
        assert_eq!(Switches::DEFAULT.with("vanilla"), Err(UnknownMechanism("vanilla")));
    }

    #[test]
    fn what_not_every_machine_or_program_can_bear_is_off_by_default() {
        let off = Mechanism::ALL.into_iter().filter(|mechanism| !Switches::DEFAULT.has(*mechanism));
        assert_eq!(off.collect::<std::vec::Vec<_>>(), [Mechanism::Sharers, Mechanism::Clean]);
    }

    #[test]
    fn an_unknown_name_is_told() {
        let error = Switches::DEFAULT.without("lazy,eager").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no mechanism 'eager'; there are lazy, generations, ranged, promotion, gather, batch, epochs, moves, mode, unused, sharers, clean, and \
             vanilla for all of them"
        );
    }

    #[test]
    fn switches_survive_as_bits() {
        for bits in 0..1 << Mechanism::ALL.len() {
            assert_eq!(Switches::from_bits(bits).to_bits(), bits);
        }
        assert_eq!(Switches::from_bits(Switches::DEFAULT.to_bits()), Switches::DEFAULT);
    }
}
