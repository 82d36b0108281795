//! What became of the mutants of `coherence`: of each line taken away or weakened, whether a checker noticed (`mutation/`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// What kind of line it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A fence taken out, or weakened by one step.
    Fence,
    /// An ordering of an atomic access weakened by one step.
    Ordering,
    /// A condition, or a term of one, that always holds or never does; a comparison moved by one.
    Condition,
    /// A row of a decision table: an arm that is passed over or does nothing, an outcome taken for another.
    Row,
    /// A part of a computation: an operand left out, a minimum for a maximum.
    Computation,
    /// A step that is left out.
    Step,
    /// Two steps in the other order.
    Order,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Kind::Fence, Kind::Ordering, Kind::Condition, Kind::Row, Kind::Computation, Kind::Step, Kind::Order];
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Fence => "fences",
            Kind::Ordering => "orderings",
            Kind::Condition => "conditions",
            Kind::Row => "rows of tables",
            Kind::Computation => "computations",
            Kind::Step => "steps left out",
            Kind::Order => "steps in the other order",
        })
    }
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A checker noticed it.
    Killed,
    /// None did, and none can: somebody has argued why.
    Equivalent,
    /// None did.
    Survived,
    /// None has so far, and the time was over before all had seen it.
    Undecided,
}

/// One mutant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MutantResult {
    /// By which it is chosen, as long as the code stays the same.
    pub number: usize,
    /// In `coherence/src`.
    pub file: String,
    /// Where it was when it was tried.
    pub line: usize,
    /// What kind of line.
    pub kind: Kind,
    /// File, function, what was there and what was done to it.
    pub mutant: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Who noticed it.
    pub checker: Option<String>,
    /// The promise that was violated, if the checker says so: D1 to D4, or B.
    pub promise: Option<String>,
    /// What the checker said.
    pub finding: Option<String>,
    /// Why it is equivalent.
    pub because: Option<String>,
    /// How many checkers it was shown to. One that does not come by the place, or only where the mutant makes no difference, is not
    /// counted.
    #[serde(default)]
    pub seen_by: usize,
    /// On one thread of the host, all checkers together.
    pub seconds: f64,
}

/// All that were tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mutants {
    /// How many.
    pub total: usize,
    /// How many of them a checker noticed.
    pub killed: usize,
    /// How many do nothing wrong.
    pub equivalent: usize,
    /// Those that no checker noticed.
    pub survivors: Vec<String>,
    /// How many had not been seen by all checkers when the time was over.
    #[serde(default)]
    pub undecided: usize,
    /// What is wrong with the list of equivalents.
    pub complaints: Vec<String>,
    /// On one thread of the host.
    pub seconds: f64,
    /// Each of them.
    pub mutants: Vec<MutantResult>,
}

impl Mutants {
    /// The sum of these.
    pub fn new(mutants: Vec<MutantResult>, complaints: Vec<String>) -> Self {
        let count = |verdict| mutants.iter().filter(|mutant| mutant.verdict == verdict).count();
        let survivors = mutants.iter().filter(|mutant| mutant.verdict == Verdict::Survived);
        Mutants {
            total: mutants.len(),
            killed: count(Verdict::Killed),
            equivalent: count(Verdict::Equivalent),
            survivors: survivors.map(|mutant| mutant.mutant.clone()).collect(),
            undecided: count(Verdict::Undecided),
            complaints,
            seconds: mutants.iter().map(|mutant| mutant.seconds).sum(),
            mutants,
        }
    }

    /// Takes in what became of other mutants of the same code.
    ///
    /// # Errors
    /// A sentence, if one of them is here already.
    pub fn join(self, other: Mutants) -> Result<Self, String> {
        let twice = other.mutants.iter().find(|theirs| {
            self.mutants.iter().any(|ours| ours.number == theirs.number || ours.mutant == theirs.mutant)
        });
        if let Some(mutant) = twice {
            return Err(alloc::format!("mutant {} is there twice", mutant.number));
        }
        let mut mutants = [self.mutants, other.mutants].concat();
        mutants.sort_by_key(|mutant| mutant.number);
        let mut complaints = [self.complaints, other.complaints].concat();
        complaints.sort();
        complaints.dedup();
        Ok(Self::new(mutants, complaints))
    }

    /// Nobody survived, nobody is undecided, and the list of equivalents is as it should be.
    pub fn is_sound(&self) -> bool {
        self.survivors.is_empty() && self.undecided == 0 && self.complaints.is_empty()
    }
}
