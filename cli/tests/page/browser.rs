//! A headless browser, spoken to over a pair of pipes by the DevTools protocol: JSON messages, each ended by a zero byte.
//!
//! One browser, one page at a time. What the page asks of the network and what goes wrong in it is collected from the moment it
//! is opened.

use std::io::{BufRead, BufReader, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};

/// No answer may take longer, on a busy machine either.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser, which ends with this.
pub(crate) struct Browser {
    process: Child,
    commands: std::io::PipeWriter,
    messages: Receiver<Value>,
    last_id: u64,
    session: String,
    /// Requests and errors of the page that is open.
    pub(crate) complaints: Vec<String>,
    page: String,
    _profile: tempfile::TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) scheme: &'static str,
    pub(crate) paper: bool,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let (to_browser, commands) = pipe().unwrap();
        let (answers, from_browser) = pipe().unwrap();
        let mut command = Command::new("chromium");
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars"]);
        // Root may not use the sandbox; the only pages are ours, and names resolve to nothing.
        command.args(["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let inherited = [(3, OwnedFd::from(to_browser)), (4, OwnedFd::from(from_browser))];
        let inherited = inherited.map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd });
        command.fd_mappings(inherited.into()).unwrap();
        let process = command.spawn().expect("chromium starts");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            process,
            commands,
            messages,
            last_id: 0,
            session: String::new(),
            complaints: Vec::new(),
            page: String::new(),
            _profile: profile,
        };
        browser.session = browser.new_tab();
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Attaches to a new tab and gives its session.
    fn new_tab(&mut self) -> String {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        self.call("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a command and waits for its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands
            .write_all(&[message.to_string().as_bytes(), b"\0"].concat())
            .expect("the browser listens");
        let id = self.last_id;
        let mut answer = self.wait(method, |message| message["id"] == json!(id));
        assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
        answer["result"].take()
    }

    /// The next message that is wanted; the others are listened to on the way.
    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message =
                self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {what}"));
            if wanted(&message) {
                return message;
            }
            self.listen(&message);
        }
    }

    fn listen(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" if parameters["request"]["url"] != json!(self.page) => {
                self.complaints.push(format!("request: {}", parameters["request"]["url"]));
            }
            "Runtime.exceptionThrown" => {
                self.complaints.push(format!("error: {}", parameters["exceptionDetails"]["text"]));
            }
            "Log.entryAdded" => self.complaints.push(format!("log: {}", parameters["entry"]["text"])),
            _ => {}
        }
    }

    /// Opens a file as it is seen in that view, and waits until it has loaded.
    pub(crate) fn open(&mut self, file: &std::path::Path, view: View) {
        self.look(view);
        self.complaints.clear();
        self.page = format!("file://{}", file.display());
        let page = self.page.clone();
        self.call("Page.navigate", json!({"url": page}));
        self.wait("the load", |message| message["method"] == "Page.loadEventFired");
    }

    /// Changes the view of the open page.
    pub(crate) fn look(&mut self, view: View) {
        let metrics = json!({"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = json!({"name": "prefers-color-scheme", "value": view.scheme});
        let medium = if view.paper { "print" } else { "screen" };
        self.call("Emulation.setEmulatedMedia", json!({"media": medium, "features": [scheme]}));
    }

    /// What a script in the page gives.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let parameters = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "the script failed: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].take()
    }

    /// The whole page as a picture, PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        self.call("Page.captureScreenshot", parameters)["data"].as_str().unwrap().to_owned()
    }

    /// What a script in an empty page of its own gives: one without the page's policy.
    pub(crate) fn elsewhere(&mut self, script: &str) -> Value {
        let page = std::mem::take(&mut self.session);
        self.session = self.new_tab();
        let value = self.evaluate(script);
        self.call("Page.close", json!({}));
        self.session = page;
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
