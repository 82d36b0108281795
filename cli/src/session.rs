//! One guest from start to end: its streams carried to where they belong, its end understood.
//!
//! Each stream has a thread that copies; everything that can end the run arrives in one queue, which the caller's thread
//! drains. The log stream closes exactly when QEMU is gone, whatever the reason, so its end is the emulator's end.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use protocol::input;
use protocol::report::{Report, SCHEMA};
use protocol::sanitizer::{Message, Summary, Violation};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::diagnosis;
use crate::failure::Failure;
use crate::kernel_image::Symbols;
use crate::monitor::Monitor;
use crate::qemu::{End, Guest, Running};
use crate::sanitizer;

/// How long Linux may take until its first program speaks. On a busy host it takes some ten seconds.
const LINUX_BOOTS_WITHIN: Duration = Duration::from_secs(90);

/// Where a guest's stream goes.
pub(crate) type Sink = Box<dyn Write + Send>;

/// What the program reads.
pub(crate) enum Input {
    /// Nothing over the serial line, not even an end: its input is packed. A byte on the line would arrive at an instant of
    /// the host's choice.
    Packed,
    /// These bytes, then the end of input.
    Bytes(Vec<u8>),
    /// Our own standard input, for as long as it lasts.
    Ours,
}

/// What a run needs besides the guest.
pub(crate) struct Streams {
    pub(crate) input: Input,
    pub(crate) output: Sink,
    pub(crate) errors: Sink,
    /// A copy of the kernel's log, as it comes.
    pub(crate) kernel_log: Option<Sink>,
}

/// Names for addresses in a failure's description.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) kernel: &'a Symbols,
    pub(crate) program: &'a Symbols,
}

impl Names<'_> {
    /// ` (name+0xoffset)` of an address in the kernel or the program, or nothing.
    pub(crate) fn place(&self, address: u64) -> String {
        let symbols = if address >= diagnosis::KERNEL_HALF { self.kernel } else { self.program };
        symbols.name(address).map(|name| format!(" ({name})")).unwrap_or_default()
    }
}

/// A run that ended as it should.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    /// The report as the guest wrote it.
    pub(crate) raw_report: serde_json::Value,
    /// From the emulator's start to its end.
    pub(crate) wall: Duration,
    /// What the sanitizer has checked, if it was there.
    pub(crate) sanitized: Option<Summary>,
}

enum Event {
    EmulatorGone,
    /// The first word on the log: our kernel, or the first program on Linux, has begun.
    Spoke,
    GuestReset,
    /// An access that the sanitizer does not allow; the CPU that made it stands still.
    StaleAccess(Box<Violation>),
    /// A sink refused: the error of the program's standard output or error.
    SinkClosed(io::Error),
    Signal(i32),
}

/// Runs `guest` to its end, at most for `limit`.
///
/// # Errors
/// A guest failure with the end of the kernel's log, registers and backtraces when it panicked, hung, reset itself, used a stale
/// translation or ended without a report; a host failure when the emulator does not work; a signal failure when we are asked to stop.
pub(crate) fn run(
    guest: &Guest,
    streams: Streams,
    limit: Option<Duration>,
    names: Names,
) -> Result<Outcome, Failure> {
    let started = Instant::now();
    let Running { mut emulator, input, ready, monitor, kernel_log: log, output, errors, report, sanitizer } =
        guest.start()?;
    let (events, queue) = channel();
    let reset = events.clone();
    let mut monitor = Monitor::start(monitor, move || drop(reset.send(Event::GuestReset)))
        .map_err(|error| Failure::host("talk to the emulator", error))?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::host("listen for signals", error))?;
    let signals_handle = signals.handle();
    let signalled = events.clone();
    spawn(move || signals.forever().for_each(|signal| drop(signalled.send(Event::Signal(signal)))));

    let kernel_log = streams.kernel_log.map(Shared::new);
    let console = if guest.linux {
        let copy = kernel_log.clone();
        Some(spawn(move || {
            // Held open: at the end of its input QEMU would close the line.
            let _input = input;
            collect(ready, copy)
        }))
    } else {
        feed(input, ready, streams.input);
        None
    };
    let carriers =
        [carry(output, streams.output, events.clone()), carry(errors, streams.errors, events.clone())];
    let report = spawn(move || collect(report, None));
    let found = events.clone();
    let sanitizer = sanitizer.map(|stream| spawn(move || listen(stream, &found)));
    let complaints = emulator.stderr.take().map(|stream| spawn(move || collect(stream, None)));
    let log = spawn(move || {
        let log = collect(Announcing { stream: log, events: Some(events.clone()) }, kernel_log);
        let _ = events.send(Event::EmulatorGone);
        log
    });

    let deadline = limit.map(|limit| started + limit);
    let boots_until = guest.linux.then(|| started + LINUX_BOOTS_WITHIN);
    let (ending, spoke) = wait(&queue, deadline, boots_until);
    let state = match ending {
        Ending::TimeOut | Ending::Reset if !guest.linux => {
            Some(diagnosis::examine(&mut monitor, guest.cpus, names))
        }
        // A CPU that the sanitizer holds cannot be stopped: it would be waited for in vain.
        Ending::StaleAccess(_) => Some(diagnosis::examine_as_they_stand(&mut monitor, guest.cpus, names)),
        _ => None,
    };
    // Already gone, or to be: a dead process cannot be killed twice.
    let _ = emulator.kill();
    let status = emulator.wait().map_err(|error| Failure::host("wait for the emulator", error))?;
    signals_handle.close();
    for carrier in carriers {
        let _ = carrier.join();
    }
    let log = joined(log);
    let console = console.map(joined).unwrap_or_default();
    let report = joined(report);
    let complaints = complaints.map(joined).unwrap_or_default();
    let is_watched = sanitizer.is_some();
    let (ending, sanitized) = match (ending, sanitizer.and_then(|listener| listener.join().ok()?)) {
        // Another CPU has switched the machine off before it came by the sanitizer.
        (Ending::EmulatorGone, Some(Message::Violation(violation))) => {
            (Ending::StaleAccess(Box::new(violation)), None)
        }
        (ending, Some(Message::Summary(summary))) => (ending, Some(summary)),
        (ending, _) => (ending, None),
    };

    let story = |sentence: String| {
        Failure::Guest(if guest.linux {
            diagnosis::describe_linux(&sentence, spoke, &log, &console)
        } else {
            diagnosis::describe(&sentence, &log, state.as_deref(), names.kernel)
        })
    };
    match ending {
        Ending::Signal(signal) => Err(Failure::Signal(signal)),
        Ending::SinkClosed(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::Signal(13)),
        Ending::SinkClosed(error) => Err(Failure::host("write the program's output", error)),
        Ending::Silent => {
            let limit = LINUX_BOOTS_WITHIN.as_secs();
            Err(story(format!("the program did not begin within {limit} s")))
        }
        Ending::TimeOut => {
            let limit = limit.unwrap_or_default().as_secs_f64();
            let what = if guest.linux && !spoke { "begin" } else { "end" };
            Err(story(format!("the program did not {what} within {limit} s (--timeout)")))
        }
        Ending::Reset if guest.linux => Err(story("its kernel panicked or reset the machine".into())),
        Ending::Reset => {
            Err(story("the guest reset its machine (an exception that its kernel could not handle)".into()))
        }
        Ending::StaleAccess(violation) => Err(story(sanitizer::story(&violation, names))),
        Ending::EmulatorGone => match End::of(status) {
            End::Panicked if guest.linux => Err(story("our first program there gave up".into())),
            End::Panicked => Err(story("the guest's kernel panicked".into())),
            End::Emulator(status) => {
                let complaints = String::from_utf8_lossy(&complaints);
                Err(Failure::host(
                    "run the emulator",
                    format!("QEMU ended with {status}: {}", complaints.trim()),
                ))
            }
            End::Orderly if is_watched && sanitized.is_none_or(|summary| summary.accesses == 0) => {
                let complaints = String::from_utf8_lossy(&complaints);
                Err(Failure::host(
                    "watch the guest",
                    format!("the sanitizer saw nothing: {}", complaints.trim()),
                ))
            }
            End::Orderly => match parse(&report) {
                Ok((report, raw_report)) => {
                    Ok(Outcome { report, raw_report, wall: started.elapsed(), sanitized })
                }
                Err(why) => Err(story(format!("the guest ended without a report ({why})"))),
            },
        },
    }
}

enum Ending {
    EmulatorGone,
    Reset,
    StaleAccess(Box<Violation>),
    SinkClosed(io::Error),
    Signal(i32),
    TimeOut,
    /// It has not said a word in the time it had for that.
    Silent,
}

/// Waits for the end, and says whether the guest had spoken by then.
fn wait(queue: &Receiver<Event>, deadline: Option<Instant>, speaks_until: Option<Instant>) -> (Ending, bool) {
    let mut spoke = false;
    loop {
        let until = deadline.into_iter().chain(speaks_until.filter(|_| !spoke)).min();
        let event = match until {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => queue.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        let ending = match event {
            Ok(Event::Spoke) => {
                spoke = true;
                continue;
            }
            Ok(Event::EmulatorGone) | Err(RecvTimeoutError::Disconnected) => Ending::EmulatorGone,
            Ok(Event::GuestReset) => Ending::Reset,
            Ok(Event::StaleAccess(violation)) => Ending::StaleAccess(violation),
            Ok(Event::SinkClosed(error)) => Ending::SinkClosed(error),
            Ok(Event::Signal(signal)) => Ending::Signal(signal),
            Err(RecvTimeoutError::Timeout) if until == deadline => Ending::TimeOut,
            Err(RecvTimeoutError::Timeout) => Ending::Silent,
        };
        return (ending, spoke);
    }
}

fn parse(bytes: &[u8]) -> Result<(Report, serde_json::Value), String> {
    if bytes.is_empty() {
        return Err("it wrote nothing".into());
    }
    let raw: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let report: Report = serde_json::from_value(raw.clone()).map_err(|error| error.to_string())?;
    if report.schema != SCHEMA {
        return Err(format!("its form is {}, not {}", report.schema, SCHEMA));
    }
    Ok((report, raw))
}

fn joined(thread: JoinHandle<Vec<u8>>) -> Vec<u8> {
    thread.join().unwrap_or_default()
}

/// Copies a stream as it comes. When the sink refuses, the rest is read and dropped, so that the guest never waits for us.
fn carry(mut from: impl Read + Send + 'static, mut to: Sink, events: Sender<Event>) -> JoinHandle<()> {
    spawn(move || {
        let mut buffer = [0; 16 * 1024];
        let mut open = true;
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if open && let Err(error) = to.write_all(&buffer[..length]).and_then(|()| to.flush()) {
                open = false;
                let _ = events.send(Event::SinkClosed(error));
            }
        }
    })
}

/// A stream that says when its first byte has come.
struct Announcing<R> {
    stream: R,
    /// Until then.
    events: Option<Sender<Event>>,
}

impl<R: Read> Read for Announcing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        if let Some(events) = self.events.take_if(|_| length > 0) {
            let _ = events.send(Event::Spoke);
        }
        Ok(length)
    }
}

/// A sink for two streams, whose pieces are not torn apart.
#[derive(Clone)]
struct Shared(Arc<Mutex<Sink>>);

impl Shared {
    fn new(sink: Sink) -> Self {
        Shared(Arc::new(Mutex::new(sink)))
    }

    /// Writes at once. That a copy cannot be written is no reason to end a run.
    fn put(&self, bytes: &[u8]) {
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sink.write_all(bytes).and_then(|()| sink.flush());
    }
}

/// Everything that a stream carries, with a copy as it comes.
fn collect(mut from: impl Read, copy: Option<Shared>) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        all.extend_from_slice(&buffer[..length]);
        if let Some(sink) = &copy {
            sink.put(&buffer[..length]);
        }
    }
    all
}

/// Waits for the one thing that the sanitizer says, and tells the others if that ends the run.
fn listen(from: impl Read, events: &Sender<Event>) -> Option<Message> {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).ok()?;
    let message = serde_json::from_str(&line).ok()?;
    if let Message::Violation(violation) = &message {
        // The run may have ended meanwhile.
        let _ = events.send(Event::StaleAccess(Box::new(violation.clone())));
    }
    Some(message)
}

/// Sends the program's input once the guest is ready for it. The thread may outlive the run, blocked on our own input.
fn feed(mut to: ChildStdin, mut ready: ChildStdout, from: Input) {
    spawn(move || -> io::Result<()> {
        ready.read_exact(&mut [0])?;
        match from {
            Input::Packed => return ready.read_to_end(&mut Vec::new()).map(drop),
            Input::Bytes(bytes) => to.write_all(&escaped(&bytes))?,
            Input::Ours => {
                let mut buffer = [0; 4096];
                loop {
                    match io::stdin().lock().read(&mut buffer)? {
                        0 => break,
                        length => to.write_all(&escaped(&buffer[..length]))?,
                    }
                }
            }
        }
        to.write_all(&[input::ESCAPE, input::END])?;
        // Until the guest is gone: a closed channel would look like a broken line.
        ready.read_to_end(&mut Vec::new()).map(drop)
    });
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte == input::ESCAPE {
            result.push(input::ESCAPE);
        }
        result.push(byte);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_escape_byte_is_doubled() {
        assert_eq!(escaped(b"a\x10b"), b"a\x10\x10b");
    }

    #[test]
    fn a_damaged_report_is_refused() {
        assert!(parse(b"").is_err());
        assert!(parse(b"{\"schema\": \"ceasefire.report/1\"").is_err());
        assert!(parse(b"[]").is_err());
    }

    #[test]
    fn a_guest_must_speak_in_time_but_need_not_end_then() {
        let soon = || Some(Instant::now() + Duration::from_millis(20));
        let (events, queue) = channel();
        assert!(matches!(wait(&queue, None, soon()), (Ending::Silent, false)));
        let mut stream = Announcing { stream: &b"words"[..], events: Some(events.clone()) };
        let _ = stream.read(&mut [0; 2]).unwrap();
        let _ = stream.read(&mut [0; 2]).unwrap();
        assert!(matches!(wait(&queue, soon(), soon()), (Ending::TimeOut, true)));
        events.send(Event::EmulatorGone).unwrap();
        assert!(matches!(wait(&queue, None, soon()), (Ending::EmulatorGone, false)));
    }
}
