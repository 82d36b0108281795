//! What is known of x86's memory, of locks and of interrupts: the explorer must find what can happen, and only that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use explorer::{
    AtomicU64, Declaration, Digest, ExclusiveLock, Exhaustive, Finding, Hardware, Outcome, Priorities,
    Program, Random, Replay, Schedule, SharedLock, Step, Store, Strategy, explore, fence, run,
};

/// No hardware but an interrupt.
#[derive(Default)]
struct Bare {
    taken: Cell<u64>,
}

impl Hardware for Bare {
    fn events(&self, _: &Step, _: &mut Vec<u64>) {}
    fn perform(&self, _: u64) {}
    fn interrupt(&self) {
        self.taken.set(self.taken.get() + 1);
    }
    fn state(&self) -> Digest {
        Digest::EMPTY.with(self.taken.get())
    }
    fn stored(&self, _: &Store) {}
    fn declared(&self, _: Declaration) {}
    fn picture(&self) -> String {
        String::new()
    }
}

type Memory = Arc<[AtomicU64; 4]>;
type Code = fn(&Memory) -> u64;

fn program(codes: &'static [Code], results: Rc<RefCell<BTreeSet<Vec<u64>>>>) -> Program {
    explorer::attach(Rc::new(Bare::default()));
    let memory: Memory = Arc::default();
    let found: Rc<RefCell<Vec<u64>>> = Rc::new(RefCell::new(vec![0; codes.len()]));
    let cpus = codes.iter().enumerate().map(|(cpu, code)| -> Box<dyn FnOnce()> {
        let (memory, found) = (memory.clone(), found.clone());
        Box::new(move || {
            let result = code(&memory);
            found.borrow_mut()[cpu] = result;
        })
    });
    let cpus = cpus.collect();
    let finally = Box::new(move || {
        // Keeps the memory until the end.
        drop(memory);
        results.borrow_mut().insert(found.take());
        Ok(())
    });
    Program { cpus, finally }
}

/// All results that some schedule up to a price leads to, and the finding if there is one.
fn results(codes: &'static [Code], strategy: &mut dyn Strategy) -> (BTreeSet<Vec<u64>>, Option<Outcome>) {
    let results = Rc::new(RefCell::new(BTreeSet::new()));
    let (_, outcome) = explore(strategy, codes.len(), &|| program(codes, results.clone()), |_| true);
    (results.take(), outcome)
}

fn all(codes: &'static [Code]) -> BTreeSet<Vec<u64>> {
    let (results, outcome) = results(codes, &mut Exhaustive::new(4));
    assert_eq!(outcome.map(|outcome| outcome.finding), None);
    results
}

fn finding(codes: &'static [Code]) -> (Finding, Schedule) {
    let (_, outcome) = results(codes, &mut Exhaustive::new(3));
    let outcome = outcome.expect("something is found");
    (outcome.finding.unwrap(), outcome.schedule)
}

const STORE_X_LOAD_Y: Code = |memory| {
    memory[0].store(1, Release);
    memory[1].load(Relaxed)
};
const STORE_Y_LOAD_X: Code = |memory| {
    memory[1].store(1, Release);
    memory[0].load(Relaxed)
};

#[test]
fn stores_wait_while_loads_go_on() {
    assert!(all(&[STORE_X_LOAD_Y, STORE_Y_LOAD_X]).contains(&vec![0, 0]));
    let mut random = Random::new(1, 2000);
    assert!(results(&[STORE_X_LOAD_Y, STORE_Y_LOAD_X], &mut random).0.contains(&vec![0, 0]));
}

#[test]
fn the_pieces_of_a_search_find_together_what_one_search_finds() {
    let codes: &[Code] = &[STORE_X_LOAD_Y, STORE_Y_LOAD_X, ADD];
    let found_by = |mut search: Exhaustive| (results(codes, &mut search).0, search.states());
    let (whole, states) = found_by(Exhaustive::new(4));
    for of in [2, 3, 7, 100] {
        let pieces: Vec<_> = (0..of).map(|index| found_by(Exhaustive::piece(4, index, of))).collect();
        assert!(pieces.iter().all(|(_, of_piece)| *of_piece < states), "a piece did all the work");
        let together: BTreeSet<_> = pieces.into_iter().flat_map(|(found, _)| found).collect();
        assert_eq!(together, whole, "{of} pieces");
    }
}

#[test]
fn fences_and_locked_operations_wait_for_stores() {
    let fenced = all(&[
        |memory| {
            memory[0].store(1, Relaxed);
            fence(SeqCst);
            memory[1].load(Relaxed)
        },
        |memory| {
            memory[1].swap(1, Relaxed);
            memory[0].load(Relaxed)
        },
    ]);
    assert_eq!(fenced, BTreeSet::from([vec![0, 1], vec![1, 0], vec![1, 1]]));
}

#[test]
fn stores_and_loads_keep_their_order() {
    let passed = all(&[
        |memory| {
            memory[0].store(1, Relaxed);
            memory[1].store(1, Relaxed);
            0
        },
        |memory| memory[1].load(Relaxed) * 2 + memory[0].load(Relaxed),
    ]);
    assert!(!passed.contains(&vec![0, 2]), "the second store was seen before the first");
    assert_eq!(passed.len(), 3);
    let loads_first = all(&[
        |memory| {
            let seen = memory[0].load(Relaxed);
            memory[1].store(1, Relaxed);
            seen
        },
        |memory| {
            let seen = memory[1].load(Relaxed);
            memory[0].store(1, Relaxed);
            seen
        },
    ]);
    assert!(!loads_first.contains(&vec![1, 1]), "a store was seen before the load ahead of it was made");
}

#[test]
fn a_cpu_sees_its_own_stores() {
    let own = all(&[
        |memory| {
            memory[0].store(1, Relaxed);
            memory[0].load(Relaxed)
        },
        |memory| memory[0].load(Relaxed),
    ]);
    assert_eq!(own, BTreeSet::from([vec![1, 0], vec![1, 1]]));
}

const ADD: Code = |memory| {
    let seen = memory[0].load(Relaxed);
    memory[0].store(seen + 1, Relaxed);
    memory[0].load(Relaxed)
};

#[test]
fn updates_are_lost_without_a_lock() {
    let (lost, _) = results(&[ADD, ADD], &mut Exhaustive::new(1));
    assert!(lost.contains(&vec![1, 1]), "{lost:?}");
    let (lost, _) = results(&[ADD, ADD], &mut Priorities::new(3, 500, 2));
    assert!(lost.contains(&vec![1, 1]), "{lost:?}");
}

static LOCK: ExclusiveLock = ExclusiveLock::new();
static SHARED: SharedLock = SharedLock::new();

#[test]
fn locks_exclude() {
    const LOCKED: Code = |memory| {
        LOCK.lock();
        let sum = ADD(memory);
        LOCK.unlock();
        sum
    };
    assert_eq!(all(&[LOCKED, LOCKED]), BTreeSet::from([vec![1, 2], vec![2, 1]]));
    const WRITER: Code = |memory| {
        SHARED.lock_exclusive();
        let sum = ADD(memory);
        SHARED.unlock_exclusive();
        sum
    };
    const READER: Code = |memory| {
        SHARED.lock_shared();
        let twice = memory[0].load(Relaxed) + memory[0].load(Relaxed);
        SHARED.unlock_shared();
        twice % 2
    };
    let seen = all(&[WRITER, READER, READER]);
    assert!(seen.iter().all(|result| result[1..] == [0, 0]), "{seen:?}");
}

#[test]
fn waiting_for_each_other_is_found_and_told() {
    const FIRST: Code = |memory| {
        while memory[0].swap(1, Relaxed) == 1 {
            explorer::wait();
        }
        while memory[1].swap(1, Relaxed) == 1 {
            explorer::wait();
        }
        memory[1].store(0, Release);
        memory[0].store(0, Release);
        0
    };
    const SECOND: Code = |memory| {
        while memory[1].swap(1, Relaxed) == 1 {
            explorer::wait();
        }
        while memory[0].swap(1, Relaxed) == 1 {
            explorer::wait();
        }
        memory[0].store(0, Release);
        memory[1].store(0, Release);
        0
    };
    let (finding, schedule) = finding(&[FIRST, SECOND]);
    assert!(finding.sentence.starts_with("nobody can go on: CPU 0 waits at "), "{}", finding.sentence);
    // The schedule makes the same run again, and its story is told line by line.
    let results = Rc::default();
    let again = || program(&[FIRST, SECOND], Rc::clone(&results));
    let outcome = run(&mut Replay::new(schedule), 2, true, &again).unwrap();
    assert_eq!(outcome.finding, Some(finding));
    assert!(outcome.story[0].0.contains("locked explorer/tests/litmus.rs"), "{:?}", outcome.story[0]);
}

#[test]
fn interrupts_come_late_and_not_while_masked() {
    let seen = all(&[
        |memory| {
            memory[0].store(1, Relaxed);
            explorer::send_interrupt(1);
            0
        },
        |memory| {
            let was_masked = explorer::mask(true);
            let first = memory[0].load(Relaxed);
            let second = memory[0].load(Relaxed);
            explorer::mask(was_masked);
            first * 2 + second
        },
    ]);
    assert_eq!(seen, BTreeSet::from([vec![0, 0], vec![0, 1], vec![0, 3]]));
}

#[test]
fn a_failed_assertion_is_a_finding() {
    let (finding, _) = finding(&[
        |_| 0,
        |memory| {
            assert_eq!(memory[0].load(Relaxed), 1, "not one");
            0
        },
    ]);
    assert!(finding.sentence.contains("not one"));
    assert_eq!(finding.cpu, 1);
}

#[test]
fn what_never_ends_is_found() {
    let (finding, _) = finding(&[|memory| {
        loop {
            memory[0].fetch_add(1, Relaxed);
        }
    }]);
    assert!(finding.sentence.starts_with("no end"));
}
