//! What a CPU does about a request: the decision table.
//!
//! With L for what the CPU's slot has caught up with, R for the request's generation and C for the space's current one:
//!
//! | the first that applies | what is done | L becomes |
//! |---|---|---|
//! | no space is loaded | nothing | L |
//! | another space is loaded | nothing; L is compared when this one is loaded again | L |
//! | the space is only borrowed | the kernel root is loaded | L |
//! | R <= L | nothing: an earlier flush covered it | L |
//! | R = L + 1 = C, and R names a range | the range is invalidated page by page | C |
//! | R names a range, and is this CPU's own, which reaches the others remotely | the range is invalidated page by page | L |
//! | anything else | everything is invalidated | C |
//!
//! C is read late, so that one flush of everything serves all requests up to then. The row with R = L + 1 = C must not be taken with
//! C > R: it would invalidate one range and claim to be up to date with all the others. Nor with R > L + 1: the same for what
//! was missed before. On a machine that flushes remotely L seldom moves, as no handler runs where a flush arrives, so that
//! every request would find a gap. The row after it drops the range alone and claims nothing: whatever else is missing from
//! L has reached this CPU or will (`remote.rs`).

//!
//! A batch's round (`batch.rs`) names neither space nor generation, as it is for whatever the CPU has loaded:
//!
//! | the first that applies | what is done | L becomes |
//! |---|---|---|
//! | no space is loaded | nothing | L |
//! | the space is only borrowed | nothing; L is compared before it is used again | L |
//! | L = C | nothing: all that was recorded has been flushed | L |
//! | anything else | everything is invalidated | C |

use crate::flush::Extent;
use crate::{Flush, Generation, Outcome, SpaceId};

/// What an initiator asks of its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) space: SpaceId,
    pub(crate) generation: Generation,
    pub(crate) flush: Flush,
}

/// What the decision of a target depends on, beside the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// What the CPU has loaded.
    pub(crate) loaded: Option<SpaceId>,
    /// Whether it only borrows that.
    pub(crate) lazy: bool,
    /// The generation with which its slot has caught up.
    pub(crate) caught_up: Generation,
    /// Whether generations may be relied on (the mechanism of that name).
    pub(crate) generations: bool,
    /// Whether the request is this CPU's own, and reaches the others remotely.
    pub(crate) remote: bool,
}

/// The decision table of a CPU that has a request before it. The first row that applies gives the answer.
///
/// `current` reads the space's generation, late, so that one flush serves as many requests as possible. It is called only if
/// the space is the loaded one. Returned with the outcome is the generation that the CPU has caught up with afterwards.
pub(crate) fn decide(
    standing: &Standing,
    request: &Request,
    current: impl FnOnce() -> Generation,
) -> (Outcome, Generation) {
    let caught_up = standing.caught_up;
    match standing.loaded {
        None => return (Outcome::KernelRoot, caught_up),
        Some(loaded) if loaded != request.space => return (Outcome::NotLoaded, caught_up),
        // The slot stays behind, and is compared when the space is next loaded.
        Some(_) if standing.lazy => return (Outcome::LeftLazy, caught_up),
        Some(_) => {}
    }
    if standing.generations && request.generation <= caught_up {
        return (Outcome::Covered, caught_up);
    }
    let current = current();
    if !standing.generations {
        return (Outcome::FullRequested, current);
    }
    // Only this request is missing: nothing before it was missed, and nothing after it has been asked for yet. Otherwise to
    // invalidate its range alone and then to claim `current` would forget the others' ranges.
    let only_this = request.generation == caught_up.next() && request.generation == current;
    match request.flush.extent {
        Extent::Range(_) if only_this => (Outcome::Ranged, current),
        Extent::All if only_this => (Outcome::FullRequested, current),
        Extent::Range(_) if standing.remote => (Outcome::Ranged, caught_up),
        _ => (Outcome::FullBehind, current),
    }
}

/// The decision table of a CPU that a batch's round has reached. `current` as in [`decide`].
pub(crate) fn decide_catching_up(
    standing: &Standing,
    current: impl FnOnce() -> Generation,
) -> (Outcome, Generation) {
    let caught_up = standing.caught_up;
    match standing.loaded {
        None => return (Outcome::KernelRoot, caught_up),
        Some(_) if standing.lazy => return (Outcome::StayedLazy, caught_up),
        Some(_) => {}
    }
    match current() {
        current if !standing.generations => (Outcome::FullRequested, current),
        current if current == caught_up => (Outcome::Covered, caught_up),
        current => (Outcome::FullBehind, current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Flush = Flush::range(0x1000, 0x3000, 0x1000);

    fn space(number: u64) -> SpaceId {
        SpaceId::from_number(number).unwrap()
    }

    fn request(generation: u64, flush: Flush) -> Request {
        Request { space: space(7), generation: Generation::new(generation), flush }
    }

    /// A CPU that uses space 7 and has caught up with a generation.
    fn at(caught_up: u64) -> Standing {
        Standing {
            loaded: Some(space(7)),
            lazy: false,
            caught_up: Generation::new(caught_up),
            generations: true,
            remote: false,
        }
    }

    fn decided(standing: Standing, request: Request, current: u64) -> (Outcome, u64) {
        let (outcome, caught_up) = decide(&standing, &request, || Generation::new(current));
        (outcome, caught_up.number())
    }

    #[track_caller]
    fn never_reads_current(standing: Standing, request: Request) -> (Outcome, u64) {
        let (outcome, caught_up) = decide(&standing, &request, || panic!("the generation was read"));
        (outcome, caught_up.number())
    }

    #[test]
    fn without_a_space_there_is_nothing_to_do() {
        let standing = Standing { loaded: None, ..at(3) };
        assert_eq!(never_reads_current(standing, request(4, RANGE)), (Outcome::KernelRoot, 3));
    }

    #[test]
    fn another_space_stays_behind() {
        let standing = Standing { loaded: Some(space(8)), ..at(3) };
        assert_eq!(never_reads_current(standing, request(4, RANGE)), (Outcome::NotLoaded, 3));
        let lazy = Standing { lazy: true, ..standing };
        assert_eq!(never_reads_current(lazy, request(4, RANGE)), (Outcome::NotLoaded, 3));
    }

    #[test]
    fn a_borrowed_space_is_let_go_and_stays_behind() {
        let standing = Standing { lazy: true, ..at(3) };
        assert_eq!(never_reads_current(standing, request(4, RANGE)), (Outcome::LeftLazy, 3));
        assert_eq!(never_reads_current(standing, request(2, RANGE)), (Outcome::LeftLazy, 3));
    }

    #[test]
    fn an_old_request_is_covered_without_a_look() {
        assert_eq!(never_reads_current(at(3), request(3, RANGE)), (Outcome::Covered, 3));
        assert_eq!(never_reads_current(at(3), request(1, Flush::all())), (Outcome::Covered, 3));
    }

    #[test]
    fn exactly_one_behind_invalidates_the_range() {
        assert_eq!(decided(at(3), request(4, RANGE), 4), (Outcome::Ranged, 4));
        assert_eq!(decided(at(3), request(4, Flush::all()), 4), (Outcome::FullRequested, 4));
    }

    #[test]
    fn an_older_gap_invalidates_everything() {
        assert_eq!(decided(at(2), request(4, RANGE), 4), (Outcome::FullBehind, 4));
        assert_eq!(decided(at(2), request(4, Flush::all()), 4), (Outcome::FullBehind, 4));
    }

    #[test]
    fn a_newer_request_is_served_along() {
        assert_eq!(decided(at(3), request(4, RANGE), 5), (Outcome::FullBehind, 5));
        assert_eq!(never_reads_current(at(5), request(5, RANGE)), (Outcome::Covered, 5));
    }

    #[test]
    fn a_remote_request_of_its_own_invalidates_the_range_and_claims_nothing() {
        let remote = |caught_up| Standing { remote: true, ..at(caught_up) };
        assert_eq!(decided(remote(2), request(4, RANGE), 4), (Outcome::Ranged, 2));
        assert_eq!(decided(remote(3), request(4, RANGE), 5), (Outcome::Ranged, 3));
        assert_eq!(decided(remote(3), request(4, RANGE), 4), (Outcome::Ranged, 4));
        assert_eq!(decided(remote(2), request(4, Flush::all()), 5), (Outcome::FullBehind, 5));
        let lazy = Standing { lazy: true, ..remote(2) };
        assert_eq!(never_reads_current(lazy, request(4, RANGE)), (Outcome::LeftLazy, 2));
    }

    #[test]
    fn without_generations_every_request_is_a_full_flush() {
        let standing = |caught_up| Standing { generations: false, ..at(caught_up) };
        assert_eq!(decided(standing(3), request(4, RANGE), 4), (Outcome::FullRequested, 4));
        assert_eq!(decided(standing(4), request(4, RANGE), 4), (Outcome::FullRequested, 4));
        assert_eq!(decided(standing(2), request(3, RANGE), 6), (Outcome::FullRequested, 6));
    }

    #[test]
    fn a_batch_makes_a_cpu_catch_up_with_what_it_has_loaded() {
        let decided = |standing: Standing, current| {
            let (outcome, caught_up) = decide_catching_up(&standing, || Generation::new(current));
            (outcome, caught_up.number())
        };
        assert_eq!(decided(at(3), 3), (Outcome::Covered, 3));
        assert_eq!(decided(at(3), 4), (Outcome::FullBehind, 4));
        assert_eq!(decided(at(3), 9), (Outcome::FullBehind, 9));
        assert_eq!(decided(Standing { lazy: true, ..at(3) }, 4), (Outcome::StayedLazy, 3));
        assert_eq!(decided(Standing { loaded: None, ..at(3) }, 4), (Outcome::KernelRoot, 3));
        let without = Standing { generations: false, ..at(3) };
        assert_eq!(decided(without, 3), (Outcome::FullRequested, 3));
        assert_eq!(decided(without, 9), (Outcome::FullRequested, 9));
    }

    /// What the table owes, from the other side: a CPU claims a generation only if it dropped what was removed before it.
    #[test]
    fn no_claim_without_a_flush() {
        for (caught_up, requested, current) in
            (0..5).flat_map(|l| (1..5).flat_map(move |r| (r..6).map(move |c| (l, r, c))))
        {
            for flush in [RANGE, Flush::all()] {
                let (outcome, claimed) = decided(at(caught_up), request(requested, flush), current);
                let dropped: Option<u64> = match outcome {
                    // Everything up to now.
                    Outcome::FullRequested | Outcome::FullBehind => Some(current),
                    // What this request removed, on top of what was dropped before.
                    Outcome::Ranged => (requested == caught_up + 1).then_some(requested),
                    _ => Some(caught_up),
                };
                assert!(Some(claimed) <= dropped, "{caught_up} {requested} {current} {outcome:?}");
                assert!(claimed >= requested.min(current), "a request remains unserved: {outcome:?}");
            }
        }
    }
}
