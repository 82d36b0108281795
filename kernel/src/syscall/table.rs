//! The table of system calls: one line for each number that is served, grouped by family.
//!
//! To add a call, write its function in its family's file and one line here. Numbers come from the ABI crate.

use super::{Arguments, Errno, futex, identity, limit, process, schedule, signal, system, time, timer, unknown};
use crate::arch::TrapFrame;
use crate::process::restart;
use linux_raw_sys::general as nr;

/// Calls `number` with `arguments`. `frame` is for the calls that make or change a thread's registers.
///
/// Linux looks at 32 bits of the number, as a signed value: what does not name a call there (negative numbers, and those with bit
/// 30 set, which named the x32 ABI) is ENOSYS.
pub(super) fn call(frame: &mut TrapFrame, number: u64, arguments: &Arguments) -> Result<usize, Errno> {
    match number as u32 {
        // processes
        nr::__NR_execve => process::execve(frame, arguments),
        nr::__NR_execveat => process::execveat(frame, arguments),
        nr::__NR_clone => process::clone(frame, arguments),
        nr::__NR_clone3 => process::clone3(frame, arguments),
        nr::__NR_fork => process::fork(frame),
        nr::__NR_vfork => process::vfork(frame),
        nr::__NR_exit => process::exit(arguments),
        nr::__NR_exit_group => process::exit_group(arguments),
        nr::__NR_wait4 => process::wait4(arguments),
        nr::__NR_waitid => process::waitid(arguments),
        nr::__NR_getpid => process::getpid(arguments),
        nr::__NR_gettid => process::gettid(arguments),
        nr::__NR_getppid => process::getppid(arguments),
        nr::__NR_getpgid => process::getpgid(arguments),
        nr::__NR_getpgrp => process::getpgrp(arguments),
        nr::__NR_getsid => process::getsid(arguments),
        nr::__NR_setpgid => process::setpgid(arguments),
        nr::__NR_setsid => process::setsid(arguments),
        nr::__NR_set_tid_address => process::set_tid_address(arguments),
        nr::__NR_unshare => process::unshare(arguments),
        // signals
        nr::__NR_rt_sigaction => signal::rt_sigaction(arguments),
        nr::__NR_rt_sigprocmask => signal::rt_sigprocmask(arguments),
        nr::__NR_rt_sigpending => signal::rt_sigpending(arguments),
        nr::__NR_rt_sigsuspend => signal::rt_sigsuspend(arguments),
        nr::__NR_rt_sigtimedwait => signal::rt_sigtimedwait(arguments),
        nr::__NR_rt_sigreturn => signal::rt_sigreturn(frame),
        nr::__NR_rt_sigqueueinfo => signal::rt_sigqueueinfo(arguments),
        nr::__NR_rt_tgsigqueueinfo => signal::rt_tgsigqueueinfo(arguments),
        nr::__NR_sigaltstack => signal::sigaltstack(frame, arguments),
        nr::__NR_pause => signal::pause(arguments),
        nr::__NR_kill => signal::kill(arguments),
        nr::__NR_tkill => signal::tkill(arguments),
        nr::__NR_tgkill => signal::tgkill(arguments),
        nr::__NR_restart_syscall => restart::resume(),
        // futexes
        nr::__NR_futex => futex::futex(arguments),
        nr::__NR_set_robust_list => futex::set_robust_list(arguments),
        nr::__NR_get_robust_list => futex::get_robust_list(arguments),
        // clocks and sleeps
        nr::__NR_clock_gettime => time::clock_gettime(arguments),
        nr::__NR_clock_getres => time::clock_getres(arguments),
        nr::__NR_clock_settime => time::clock_settime(arguments),
        nr::__NR_gettimeofday => time::gettimeofday(arguments),
        nr::__NR_settimeofday => time::settimeofday(arguments),
        nr::__NR_time => time::time(arguments),
        nr::__NR_nanosleep => time::nanosleep(arguments),
        nr::__NR_clock_nanosleep => time::clock_nanosleep(arguments),
        // timers
        nr::__NR_getitimer => timer::getitimer(arguments),
        nr::__NR_setitimer => timer::setitimer(arguments),
        nr::__NR_alarm => timer::alarm(arguments),
        nr::__NR_timer_create => timer::timer_create(arguments),
        nr::__NR_timer_settime => timer::timer_settime(arguments),
        nr::__NR_timer_gettime => timer::timer_gettime(arguments),
        nr::__NR_timer_getoverrun => timer::timer_getoverrun(arguments),
        nr::__NR_timer_delete => timer::timer_delete(arguments),
        // scheduling
        nr::__NR_sched_yield => schedule::sched_yield(arguments),
        nr::__NR_getcpu => schedule::getcpu(arguments),
        nr::__NR_sched_setaffinity => schedule::sched_setaffinity(arguments),
        nr::__NR_sched_getaffinity => schedule::sched_getaffinity(arguments),
        nr::__NR_sched_setscheduler => schedule::sched_setscheduler(arguments),
        nr::__NR_sched_setparam => schedule::sched_setparam(arguments),
        nr::__NR_sched_getscheduler => schedule::sched_getscheduler(arguments),
        nr::__NR_sched_getparam => schedule::sched_getparam(arguments),
        nr::__NR_sched_get_priority_max => schedule::sched_get_priority_max(arguments),
        nr::__NR_sched_get_priority_min => schedule::sched_get_priority_min(arguments),
        nr::__NR_sched_rr_get_interval => schedule::sched_rr_get_interval(arguments),
        nr::__NR_sched_setattr => schedule::sched_setattr(arguments),
        nr::__NR_sched_getattr => schedule::sched_getattr(arguments),
        nr::__NR_getpriority => schedule::getpriority(arguments),
        nr::__NR_setpriority => schedule::setpriority(arguments),
        // identity
        nr::__NR_getuid => identity::getuid(arguments),
        nr::__NR_geteuid => identity::geteuid(arguments),
        nr::__NR_getgid => identity::getgid(arguments),
        nr::__NR_getegid => identity::getegid(arguments),
        nr::__NR_getresuid => identity::getresuid(arguments),
        nr::__NR_getresgid => identity::getresgid(arguments),
        nr::__NR_setuid => identity::setuid(arguments),
        nr::__NR_setgid => identity::setgid(arguments),
        nr::__NR_setreuid => identity::setreuid(arguments),
        nr::__NR_setregid => identity::setregid(arguments),
        nr::__NR_setresuid => identity::setresuid(arguments),
        nr::__NR_setresgid => identity::setresgid(arguments),
        nr::__NR_setfsuid => identity::setfsuid(arguments),
        nr::__NR_setfsgid => identity::setfsgid(arguments),
        nr::__NR_getgroups => identity::getgroups(arguments),
        nr::__NR_setgroups => identity::setgroups(arguments),
        nr::__NR_capget => identity::capget(arguments),
        nr::__NR_capset => identity::capset(arguments),
        // limits and usage
        nr::__NR_getrlimit => limit::getrlimit(arguments),
        nr::__NR_setrlimit => limit::setrlimit(arguments),
        nr::__NR_prlimit64 => limit::prlimit64(arguments),
        nr::__NR_getrusage => limit::getrusage(arguments),
        nr::__NR_times => limit::times(arguments),
        // the system
        nr::__NR_uname => system::uname(arguments),
        nr::__NR_sethostname => system::sethostname(arguments),
        nr::__NR_setdomainname => system::setdomainname(arguments),
        nr::__NR_sysinfo => system::sysinfo(arguments),
        nr::__NR_getrandom => system::getrandom(arguments),
        nr::__NR_arch_prctl => system::arch_prctl(arguments),
        nr::__NR_personality => system::personality(arguments),
        nr::__NR_prctl => system::prctl(arguments),
        _ => {
            unknown::count(number);
            Err(Errno::ENOSYS)
        }
    }
}
