//! What a process is and does: `stat`, `status` and their kin.

use super::process::{Subject, name_text};
use crate::process::limits::{INFINITY, Resource};
use crate::process::signal::{Disposition, Signal, SignalSet};
use crate::process::{self, Process, Thread};
use crate::syscall::Errno;
use crate::{cpu, time};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

/// Nanoseconds of a tick, the unit of `stat`.
const TICK: u64 = time::SECOND / 100;

pub(crate) fn name(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let thread = subject.thread();
    // A process that has ended and was not waited for has no threads any more.
    Ok(match thread {
        Ok(thread) => format!("{}\n", name_text(&thread)).into_bytes(),
        Err(_) => b"\n".to_vec(),
    })
}

/// The state's letter and word.
fn state(subject: &Subject, process: &Process, thread: Option<&Arc<Thread>>) -> (char, &'static str) {
    let zombie = process::relations(subject.process).is_some_and(|relations| relations.zombie);
    let Some(thread) = thread.filter(|_| !zombie) else { return ('Z', "zombie") };
    if process.is_stopped() {
        return ('T', "stopped");
    }
    match thread.task() {
        Some(task) if task.is_asleep() => ('S', "sleeping"),
        _ => ('R', "running"),
    }
}

pub(crate) fn stat(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let process = subject.process()?;
    let thread = subject.thread().ok();
    let relations = process::relations(subject.process).ok_or(Errno::ESRCH)?;
    let usage = match (&thread, subject.is_thread) {
        (Some(thread), true) => thread.usage(),
        _ => process.usage(),
    };
    let children = process.child_usage();
    let memory = process.memory();
    let sizes = memory.as_ref().map(|memory| memory.space().sizes());
    let stack = memory.as_ref().map_or(0, |memory| memory.program().stack_start);
    let resident_limit = process.limit(Resource::new(5)?).soft;
    let processor = thread.as_ref().and_then(|thread| thread.task()).map_or(0, |task| task.cpu());
    let comm = thread.as_ref().map(|thread| name_text(thread)).unwrap_or_default();
    let (letter, _) = state(subject, &process, thread.as_ref());
    let mut text = String::new();
    // Writing into a string cannot fail, here and below.
    let _ = write!(
        text,
        "{} ({comm}) {letter} {} {} {} 0 -1 0 {} 0 0 0 {} {} {} {} 20 0 {} 0 {} ",
        if subject.is_thread { subject.thread } else { subject.process },
        relations.parent,
        relations.group,
        relations.session,
        usage.minor_faults,
        usage.time.user / TICK,
        usage.time.system / TICK,
        children.time.user / TICK,
        children.time.system / TICK,
        process.threads().len(),
        process.started() / TICK,
    );
    let _ = writeln!(
        text,
        "{} {} {resident_limit} 0 0 {stack} 0 0 0 0 0 0 0 0 0 17 {processor} 0 0 0 0 0 0 0 0 0 0 0 0 0",
        sizes.map_or(0, |sizes| sizes.mapped * 4096),
        sizes.map_or(0, |sizes| sizes.resident),
    );
    Ok(text.into_bytes())
}

pub(crate) fn status(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let process = subject.process()?;
    let thread = subject.thread().ok();
    let relations = process::relations(subject.process).ok_or(Errno::ESRCH)?;
    let credentials = process.credentials();
    let (letter, word) = state(subject, &process, thread.as_ref());
    let ids = |identity: crate::process::credentials::Identity| {
        format!(
            "{}\t{}\t{}\t{}",
            identity.real, identity.effective, identity.saved, identity.file_system
        )
    };
    let groups: Vec<String> = credentials.groups.iter().map(ToString::to_string).collect();
    let descriptors = thread.as_ref().and_then(|thread| thread.files()).map_or(0, |table| table.size());
    let umask = thread.as_ref().and_then(|thread| thread.context()).map_or(0, |context| context.umask());
    let mut rows = alloc::vec![
        ("Name", thread.as_ref().map(|thread| name_text(thread)).unwrap_or_default()),
        ("Umask", format!("{umask:04o}")),
        ("State", format!("{letter} ({word})")),
        ("Tgid", subject.process.to_string()),
        ("Ngid", "0".to_string()),
        ("Pid", if subject.is_thread { subject.thread } else { subject.process }.to_string()),
        ("PPid", relations.parent.to_string()),
        ("TracerPid", "0".to_string()),
        ("Uid", ids(credentials.user)),
        ("Gid", ids(credentials.group)),
        ("FDSize", descriptors.to_string()),
        ("Groups", groups.join(" ")),
    ];
    if let Some(memory) = process.memory() {
        let sizes = memory.space().sizes();
        let kilobytes = |pages: u64| format!("{:>8} kB", pages * 4);
        rows.extend([
            ("VmPeak", kilobytes(sizes.mapped)),
            ("VmSize", kilobytes(sizes.mapped)),
            ("VmLck", kilobytes(memory.space().locked_pages())),
            ("VmHWM", kilobytes(sizes.resident_peak)),
            ("VmRSS", kilobytes(sizes.resident)),
            ("VmSwap", kilobytes(sizes.swapped)),
        ]);
    }
    let blocked = thread.as_ref().map_or(0, |thread| thread.blocked().bits());
    let (ignored, caught) = dispositions(&process);
    let capabilities = credentials.capabilities;
    let online = cpu::online().bits();
    let affinity = thread.as_ref().and_then(|thread| thread.task()).map_or(online, |task| task.affinity().bits());
    rows.extend([
        ("Threads", process.threads().len().to_string()),
        ("SigBlk", format!("{blocked:016x}")),
        ("SigIgn", format!("{:016x}", ignored.bits())),
        ("SigCgt", format!("{:016x}", caught.bits())),
        ("CapInh", format!("{:016x}", capabilities.inheritable)),
        ("CapPrm", format!("{:016x}", capabilities.permitted)),
        ("CapEff", format!("{:016x}", capabilities.effective)),
        ("CapBnd", format!("{:016x}", capabilities.bounding)),
        ("CapAmb", format!("{:016x}", 0)),
        ("Seccomp", "0".to_string()),
        ("Cpus_allowed", format!("{:x}", affinity & online)),
        ("Mems_allowed_list", "0".to_string()),
        ("voluntary_ctxt_switches", String::from("0")),
        ("nonvoluntary_ctxt_switches", String::from("0")),
    ]);
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{name}:\t{value}");
    }
    Ok(text.into_bytes())
}

/// The signals that the process ignores and those that it handles.
fn dispositions(process: &Process) -> (SignalSet, SignalSet) {
    let (mut ignored, mut caught) = (SignalSet::EMPTY, SignalSet::EMPTY);
    for signal in (1..=64).filter_map(Signal::new) {
        match process.action(signal).disposition {
            Disposition::Default => {}
            Disposition::Ignore => ignored.insert(signal),
            Disposition::Handler(_) => caught.insert(signal),
        }
    }
    (ignored, caught)
}

/// Names, numbers and units of the limits, in Linux's order.
const LIMITS: [(&str, u64, &str); 16] = [
    ("Max cpu time", 0, "seconds"),
    ("Max file size", 1, "bytes"),
    ("Max data size", 2, "bytes"),
    ("Max stack size", 3, "bytes"),
    ("Max core file size", 4, "bytes"),
    ("Max resident set", 5, "bytes"),
    ("Max processes", 6, "processes"),
    ("Max open files", 7, "files"),
    ("Max locked memory", 8, "bytes"),
    ("Max address space", 9, "bytes"),
    ("Max file locks", 10, "locks"),
    ("Max pending signals", 11, "signals"),
    ("Max msgqueue size", 12, "bytes"),
    ("Max nice priority", 13, ""),
    ("Max realtime priority", 14, ""),
    ("Max realtime timeout", 15, "us"),
];

pub(crate) fn limits(subject: &Subject) -> Result<Vec<u8>, Errno> {
    let limits = subject.process()?.limits();
    let show = |value| if value == INFINITY { "unlimited".to_string() } else { format!("{value}") };
    let mut text = format!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (name, number, unit) in LIMITS {
        let limit = limits.get(Resource::new(number)?);
        let _ = writeln!(text, "{name:<25} {:<20} {:<20} {unit:<10}", show(limit.soft), show(limit.hard));
    }
    Ok(text.into_bytes())
}

pub(crate) fn out_of_memory_adjustment(subject: &Subject) -> Result<Vec<u8>, Errno> {
    Ok(format!("{}\n", subject.process()?.out_of_memory_adjustment()).into_bytes())
}

/// `io`: there are no disks, and transfers in memory are not counted.
pub(crate) fn transfers(subject: &Subject) -> Result<Vec<u8>, Errno> {
    subject.process()?;
    Ok(b"rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n".to_vec())
}
