//! The kernels that are compared: who is told of a change, how, and what is locked meanwhile.
//!
//! Whether a change is flushed at all, in how many requests, who is told and what each CPU invalidates is asked of the real `coherence`
//! (`consultation.rs`) under the policy's switches. For other kernels those switches describe what they have in common with it, and
//! `machine/tests/predictions.rs` holds the counts against the ones measured on Linux. What is re-stated here and in
//! `simulation/`: what depends on time (requests that meet on a CPU, the handler's table), and everything that `coherence` does not have.

use coherence::Switches;

/// Whether this is what the project's kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Another kernel.
    Other,
    /// As it runs.
    Runs,
    /// A technique that is not built.
    NotBuilt,
}

/// How other CPUs are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Interrupts.
    Interrupts,
    /// An instruction that reaches all CPUs, where enough of them use the space.
    Broadcast,
    /// At their next tick; the caller does not wait.
    Lazily,
}

/// When pages that reclaim unmaps are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Each by itself.
    EachPage,
    /// A batch at once.
    Batches,
    /// Before the frames of a whole pool are used again.
    Pools,
}

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// As it is typed and stands in results.
    pub name: String,
    /// What it is, in a sentence.
    pub meaning: &'static str,
    /// Whose it is.
    pub standing: Standing,
    /// Whether it keeps the promises D1 to D4.
    pub is_sound: bool,
    /// The mechanisms of `coherence` that it has.
    pub switches: Switches,
    /// CPUs compare generations, so that one flush serves several requests.
    pub compares: bool,
    /// How others are told.
    pub means: Means,
    /// It flushes here while the others do, not before it tells them.
    pub concurrent: bool,
    /// It does not interrupt a CPU that has an interrupt on its way.
    pub merges: bool,
    /// Only CPUs in user mode are told; others look when they return to it.
    pub user_only: bool,
    /// Only CPUs that may hold the page's translation are told.
    pub sharers_only: bool,
    /// A target acknowledges before it has flushed, where no table is freed.
    pub early: bool,
    /// Barriers spare CPUs in the kernel.
    pub barrier_user_only: bool,
    /// When reclaim flushes.
    pub reclaim: Reclaim,
    /// A table's lock is held while its pages are flushed.
    pub table_locked: bool,
    /// munmap lets readers in while it flushes.
    pub downgrades: bool,
    /// Every page goes over lists that all CPUs share.
    pub shared_lists: bool,
    /// Each CPU's mappings have locks of their own.
    pub own_locks: bool,
}

/// The names that can be typed; `ceasefire-without-X` exists for each mechanism X and for `vanilla` too.
pub const NAMES: [&str; 10] = [
    "linux-2015",
    "linux",
    "broadcast",
    "lazy-free",
    "ceasefire",
    "ceasefire+sharers",
    "ceasefire+arenas",
    "ceasefire+pools",
    "ceasefire+early",
    "ceasefire+all",
];

impl Policy {
    /// The policy of that name.
    pub fn find(name: &str) -> Option<Self> {
        let policy = match name {
            "linux-2015" => linux_of_2015(),
            "linux" => linux(),
            "broadcast" => broadcast(),
            "lazy-free" => lazy_free(),
            "ceasefire" => ceasefire(),
            "ceasefire+sharers" => with_sharers(ceasefire()),
            "ceasefire+arenas" => with_arenas(with_sharers(ceasefire())),
            "ceasefire+pools" => with_pools(ceasefire()),
            "ceasefire+early" => with_early(ceasefire()),
            "ceasefire+all" => Policy {
                meaning: "ceasefire with all of these techniques.",
                ..with_early(with_pools(with_arenas(with_sharers(ceasefire()))))
            },
            _ => {
                let switches = Switches::DEFAULT.without(name.strip_prefix("ceasefire-without-")?).ok()?;
                Policy {
                    switches,
                    compares: switches.generations,
                    user_only: switches.mode && switches.lazy,
                    meaning: "ceasefire with a mechanism switched off.",
                    ..ceasefire()
                }
            }
        };
        Some(Policy { name: name.to_owned(), ..policy })
    }

    /// How a table marks it: what it does not keep, or that nobody has built it.
    pub fn mark(&self) -> &'static str {
        match (self.is_sound, self.standing) {
            (false, _) => "UNSOUND",
            (true, Standing::NotBuilt) => "not built",
            (true, Standing::Other | Standing::Runs) => "",
        }
    }
}

fn ceasefire() -> Policy {
    Policy {
        name: String::new(),
        meaning: "This project's kernel as it is.",
        standing: Standing::Runs,
        is_sound: true,
        switches: Switches::DEFAULT,
        compares: true,
        means: Means::Interrupts,
        concurrent: true,
        merges: true,
        user_only: true,
        sharers_only: false,
        early: false,
        barrier_user_only: true,
        reclaim: Reclaim::Batches,
        table_locked: true,
        downgrades: false,
        shared_lists: false,
        own_locks: false,
    }
}

fn linux() -> Policy {
    Policy {
        meaning: "Linux today (6.12 and later): spares lazy CPUs, compares generations, flushes here while others do.",
        standing: Standing::Other,
        switches: Switches { promotion: false, mode: false, ..Switches::DEFAULT },
        user_only: false,
        barrier_user_only: false,
        table_locked: false,
        downgrades: true,
        shared_lists: true,
        ..ceasefire()
    }
}

fn linux_of_2015() -> Policy {
    Policy {
        meaning: "Linux of 2015 (4.2): tells every CPU of the mask, lazy ones too, flushes here first, reclaims page by page.",
        switches: Switches { promotion: false, mode: false, lazy: false, ..Switches::DEFAULT },
        compares: false,
        concurrent: false,
        merges: false,
        reclaim: Reclaim::EachPage,
        downgrades: false,
        ..linux()
    }
}

fn broadcast() -> Policy {
    Policy {
        meaning: "Linux on hardware that broadcasts invalidations (INVLPGB).",
        means: Means::Broadcast,
        ..linux()
    }
}

fn lazy_free() -> Policy {
    Policy {
        meaning: "Lazy freeing (LATR): unmapped memory stays reachable until every CPU's next tick. Breaks D3: a thread can read and \
                  write what has been unmapped.",
        is_sound: false,
        means: Means::Lazily,
        ..linux()
    }
}

fn with_sharers(policy: Policy) -> Policy {
    Policy {
        meaning: "ceasefire knowing which CPUs have used a table (M3).",
        standing: Standing::NotBuilt,
        sharers_only: true,
        ..policy
    }
}

fn with_arenas(policy: Policy) -> Policy {
    Policy {
        meaning: "ceasefire knowing which CPUs have used a table, and each CPU's mappings under locks of their own.",
        standing: Standing::NotBuilt,
        own_locks: true,
        ..policy
    }
}

fn with_pools(policy: Policy) -> Policy {
    Policy {
        meaning: "ceasefire flushing reclaimed pages when a pool of frames is used again (M4).",
        standing: Standing::NotBuilt,
        reclaim: Reclaim::Pools,
        ..policy
    }
}

fn with_early(policy: Policy) -> Policy {
    Policy {
        meaning: "ceasefire acknowledging before the flush (the part of M8 that it lacks).",
        standing: Standing::NotBuilt,
        early: true,
        ..policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_and_nothing_else_is() {
        for name in NAMES {
            assert_eq!(Policy::find(name).unwrap().name, name);
        }
        assert!(!Policy::find("ceasefire-without-lazy").unwrap().switches.lazy);
        assert_eq!(Policy::find("ceasefire-without-vanilla").unwrap().switches, Switches::VANILLA);
        for name in ["", "windows", "ceasefire-without-luck", "ceasefire+luck"] {
            assert_eq!(Policy::find(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_unsound_or_not_built_is_marked() {
        assert_eq!(Policy::find("lazy-free").unwrap().mark(), "UNSOUND");
        assert_eq!(Policy::find("ceasefire+sharers").unwrap().mark(), "not built");
        assert!(
            ["linux", "broadcast", "ceasefire"]
                .iter()
                .all(|name| Policy::find(name).unwrap().mark().is_empty())
        );
    }
}
