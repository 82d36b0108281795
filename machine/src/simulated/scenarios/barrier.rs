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

/// One scenario: a family (its name, what the thread does in it, how T's CPU begins, what T does) with one form of the call.
macro_rules! scenario {
    ($constant:ident, $name:literal, $about:literal, $setup:path, $thread:path, $form:literal, $call:path, $base:path) => {
        pub(in super::super) const $constant: Scenario = Scenario {
            name: concat!($form, "-and-", $name),
            about: concat!(
                "a thread stores and loads without a fence, and ",
                $about,
                ", while another one asks for a barrier"
            ),
            setup: $setup,
            cpus: &[|machine| call(machine, $call), $thread],
            ..$base
        };
    };
}

/// The families.
macro_rules! family {
    (user_code, $constant:ident, $($form:tt)+) => {
        scenario!($constant, "user-code", "stays in user mode for a while", registered, USER_CODE, $($form)+);
    };
    (switching_out, $constant:ident, $($form:tt)+) => {
        scenario!($constant, "switching-out", "its CPU switches away", registered, SWITCHING_OUT, $($form)+);
    };
    (switching_in, $constant:ident, $($form:tt)+) => {
        scenario!(
            $constant, "switching-in", "its CPU comes from elsewhere", registered_and_elsewhere, SWITCHING_IN, $($form)+
        );
    };
    (coming_back, $constant:ident, $($form:tt)+) => {
        scenario!(
            $constant, "coming-back", "its CPU comes back from borrowing its space", registered_and_borrowing, SWITCHING_IN,
            $($form)+
        );
    };
    (exit, $constant:ident, $($form:tt)+) => {
        scenario!($constant, "exit", "ends", registered, EXIT, $($form)+);
    };
    (kernel_task, $constant:ident, $($form:tt)+) => {
        scenario!($constant, "kernel-task", "a kernel task borrows its space", registered, KERNEL_TASK, $($form)+);
    };
    (crossing, $constant:ident, $($form:tt)+) => {
        scenario!($constant, "crossing", "makes a system call", registered, CROSSING, $($form)+);
    };
}

/// The scenarios of one form of the call, on a platform of one kind.
macro_rules! families {
    ($form:literal, $call:path, $base:path: $($constant:ident of $family:ident,)+) => {
        $(family!($family, $constant, $form, $call, $base);)+
    };
}

/// A platform that does not count crossings: every CPU that uses the space is interrupted.
const UNCOUNTED: Scenario = Scenario { bounds: [3, 4, 5], ..Scenario::BASE };
const COUNTED: Scenario = Scenario { crossings: true, ..UNCOUNTED };

families! {
    "barrier", SimulatedEnvironment::barrier, COUNTED:
    BARRIER_USER_CODE of user_code,
    BARRIER_SWITCHING_OUT of switching_out,
    BARRIER_SWITCHING_IN of switching_in,
    BARRIER_EXIT of exit,
    BARRIER_KERNEL_TASK of kernel_task,
    BARRIER_CROSSING of crossing,
}

families! {
    "uncounted-barrier", SimulatedEnvironment::barrier, UNCOUNTED:
    UNCOUNTED_SWITCHING_IN of switching_in,
    UNCOUNTED_KERNEL_TASK of kernel_task,
    UNCOUNTED_COMING_BACK of coming_back,
}

families! {
    "global-barrier", SimulatedEnvironment::global_barrier, COUNTED:
    GLOBAL_USER_CODE of user_code,
    GLOBAL_SWITCHING_OUT of switching_out,
    GLOBAL_SWITCHING_IN of switching_in,
    GLOBAL_EXIT of exit,
    GLOBAL_KERNEL_TASK of kernel_task,
    GLOBAL_CROSSING of crossing,
}

families! {
    "core-barrier", SimulatedEnvironment::core_barrier, COUNTED:
    CORE_USER_CODE of user_code,
    CORE_SWITCHING_OUT of switching_out,
    CORE_SWITCHING_IN of switching_in,
    CORE_EXIT of exit,
    CORE_KERNEL_TASK of kernel_task,
}

families! {
    "grace-period", SimulatedEnvironment::delayed_barrier, COUNTED:
    DELAYED_USER_CODE of user_code,
    DELAYED_SWITCHING_OUT of switching_out,
    DELAYED_SWITCHING_IN of switching_in,
    DELAYED_KERNEL_TASK of kernel_task,
    DELAYED_CROSSING of crossing,
}
