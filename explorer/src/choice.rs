//! What may happen next.

/// One thing that may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The CPU makes its next step. A plain store goes through at once, unless older ones wait.
    Run(usize),
    /// The CPU makes its next step, a plain store, which waits in the buffer.
    RunHolding(usize),
    /// The CPU makes its next step although an interrupt is waiting to be taken.
    RunPostponing(usize),
    /// The CPU takes its interrupt.
    Interrupt(usize),
    /// The CPU takes an interrupt that cannot be masked.
    Unmaskable(usize),
    /// The threads on these two CPUs change places.
    Exchange(usize, usize),
    /// The oldest store in the CPU's buffer becomes visible.
    Drain(usize),
    /// The hardware does something by itself; the number is its own.
    Hardware(u64),
}

impl Choice {
    /// The CPU that is made to run, if the choice is about that.
    pub fn cpu(self) -> Option<usize> {
        match self {
            Choice::Run(cpu)
            | Choice::RunHolding(cpu)
            | Choice::RunPostponing(cpu)
            | Choice::Interrupt(cpu)
            | Choice::Unmaskable(cpu) => Some(cpu),
            Choice::Exchange(..) | Choice::Drain(_) | Choice::Hardware(_) => None,
        }
    }
}

/// A choice and what it costs to deviate by it from what a bored scheduler would do.
#[derive(Clone, Copy, Debug)]
pub struct Priced {
    /// What.
    pub choice: Choice,
    /// The price. The first of all offers is free.
    pub price: u8,
}
