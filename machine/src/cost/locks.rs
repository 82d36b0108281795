//! Locks, as far as they cost time: a line that goes from CPU to CPU, and a queue.
//!
//! Whoever takes or releases a lock, shared too, writes its line, and a line is at one CPU at a time. So readers of one lock
//! wait for its line although none excludes another: that is what is left of a flush that interrupts nobody.

use std::collections::VecDeque;

use super::parameters::Time;
use super::topology::Topology;

/// How a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Shared,
    Exclusive,
}

/// A cache line that CPUs write.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    owner: Option<usize>,
    free_at: Time,
}

impl Line {
    /// When a locked operation that `cpu` begins now is done.
    pub(super) fn write(&mut self, cpu: usize, now: Time, locked: Time, topology: &Topology) -> Time {
        let transfer = match self.owner {
            Some(owner) if owner != cpu => topology.line(owner, cpu),
            _ => 0,
        };
        self.owner = Some(cpu);
        self.free_at = self.free_at.max(now) + transfer + locked;
        self.free_at
    }
}

/// A lock with a fair queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    pub(super) line: Line,
    readers: usize,
    writer: bool,
    queue: VecDeque<(usize, Hold)>,
}

impl Lock {
    /// Takes the lock, or joins its queue.
    pub(super) fn take(&mut self, cpu: usize, hold: Hold) -> bool {
        let is_free = self.queue.is_empty()
            && match hold {
                Hold::Shared => !self.writer,
                Hold::Exclusive => !self.writer && self.readers == 0,
            };
        if is_free {
            self.give(hold);
        } else {
            self.queue.push_back((cpu, hold));
        }
        is_free
    }

    fn give(&mut self, hold: Hold) {
        match hold {
            Hold::Shared => self.readers += 1,
            Hold::Exclusive => self.writer = true,
        }
    }

    /// Gives the lock back; returns who has it now, of those that waited.
    pub(super) fn release(&mut self, hold: Hold) -> Vec<usize> {
        match hold {
            Hold::Shared => self.readers -= 1,
            Hold::Exclusive => self.writer = false,
        }
        self.serve()
    }

    /// A writer goes on as a reader.
    pub(super) fn downgrade(&mut self) -> Vec<usize> {
        (self.writer, self.readers) = (false, self.readers + 1);
        self.serve()
    }

    fn serve(&mut self) -> Vec<usize> {
        let mut served = Vec::new();
        while let Some((cpu, hold)) = self.queue.front().copied() {
            let is_free = !self.writer && (hold == Hold::Shared || self.readers == 0);
            if !is_free {
                break;
            }
            self.queue.pop_front();
            self.give(hold);
            served.push(cpu);
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::parameters::Parameters;

    #[test]
    fn writers_exclude_and_readers_do_not() {
        let mut lock = Lock::default();
        assert!(lock.take(0, Hold::Shared) && lock.take(1, Hold::Shared));
        assert!(!lock.take(2, Hold::Exclusive) && !lock.take(3, Hold::Shared));
        assert!(lock.release(Hold::Shared).is_empty());
        assert_eq!(lock.release(Hold::Shared), [2]);
        assert_eq!(lock.downgrade(), [3]);
        assert!(lock.release(Hold::Shared).is_empty() && lock.release(Hold::Shared).is_empty());
        assert!(lock.take(4, Hold::Exclusive));
    }

    #[test]
    fn a_line_serves_one_cpu_at_a_time() {
        let topology = Topology::new(4, &Parameters::START);
        let mut line = Line::default();
        assert_eq!(line.write(0, 100, 5, &topology), 105);
        assert_eq!(line.write(0, 200, 5, &topology), 205);
        let done = line.write(1, 200, 5, &topology);
        assert_eq!(done, 205 + topology.line(0, 1) + 5);
        assert!(line.write(2, 200, 5, &topology) > done);
    }
}
