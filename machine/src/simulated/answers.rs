//! What calls and accesses of this machine answer, in the words of the fuzzing's traces.

use fuzz::{Answer, PAGE, USER_END};
use memory::{Error, Fault, PageRange};

use super::machine::SimulatedSpace;

/// A load's answer.
pub(super) fn access(result: Result<u64, Fault>) -> Answer {
    result.map_or_else(fault, Answer::Number)
}

/// An access's refusal.
pub(super) fn fault(fault: Fault) -> Answer {
    match fault {
        Fault::NotMapped => Answer::NotMapped,
        Fault::NotAllowed => Answer::NotAllowed,
        Fault::Bus | Fault::Abandoned => Answer::Bus,
        Fault::OutOfMemory => Answer::Odd("no-memory".into()),
    }
}

/// A call's refusal, by Linux's number.
pub(super) fn error(error: Error) -> Answer {
    Answer::Error(match error {
        Error::Permission => 1,
        Error::NotFound => 2,
        Error::Ended => 3,
        Error::Again => 11,
        Error::OutOfMemory => 12,
        Error::NotAllowed => 13,
        Error::NotMapped => 14,
        Error::Busy => 16,
        Error::Exists => 17,
        Error::Invalid => 22,
        Error::Overflow => 75,
    })
}

/// `mincore`, whose arguments the kernel checks.
pub(super) fn incore(space: &SimulatedSpace, at: u64, length: u64) -> Answer {
    if !at.is_multiple_of(PAGE) {
        return Answer::Error(22);
    }
    if at.checked_add(length).is_none_or(|end| end > USER_END) {
        return Answer::Error(12);
    }
    let Ok(range) = PageRange::new(at, length) else { return Answer::Core(Vec::new()) };
    let mut pages = vec![false; range.pages().min(1 << 12) as usize];
    space.incore(range, &mut pages).map_or_else(error, |()| Answer::Core(pages))
}

/// What a call is about, as the oracle sees it: the pages that it names, as far as they are some.
pub(super) fn range(at: u64, length: u64) -> PageRange {
    let start = (at & !(PAGE - 1)).min(USER_END - PAGE);
    let length = length.clamp(1, USER_END - start);
    PageRange::new(start, length).unwrap_or_else(|_| super::user::pages(start, 1))
}
