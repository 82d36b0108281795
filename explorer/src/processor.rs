//! What simulated CPUs do, as the code that runs on them calls it.
//!
//! Outside a run, and while a run is being set up, all of this happens at once and nothing is chosen.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;

use corosensei::Yielder;

use crate::execution::{Execution, Resume};
use crate::memory::Word;
use crate::{Access, AtomicU64, Declaration, Digest, Hardware, Outcome, Step};

thread_local! {
    /// The run on this thread.
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
    /// Whether the CPUs run, and a step is a decision. Kept apart since every access asks it.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Puts a run on this thread; gives back the one that was there.
pub(crate) fn install(execution: Option<Execution>) -> Option<Execution> {
    RUNNING.set(false);
    EXECUTION.replace(execution)
}

pub(crate) fn set_running(running: bool) {
    RUNNING.set(running);
}

/// Works on the run, if there is one. Nothing that `work` calls may come here again.
pub(crate) fn with<R>(work: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    EXECUTION.with_borrow_mut(|execution| execution.as_mut().map(work))
}

fn is_running() -> bool {
    // A failed assertion unwinds through destructors, which make accesses: they no longer matter.
    RUNNING.get() && !std::thread::panicking()
}

/// The CPU that runs this.
pub fn current_cpu() -> usize {
    with(|execution| execution.current).unwrap_or(0)
}

/// Stops before a step, until the schedule says that this CPU makes it. Interrupts are taken here.
pub fn step(next: Step) {
    if !is_running() {
        return;
    }
    // Once something was found wrong, this never returns: the run is over.
    while with(|execution| execution.has_failed()).unwrap_or(false) {
        suspend(Step::Failed);
    }
    loop {
        match suspend(next) {
            Resume::Interrupt => take_interrupt(),
            Resume::Unmaskable => take_unmaskable(),
            Resume::Go | Resume::End => return,
        }
        if matches!(next, Step::Wait) {
            looks_again();
            return;
        }
    }
}

/// Whether an interrupt was taken since this CPU last looked whether it must wait. Its handler has read other things since than
/// what the CPU waits for, so the CPU looks again.
fn looks_again() -> bool {
    with(|execution| std::mem::take(&mut execution.processor().disturbed)).unwrap_or(false)
}

#[allow(unsafe_code)]
fn suspend(next: Step) -> Resume {
    let yielder = with(|execution| execution.processor().yielder).expect("a run is going on");
    // SAFETY: set by the coroutine of the current CPU, which is the one that runs this (one runs at a time, and the scheduler sets
    // `current` before it resumes one); a yielder lives as long as its coroutine's stack.
    unsafe { (*yielder).suspend(next) }
}

pub(crate) fn set_yielder(yielder: &Yielder<Resume, Step>) {
    with(|execution| execution.processor().yielder = std::ptr::from_ref(yielder));
}

fn take_interrupt() {
    let hardware = with(|execution| {
        let processor = execution.processor();
        (processor.masked, processor.disturbed) = (true, true);
        processor.history = processor.history.with(!1);
        execution.hardware()
    });
    hardware.expect("a run is going on").interrupt();
    // What returns from an interrupt serialises.
    serialise();
    mask(false);
}

fn take_unmaskable() {
    let taken = with(|execution| {
        let processor = execution.processor();
        let was_masked = std::mem::replace(&mut processor.masked, true);
        (processor.disturbed, processor.beyond_masks) = (true, true);
        (execution.hardware(), was_masked)
    });
    let (hardware, was_masked) = taken.expect("a run is going on");
    hardware.unmaskable();
    serialise();
    with(|execution| {
        let processor = execution.processor();
        (processor.masked, processor.beyond_masks) = (was_masked, false);
    });
}

/// Allows so many interrupts that cannot be masked to come to a CPU.
pub fn unmaskable(cpu: usize, count: u8) {
    with(|execution| execution.processors[cpu].unmaskable = count);
}

/// Lets the thread on this CPU be moved to another CPU, wherever interrupts are not masked, or not any more. Says how it was.
///
/// It changes places with a thread that may be moved too; what both stored is visible then. What a change of the address space
/// would take is not done: both must use the same.
pub fn preemptible(may_move: bool) -> bool {
    with(|execution| std::mem::replace(&mut execution.processor().preemptible, may_move)).unwrap_or(false)
}

/// Waits until something that this CPU read last has changed.
///
/// # Panics
/// While a run is being set up: nobody else would change it.
pub fn wait() {
    assert!(is_running() || std::thread::panicking(), "what sets a run up waits for ever");
    if !looks_again() {
        step(Step::Wait);
    }
}

/// Whether this CPU takes no interrupts.
pub fn is_masked() -> bool {
    with(|execution| execution.processor().masked).unwrap_or(false)
}

/// Lets this CPU take no interrupts, or take them again. Says how it was.
pub fn mask(masked: bool) -> bool {
    with(|execution| std::mem::replace(&mut execution.processor().masked, masked)).unwrap_or(false)
}

/// Sends an interrupt. All that this CPU stored before is visible then.
pub fn send_interrupt(target: usize) {
    serialise();
    with(|execution| execution.processors[target].pending = true);
}

/// Waits until all that this CPU stored is visible, as a serialising instruction does.
pub fn serialise() {
    loop {
        let drained = with(|execution| execution.memory.drain(execution.current)).flatten();
        let Some(store) = drained else { return };
        with(|execution| execution.hardware()).expect("a run is going on").stored(&store);
    }
}

/// Tells the run what this CPU has learnt by other means than an access, which its later steps depend on.
pub fn observe(knowledge: u64) {
    with(|execution| {
        let processor = execution.processor();
        processor.history = processor.history.with(knowledge);
    });
}

/// Lets a CPU make no step and take no interrupt, or lets it go on.
pub fn pause(cpu: usize, paused: bool) {
    with(|execution| execution.processors[cpu].paused = paused);
}

/// Whether a CPU's program is over, and no interrupt is before it.
pub fn is_over(cpu: usize) -> bool {
    let over = |execution: &mut Execution| {
        let processor = &execution.processors[cpu];
        matches!(processor.step, Step::Idle) && !processor.pending
    };
    with(over).unwrap_or(false)
}

/// Makes all that a CPU stored visible, at a moment of the hardware's choice.
pub fn serialise_cpu(cpu: usize) {
    let before = with(|execution| std::mem::replace(&mut execution.current, cpu));
    serialise();
    with(|execution| execution.current = before.unwrap_or(0));
}

/// Says that something is wrong. The run ends before the next step.
pub fn fail(sentence: String) {
    with(|execution| execution.fail(sentence));
}

/// Adds a line to the story, if it is told.
pub fn narrate(line: impl FnOnce() -> String) {
    let told = |execution: &mut Execution| {
        (RUNNING.get() && execution.story.is_some() && execution.has_hardware()).then(|| execution.hardware())
    };
    let teller = with(told).flatten();
    if let Some(hardware) = teller {
        let (line, picture) = (line(), hardware.picture());
        with(|execution| execution.tell(line, picture));
    }
}

/// Adds a line about another CPU to the story, if it is told.
pub fn narrate_of(cpu: usize, line: impl FnOnce() -> String) {
    let before = with(|execution| std::mem::replace(&mut execution.current, cpu));
    narrate(line);
    with(|execution| execution.current = before.unwrap_or(0));
}

/// Names memory by its offset from `start`, wherever the host put it.
pub fn region(start: usize, length: usize) {
    with(|execution| execution.memory.add_region(start, length));
}

/// The code under check declares something.
pub fn declare(declaration: Declaration) {
    let hardware = with(|execution| execution.has_hardware().then(|| execution.hardware())).flatten();
    if let Some(hardware) = hardware {
        hardware.declared(declaration);
    }
}

/// A load.
pub(crate) fn load(word: Word, line: &'static Location<'static>) -> u64 {
    step(Step::Memory { address: word.address(), access: Access::Load, line });
    let found = with(|execution| {
        let value = execution.memory.load(execution.current, word);
        execution.learn(word, value, 1);
        value
    });
    let value = found.unwrap_or_else(|| word.get());
    narrate(|| format!("load   {} -> {value:#x}", place(line)));
    value
}

/// What a load of the current CPU finds in a word, as part of a step of the hardware's.
pub fn load_now(word: &AtomicU64) -> u64 {
    let word = word.word();
    let found = with(|execution| {
        let value = execution.memory.load(execution.current, word);
        execution.learn(word, value, 4);
        value
    });
    found.unwrap_or_else(|| word.get())
}

/// A plain store of the current CPU, as part of a step of the hardware's that stores. Says whether it is visible at once.
pub fn store_now(word: &AtomicU64, value: u64, note: u64) -> bool {
    put(word.word(), value, note)
}

/// Whether a run is going on: an assertion that fails now is a finding.
pub fn is_exploring() -> bool {
    RUNNING.get()
}

/// Attaches the hardware, early while a run is being set up.
pub fn attach(hardware: Rc<dyn Hardware>) {
    with(|execution| execution.hardware = Some(hardware));
}

/// Runs `work` as that CPU, while a run is being set up or is over.
pub fn as_cpu<R>(cpu: usize, work: impl FnOnce() -> R) -> R {
    assert!(!is_running(), "CPUs are chosen by the schedule");
    let before = with(|execution| std::mem::replace(&mut execution.current, cpu));
    let result = work();
    with(|execution| execution.current = before.unwrap_or(0));
    result
}

/// A plain store.
pub(crate) fn store(word: Word, value: u64, note: u64, line: &'static Location<'static>) {
    step(Step::Memory { address: word.address(), access: Access::Store, line });
    let is_visible = put(word, value, note);
    narrate(|| {
        let waits = if is_visible { "" } else { ", which waits in its buffer" };
        format!("store  {} <- {value:#x}{waits}", place(line))
    });
}

fn put(word: Word, value: u64, note: u64) -> bool {
    let put = with(|execution| {
        execution.learn(word, value, 2);
        let hold = std::mem::take(&mut execution.holds_next);
        let visible = execution.memory.store(execution.current, word, value, note, hold);
        (visible, execution.has_hardware().then(|| execution.hardware()))
    });
    let is_visible = put.as_ref().is_none_or(|(visible, _)| visible.is_some());
    match put {
        None => word.set(value),
        Some((Some(store), Some(hardware))) => hardware.stored(&store),
        Some(_) => {}
    }
    is_visible
}

/// A locked operation: what was there, and whether `change` wanted another value there.
pub(crate) fn exchange(
    word: Word,
    change: impl Fn(u64) -> Option<u64>,
    line: &'static Location<'static>,
) -> Result<u64, u64> {
    step(Step::Memory { address: word.address(), access: Access::Locked, line });
    serialise();
    let old = word.get();
    let new = change(old);
    let known = with(|execution| {
        execution.learn(word, old, 3);
        if let Some(new) = new {
            execution.memory.store_visibly(execution.current, word, new);
        }
    });
    if let (None, Some(new)) = (known, new) {
        word.set(new);
    }
    narrate(|| match new {
        Some(new) => format!("locked {} {old:#x} -> {new:#x}", place(line)),
        None => format!("locked {} finds {old:#x}", place(line)),
    });
    new.map(|_| old).ok_or(old)
}

/// A full fence.
pub(crate) fn full_fence(line: &'static Location<'static>) {
    step(Step::Fence { line });
    serialise();
    narrate(|| format!("fence  {}", place(line)));
}

/// A line of the code, as short as it can be.
pub(crate) fn place(line: &Location<'_>) -> String {
    let file = line.file().rsplit_once("/src/").map_or(line.file(), |(before, file)| {
        let package = before.rsplit('/').next().unwrap_or_default();
        &line.file()[line.file().len() - file.len() - "/src/".len() - package.len()..]
    });
    format!("{file}:{}", line.line())
}

/// Runs the rest of a program of one CPU: takes interrupts until the run ends.
pub(crate) fn idle() {
    loop {
        match suspend(Step::Idle) {
            Resume::Interrupt => take_interrupt(),
            Resume::Unmaskable => take_unmaskable(),
            Resume::End => return,
            Resume::Go => {}
        }
    }
}

pub(crate) type SharedHardware = Rc<dyn Hardware>;

/// The history of a CPU: all that its program can know.
pub(crate) type History = Digest;

pub(crate) fn take_outcome() -> Option<Outcome> {
    with(Execution::outcome)
}
