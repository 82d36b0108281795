//! Memory barriers on other CPUs: the litmus families of `membarrier` (coherence.md 4.7), each for each form of the call.
//!
//! CPU 0 asks for a barrier between a store and a load. CPU 1 runs thread T, which stores and then loads with no fence between the
//! two. Where T's CPU is at that moment makes the family:
//!
//! | | T's CPU |
//! |---|---|
//! | beside user code | runs T all the time: it is interrupted |
//! | A, switching out | goes from T to another process |
//! | B, switching in | comes from another process to T |
//! | C, registering | comes to T while its process registers, or has registered |
//! | D, exit | goes from T to nothing at all |
//! | E, kernel task | borrows T's space, and comes back to T |
//! | crossing | makes a system call between T's stores and loads |

use coherence::Registration;

use super::super::SimulatedEnvironment;
use super::super::scenario::{Scenario, Script};
use super::super::user::pages;
use super::PAGE;

/// What the caller stores and T loads; and the other way round.
const BY_CALLER: u64 = PAGE;
const BY_THREAD: u64 = PAGE + 8;

/// Space 0 on CPUs 0 and 1, registered for all that it may ask for, with a page that both have stored to; space 1 is another process.
pub(super) fn registered(machine: &SimulatedEnvironment) {
    let space = machine.new_space();
    machine.new_space();
    explorer::as_cpu(0, || {
        machine.activate(space);
        machine.register(Registration::Global);
        machine.register(Registration::Cores);
        machine.map(pages(PAGE, 1));
        machine.store(BY_CALLER, 0).expect("it is mapped");
    });
    explorer::as_cpu(1, || {
        machine.activate(space);
        machine.store(BY_THREAD, 0).expect("it is mapped");
    });
}

fn registered_and_elsewhere(machine: &SimulatedEnvironment) {
    registered(machine);
    explorer::as_cpu(1, || machine.activate(1));
}

fn registered_and_borrowing(machine: &SimulatedEnvironment) {
    registered(machine);
    explorer::as_cpu(1, || machine.go_lazy());
}

/// The side of T.
pub(super) fn exchange(machine: &SimulatedEnvironment) {
    machine.store(BY_THREAD, 1).expect("it is mapped");
    machine.load(BY_CALLER).expect("it is mapped");
}

/// The caller's.
fn call(machine: &SimulatedEnvironment, barrier: fn(&SimulatedEnvironment)) {
    machine.store(BY_CALLER, 1).expect("it is mapped");
    barrier(machine);
    machine.load(BY_THREAD).expect("it is mapped");
}

/// The caller of a barrier for its own process.
pub(super) const CALLER: Script = |machine| call(machine, SimulatedEnvironment::barrier);

/// What T's CPU does in each family. Each ends outside user mode, where a grace period does not wait for it.
const USER_CODE: Script = |machine| {
    exchange(machine);
    exchange(machine);
    machine.leave();
};
const SWITCHING_OUT: Script = |machine| {
    exchange(machine);
    machine.activate(1);
    machine.leave();
};
const SWITCHING_IN: Script = |machine| {
    machine.activate(0);
    exchange(machine);
    machine.leave();
};
const EXIT: Script = |machine| {
    exchange(machine);
    machine.leave();
};
const KERNEL_TASK: Script = |machine| {
    machine.go_lazy();
    machine.activate(0);
    exchange(machine);
    machine.go_lazy();
};
const CROSSING: Script = |machine| {
    exchange(machine);
    machine.system_call(|| ());
    exchange(machine);
    machine.leave();
};

/// The scenarios of one form of the call: for each family a name, who T's CPU is to begin with, and what it does.
macro_rules! families {
    ($form:literal, $call:path, $base:expr, [$(($constant:ident, $name:literal, $about:literal, $setup:path, $thread:path),)+]) => {
        $(pub(in super::super) const $constant: Scenario = Scenario {
            name: concat!($form, "-and-", $name),
            about: concat!("a thread stores and loads without a fence, and ", $about, ", while another one asks for a barrier"),
            setup: $setup,
            cpus: &[|machine| call(machine, $call), $thread],
            ..$base
        };)+
    };
}

/// A platform that does not count crossings: every CPU that uses the space is interrupted.
const UNCOUNTED: Scenario = Scenario { bounds: [3, 4, 5], ..Scenario::BASE };
const COUNTED: Scenario = Scenario { crossings: true, ..UNCOUNTED };

families!(
    "barrier",
    SimulatedEnvironment::barrier,
    COUNTED,
    [
        (BARRIER_USER_CODE, "user-code", "stays in user mode", registered, USER_CODE),
        (BARRIER_SWITCHING_OUT, "switching-out", "its CPU switches away", registered, SWITCHING_OUT),
        (
            BARRIER_SWITCHING_IN,
            "switching-in",
            "its CPU comes from elsewhere",
            registered_and_elsewhere,
            SWITCHING_IN
        ),
        (BARRIER_EXIT, "exit", "ends", registered, EXIT),
        (BARRIER_KERNEL_TASK, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK),
        (BARRIER_CROSSING, "crossing", "makes a system call", registered, CROSSING),
    ]
);

families!(
    "uncounted-barrier",
    SimulatedEnvironment::barrier,
    UNCOUNTED,
    [
        (
            UNCOUNTED_SWITCHING_IN,
            "switching-in",
            "its CPU comes from elsewhere",
            registered_and_elsewhere,
            SWITCHING_IN
        ),
        (UNCOUNTED_KERNEL_TASK, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK),
        (
            UNCOUNTED_COMING_BACK,
            "coming-back",
            "its CPU comes back from borrowing its space",
            registered_and_borrowing,
            SWITCHING_IN
        ),
    ]
);

families!(
    "global-barrier",
    SimulatedEnvironment::global_barrier,
    COUNTED,
    [
        (GLOBAL_USER_CODE, "user-code", "stays in user mode", registered, USER_CODE),
        (GLOBAL_SWITCHING_OUT, "switching-out", "its CPU switches away", registered, SWITCHING_OUT),
        (
            GLOBAL_SWITCHING_IN,
            "switching-in",
            "its CPU comes from elsewhere",
            registered_and_elsewhere,
            SWITCHING_IN
        ),
        (GLOBAL_EXIT, "exit", "ends", registered, EXIT),
        (GLOBAL_KERNEL_TASK, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK),
        (GLOBAL_CROSSING, "crossing", "makes a system call", registered, CROSSING),
    ]
);

families!(
    "core-barrier",
    SimulatedEnvironment::core_barrier,
    COUNTED,
    [
        (CORE_USER_CODE, "user-code", "stays in user mode", registered, USER_CODE),
        (CORE_SWITCHING_OUT, "switching-out", "its CPU switches away", registered, SWITCHING_OUT),
        (
            CORE_SWITCHING_IN,
            "switching-in",
            "its CPU comes from elsewhere",
            registered_and_elsewhere,
            SWITCHING_IN
        ),
        (CORE_EXIT, "exit", "ends", registered, EXIT),
        (CORE_KERNEL_TASK, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK),
    ]
);

families!(
    "grace-period",
    SimulatedEnvironment::delayed_barrier,
    COUNTED,
    [
        (DELAYED_USER_CODE, "user-code", "stays in user mode for a while", registered, USER_CODE),
        (DELAYED_SWITCHING_OUT, "switching-out", "its CPU switches away", registered, SWITCHING_OUT),
        (
            DELAYED_SWITCHING_IN,
            "switching-in",
            "its CPU comes from elsewhere",
            registered_and_elsewhere,
            SWITCHING_IN
        ),
        (DELAYED_KERNEL_TASK, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK),
        (DELAYED_CROSSING, "crossing", "makes a system call", registered, CROSSING),
    ]
);
