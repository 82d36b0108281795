//! The coroutines that CPUs are, on stacks that are kept from run to run.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::Step;
use crate::execution::Resume;
use crate::processor::{idle, set_yielder, with};

const STACK: usize = 256 << 10;

/// A CPU's program, which stops before each step and says which it is.
pub(crate) type CpuCoroutine = Coroutine<Resume, Step, (), DefaultStack>;

/// One for each CPU.
pub(crate) type Coroutines = Vec<CpuCoroutine>;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A program, ready to begin.
pub(crate) fn coroutine(program: Box<dyn FnOnce()>) -> CpuCoroutine {
    let pooled = STACKS.with_borrow_mut(Vec::pop);
    let stack = pooled.unwrap_or_else(|| DefaultStack::new(STACK).expect("the host has memory for a stack"));
    Coroutine::with_stack(stack, move |yielder: &Yielder<Resume, Step>, _| {
        set_yielder(yielder);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(program)) {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            crate::fail(format!("the code under check gave up: {text}"));
            loop {
                yielder.suspend(Step::Failed);
            }
        }
        idle();
    })
}

/// Ends all CPUs, which are idle, and keeps their stacks for the next run.
pub(crate) fn end(coroutines: Coroutines) {
    for (cpu, mut coroutine) in coroutines.into_iter().enumerate() {
        with(|execution| execution.current = cpu);
        let ended = coroutine.resume(Resume::End);
        debug_assert!(matches!(ended, CoroutineResult::Return(())));
        STACKS.with_borrow_mut(|stacks| stacks.push(coroutine.into_stack()));
    }
}
