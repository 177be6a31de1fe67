//! A fake daemon at the other end of the channel: it keeps a journal by id, and cuts, delays, repeats and refuses.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

pub const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Time after which a test that waits for an event fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers, and the faults that are due.
#[derive(Default)]
pub struct State {
    /// Calls by id: arguments, and the answer when it is known.
    pub journal: HashMap<String, (Value, Option<Value>)>,
    /// Calls in the order of their effects: tool and arguments.
    pub effects: Vec<(String, Value)>,
    pub conflicts: usize,
    /// `params` of every hello.
    pub hellos: Vec<Value>,
    pub cancels: Vec<String>,
    /// Bodies of reports, each once.
    pub reports: Vec<Value>,
    report_ids: HashSet<String>,
    /// Cells for `kernel.next`, in order from number 1.
    pub cells: Vec<String>,
    /// Parameters of `tools.call`, each time it came.
    pub calls: Vec<Value>,
    /// After this many answers a connection is cut in the middle of the line.
    pub cut_after: Option<usize>,
    answered: usize,
    /// Lines that are sent before the next answer, or in the place of all but that to a hello if `garbage_only`.
    pub garbage: Vec<Vec<u8>>,
    pub garbage_only: bool,
    /// Requests are read and not answered.
    pub silent: bool,
    /// Ids that `reverse` holds back until it has this many.
    pub hold: usize,
    held: Vec<String>,
    connections: Vec<UnixStream>,
    /// The listener is meant to be open.
    open: bool,
    generation: usize,
}

pub struct Channel {
    pub dir: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Channel {
    pub fn new(dir: &Path) -> Channel {
        let shared = Arc::new(Shared { state: Mutex::new(State::default()), changed: Condvar::new() });
        let channel = Channel { dir: dir.to_path_buf(), shared };
        channel.open();
        channel
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join("t.sock")
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("no test panics with the lock")
    }

    /// Waits until the state is as wanted.
    pub fn wait<T>(&self, why: &str, wanted: impl Fn(&mut State) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            if let Some(found) = wanted(&mut state) {
                return found;
            }
            let left = until.checked_duration_since(Instant::now()).unwrap_or_else(|| panic!("waited for {why}"));
            state = self.shared.changed.wait_timeout(state, left).expect("the lock").0;
        }
    }

    pub fn push_cell(&self, code: &str) {
        self.state().cells.push(code.into());
        self.shared.changed.notify_all();
    }

    /// Starts listening, on a new socket.
    pub fn open(&self) {
        let _ = std::fs::remove_file(self.path());
        let listener = UnixListener::bind(self.path()).expect("the socket");
        let shared = self.shared.clone();
        let mut state = self.state();
        state.open = true;
        state.generation += 1;
        let generation = state.generation;
        let dir = self.dir.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let mut state = shared.state.lock().expect("the lock");
                if !state.open || state.generation != generation {
                    return;
                }
                state.connections.push(stream.try_clone().expect("a descriptor"));
                drop(state);
                let (shared, dir) = (shared.clone(), dir.clone());
                thread::spawn(move || Connection { shared, stream, dir, is_cut: AtomicBool::new(false) }.serve());
            }
        });
    }

    /// Dies as a killed daemon does: every connection ends, the socket file stays without a listener.
    pub fn close(&self) {
        let mut state = self.state();
        state.open = false;
        for stream in state.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the listener, so that it ends.
        let _ = UnixStream::connect(self.path());
        let _ = std::fs::remove_file(self.path());
    }

    /// Cuts every connection and keeps listening.
    pub fn cut(&self) {
        for stream in self.state().connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

struct Connection {
    shared: Arc<Shared>,
    stream: UnixStream,
    dir: PathBuf,
    is_cut: AtomicBool,
}

impl Connection {
    fn serve(self) {
        let connection = Arc::new(self);
        let reader = BufReader::new(connection.stream.try_clone().expect("a descriptor"));
        let mut known = false;
        for line in reader.split(b'\n') {
            let Ok(line) = line else { return };
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            if !known {
                known = connection.hello(&message);
                if !known {
                    return;
                }
                continue;
            }
            connection.clone().on_message(message);
        }
    }

    fn hello(&self, message: &Value) -> bool {
        let mut state = self.shared.state.lock().expect("the lock");
        state.hellos.push(message["params"].clone());
        let right = message["method"] == "script.hello" && message["params"]["token"] == TOKEN;
        drop(state);
        let end =
            if right { json!({"result": {"script": "s", "cwd": "/"}}) } else { error(-32005, "denied", "wrong token") };
        self.send(&message["id"], &end);
        if !right {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        right
    }

    fn on_message(self: Arc<Self>, message: Value) {
        if self.shared.state.lock().expect("the lock").silent {
            return;
        }
        let id = message["id"].as_str().unwrap_or_default().to_string();
        match message["method"].as_str() {
            Some("tools.call") => self.call(&id, &message["params"]),
            Some("$/cancelRequest") => self.cancel(message["params"]["id"].as_str().unwrap_or_default()),
            Some("script.report") => self.report(&id, &message["params"]),
            Some("kernel.next") => {
                let after = message["params"]["after"].as_u64().expect("a number") as usize;
                thread::spawn(move || self.next_cell(&id, after));
            }
            // A daemon that interrupts no cell.
            Some("kernel.stopping") => {}
            other => self.send(&json!(id), &error(-32601, "method_not_found", &format!("{other:?}"))),
        }
    }

    fn call(self: Arc<Self>, id: &str, params: &Value) {
        let mut state = self.shared.state.lock().expect("the lock");
        state.calls.push(params.clone());
        let (name, args) = (params["name"].as_str().expect("a name").to_string(), params["args"].clone());
        if let Some((before, answer)) = state.journal.get(id).cloned() {
            state.conflicts += usize::from(before != args);
            drop(state);
            match answer {
                Some(answer) => self.send(&json!(id), &answer),
                None => self.finish_later(id, &name, &args),
            }
            return;
        }
        state.journal.insert(id.into(), (args.clone(), None));
        state.effects.push((name.clone(), args.clone()));
        self.shared.changed.notify_all();
        if name == "reverse" {
            state.held.push(id.into());
            let ready = state.held.len() >= state.hold;
            let held = if ready { std::mem::take(&mut state.held) } else { Vec::new() };
            drop(state);
            for id in held.iter().rev() {
                self.finish(id, &name);
            }
            return;
        }
        drop(state);
        self.finish_later(id, &name, &args);
    }

    /// Answers when the time of the call has passed.
    fn finish_later(self: Arc<Self>, id: &str, name: &str, args: &Value) {
        match args["ms"].as_u64().filter(|ms| *ms > 0) {
            Some(ms) => {
                let (id, name) = (id.to_string(), name.to_string());
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(ms)); // rig: a tool that takes time
                    self.finish(&id, &name);
                });
            }
            None => self.finish(id, name),
        }
    }

    fn finish(&self, id: &str, name: &str) {
        let mut state = self.shared.state.lock().expect("the lock");
        let args = state.journal[id].0.clone();
        let Some(answer) = self.answer(id, name, &args) else { return };
        if let Some(entry) = state.journal.get_mut(id) {
            entry.1 = Some(answer.clone());
        }
        drop(state);
        self.send(&json!(id), &answer);
        if name == "twice" {
            self.send(&json!(id), &answer);
            self.send(&json!("ffffffff-9999"), &answer);
            self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"hint\",\"params\":{}}\n\n");
        }
    }

    fn answer(&self, id: &str, name: &str, args: &Value) -> Option<Value> {
        Some(match name {
            "hang" => return None,
            "fail" => json!({"error": {"code": args["code"], "message": args["message"], "data": args["data"]}}),
            "big" => {
                let text = json!({"text": "x".repeat(args["bytes"].as_u64().unwrap_or(0) as usize)}).to_string();
                let path = self.dir.join(format!("{id}.json"));
                std::fs::write(&path, &text).expect("a file");
                json!({"result": {"call": id, "file": {"path": path, "bytes": text.len(), "sha256": ""}}})
            }
            "odd" => args["answer"].clone(),
            _ => json!({"result": {"call": id, "result": {"args": args}}}),
        })
    }

    fn cancel(&self, id: &str) {
        let mut state = self.shared.state.lock().expect("the lock");
        state.cancels.push(id.into());
        let open = state.journal.get(id).is_some_and(|(_, answer)| answer.is_none());
        if let Some(entry) = state.journal.get_mut(id).filter(|_| open) {
            entry.1 = Some(error(-32800, "cancelled", "cancelled"));
        }
        drop(state);
        self.shared.changed.notify_all();
        if open {
            self.send(&json!(id), &error(-32800, "cancelled", "cancelled"));
        }
    }

    fn report(&self, id: &str, params: &Value) {
        let mut state = self.shared.state.lock().expect("the lock");
        let is_begin = params["cell"]["status"] == json!("running");
        if state.report_ids.insert(id.into()) && !is_begin {
            state.reports.push(params.clone());
        }
        drop(state);
        self.shared.changed.notify_all();
        self.send(&json!(id), &json!({"result": {}}));
    }

    fn next_cell(&self, id: &str, after: usize) {
        let mut state = self.shared.state.lock().expect("the lock");
        while state.cells.len() <= after && state.open {
            state = self.shared.changed.wait_timeout(state, Duration::from_millis(100)).expect("the lock").0;
        }
        let Some(code) = state.cells.get(after).cloned() else { return };
        drop(state);
        self.send(&json!(id), &json!({"result": {"cell": after + 1, "code": code, "max_calls": 500}}));
    }

    fn send(&self, id: &Value, end: &Value) {
        let mut message = json!({"jsonrpc": "2.0", "id": id});
        for (key, value) in end.as_object().into_iter().flatten() {
            message[key] = value.clone();
        }
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        let mut state = self.shared.state.lock().expect("the lock");
        for bytes in std::mem::take(&mut state.garbage) {
            self.write(&bytes);
        }
        if state.garbage_only && end["result"]["script"].is_null() {
            self.write(b"]garbage[\n");
            return;
        }
        // What a dead connection would answer does not count: else each new one can be cut at its first answer.
        if self.is_cut.load(Ordering::Relaxed) {
            return;
        }
        state.answered += 1;
        if state.cut_after.is_some_and(|after| state.answered.is_multiple_of(after)) {
            line.truncate(line.len() / 2);
            self.is_cut.store(true, Ordering::Relaxed);
            self.write(&line);
            let _ = self.stream.shutdown(Shutdown::Both);
            return;
        }
        self.write(&line);
    }

    /// Writes whole lines: the lock of the state is held, or the stream has one writer.
    fn write(&self, bytes: &[u8]) {
        let _ = (&self.stream).write_all(bytes);
    }
}

pub fn error(code: i64, kind: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "data": {"kind": kind}}})
}
