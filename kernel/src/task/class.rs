//! How a task wants to be scheduled: fairly by weight, or by real-time priority.

/// Nanoseconds a round-robin task runs before the next of its priority.
pub(super) const ROUND_ROBIN_SLICE: u64 = 100_000_000;
/// The weight of nice 0.
pub(super) const NORMAL_WEIGHT: u64 = 1024;
/// The weight of a task that wants only what others leave.
const IDLE_WEIGHT: u64 = 3;

/// A scheduling class with its parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Fair, with a nice value from -20 (heavy) to 19 (light).
    Normal { nice: i8 },
    /// As `Normal`, but does not preempt others when it wakes.
    Batch { nice: i8 },
    /// Fair with the least weight.
    Idle { nice: i8 },
    /// Real time, priority 1 to 99, until it sleeps or yields.
    Fifo { priority: u8 },
    /// Real time, taking turns with equals.
    RoundRobin { priority: u8 },
}

/// Weights of the nice values -20 to 19: each step is a factor of 1.25 around `NORMAL_WEIGHT`.
const WEIGHTS: [u64; 40] = {
    let mut weights = [0; 40];
    // In 2^-20 units, to keep the error of repeated division below one.
    let mut weight = NORMAL_WEIGHT << 20;
    let mut step = 20;
    while step < 40 {
        weights[step] = (weight + (1 << 19)) >> 20;
        weight = weight * 4 / 5;
        step += 1;
    }
    weight = NORMAL_WEIGHT << 20;
    step = 20;
    while step > 0 {
        step -= 1;
        weight = weight * 5 / 4;
        weights[step] = (weight + (1 << 19)) >> 20;
    }
    weights
};

impl Class {
    pub(crate) const DEFAULT: Self = Self::Normal { nice: 0 };

    /// Order of precedence: lower runs first; equal ranks share by position.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Fifo { priority } | Self::RoundRobin { priority } => 99 - priority.min(99),
            Self::Normal { .. } | Self::Batch { .. } | Self::Idle { .. } => 100,
        }
    }

    pub(super) fn is_real_time(self) -> bool {
        self.rank() < 100
    }

    /// Share of the CPU against other fair tasks.
    pub(super) fn weight(self) -> u64 {
        match self {
            Self::Normal { nice } | Self::Batch { nice } => WEIGHTS[(i32::from(nice).clamp(-20, 19) + 20) as usize],
            Self::Idle { .. } => IDLE_WEIGHT,
            Self::Fifo { .. } | Self::RoundRobin { .. } => NORMAL_WEIGHT,
        }
    }

    pub(super) const fn to_bits(self) -> u32 {
        let (kind, value) = match self {
            Self::Normal { nice } => (0, nice as u8),
            Self::Batch { nice } => (1, nice as u8),
            Self::Idle { nice } => (2, nice as u8),
            Self::Fifo { priority } => (3, priority),
            Self::RoundRobin { priority } => (4, priority),
        };
        kind << 8 | value as u32
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        let value = bits as u8;
        match bits >> 8 {
            0 => Self::Normal { nice: value as i8 },
            1 => Self::Batch { nice: value as i8 },
            2 => Self::Idle { nice: value as i8 },
            3 => Self::Fifo { priority: value },
            _ => Self::RoundRobin { priority: value },
        }
    }
}
