//! QEMU's machine protocol (QMP), as far as it is needed: learn that the guest reset itself, ask a hung guest where it
//! stands, end it.
//!
//! One thread reads the connection: events go to the run's own queue, answers to whoever asked.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// An emulator that does not answer for so long is itself stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to one running emulator.
#[derive(Debug)]
pub(crate) struct Monitor {
    writer: UnixStream,
    answers: Receiver<Value>,
}

impl Monitor {
    /// Starts to speak over `connection`; `reset` is called once if the guest resets or stops its machine.
    ///
    /// # Errors
    /// Those of duplicating the connection.
    pub(crate) fn start(
        connection: UnixStream,
        reset: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let reader = connection.try_clone()?;
        let (sender, answers) = channel();
        std::thread::spawn(move || read(reader, &sender, reset));
        let mut monitor = Monitor { writer: connection, answers };
        // The answer is left for the first question to skip: QEMU may not be up yet.
        monitor.send(&json!({"execute": "qmp_capabilities", "id": "hello"}))?;
        Ok(monitor)
    }

    fn send(&mut self, message: &Value) -> std::io::Result<()> {
        writeln!(self.writer, "{message}")
    }

    /// The answer of the human monitor to `line`, asked about the CPU `cpu`; `None` when QEMU does not answer.
    pub(crate) fn ask(&mut self, line: &str, cpu: usize) -> Option<String> {
        let arguments = json!({"command-line": line, "cpu-index": cpu});
        self.send(&json!({"execute": "human-monitor-command", "arguments": arguments, "id": "ask"})).ok()?;
        loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(answer) if answer.get("id") == Some(&json!("ask")) => {
                    return answer.get("return")?.as_str().map(str::to_owned);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Stops all CPUs, so that several questions see one state.
    pub(crate) fn stop(&mut self) -> std::io::Result<()> {
        self.send(&json!({"execute": "stop", "id": "stop"}))
    }
}

fn read(connection: UnixStream, answers: &Sender<Value>, reset: impl FnOnce()) {
    let mut reset = Some(reset);
    for line in BufReader::new(connection).lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if message.get("event").is_some_and(|event| event == "SHUTDOWN" || event == "GUEST_PANICKED") {
            if let Some(reset) = reset.take() {
                reset();
            }
        } else if message.get("id").is_some() && answers.send(message).is_err() {
            return;
        }
    }
}
