//! The server: reads messages, gives each call a thread, and ends within a second of the end of its input or of a signal.

use crate::call::Call;
use crate::carrier::{self, Carrier};
use crate::client::{ClientInfo, Handshake};
use crate::daemon_link::{Cancel, DaemonAddress, DaemonLink};
use crate::dispatch;
use crate::foreign_tools::ForeignTools;
use crate::message::{self, Era, Message, ProtocolError, Request};
use crate::output::Output;
use crate::reply::Reply;
use crate::subscriptions::Subscriptions;
use crate::sys::{self, End};
use crate::tasks;
use crate::wake::{self, Wake};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use toold_client::mcp_options::{McpOptions, WakeTarget};

/// The longest message. More is a client that is broken.
const MAX_LINE_LEN: u64 = 16 << 20;
/// The time that calls have after the end of the input, so that `printf … | toolctl mcp` gets its answers.
const DRAIN_TIME: Duration = Duration::from_millis(700);
/// The time after which the process ends, whatever blocks.
const EXIT_TIME: Duration = Duration::from_millis(900);
/// The most calls at the same time.
const MAX_CALLS: usize = 256;
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A call that is running.
struct Running {
    cancel: Arc<Cancel>,
    session: Option<String>,
}

pub struct Server {
    pub options: McpOptions,
    pub address: DaemonAddress,
    pub output: Arc<Output>,
    pub carrier: Arc<Carrier>,
    pub subscriptions: Subscriptions,
    pub foreign: ForeignTools,
    pub wake: Wake,
    pub cwd: String,
    handshake: Mutex<Handshake>,
    running: Mutex<BTreeMap<String, Running>>,
    /// The session of the last call of a tool, for requests that name none.
    last_session: Mutex<Option<String>>,
    questions: Mutex<BTreeMap<String, Sender<Value>>>,
    /// The number of our own requests.
    requests: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Server {
    pub fn new(options: McpOptions, address: DaemonAddress) -> Server {
        let cwd = std::env::current_dir().map_or_else(|_| "/".into(), |dir| dir.display().to_string());
        Server {
            options,
            address,
            output: Arc::default(),
            carrier: Arc::new(Carrier::new()),
            subscriptions: Subscriptions::default(),
            foreign: ForeignTools::default(),
            wake: Wake::default(),
            cwd,
            handshake: Mutex::default(),
            running: Mutex::default(),
            last_session: Mutex::default(),
            questions: Mutex::default(),
            requests: AtomicU64::new(1),
        }
    }

    /// Serves until the input ends or a signal comes.
    pub fn run(self) -> io::Result<()> {
        let signals = sys::take_signals()?;
        let server = Arc::new(self);
        carrier::start_acknowledging(server.carrier.clone(), server.output.clone(), server.address.clone());
        if server.options.wake == Some(WakeTarget::Codex) {
            wake::start(server.clone());
        }
        let reader = server.clone();
        std::thread::spawn(move || {
            reader.read_input();
            reader.end(DRAIN_TIME);
        });
        match sys::wait_for_end(signals.as_fd(), io::stdin().as_fd()) {
            End::Signal => server.end(Duration::ZERO),
            // The reader takes what is left, and ends the process before.
            End::InputClosed => sys::pause(EXIT_TIME),
        }
        std::process::exit(0)
    }

    /// Ends the process after running calls had this time.
    fn end(self: &Arc<Server>, time: Duration) -> ! {
        let deadline = Instant::now() + time;
        while !lock(&self.running).is_empty() && Instant::now() < deadline {
            sys::pause(CHECK_INTERVAL);
        }
        let server = self.clone();
        // In a thread of its own: a client that does not read must not hold up the end.
        let last = std::thread::spawn(move || {
            for listen in server.subscriptions.take_listens() {
                let meta = json!({message::own_key("subscriptionId"): listen.id, message::own_key("serverInfo"): dispatch::server_info()});
                let _ =
                    server.output.send(&message::result(&listen.id, json!({"resultType": "complete", "_meta": meta})));
            }
            let deadline = Instant::now() + Duration::from_millis(100);
            while server.carrier.is_pending() && Instant::now() < deadline {
                sys::pause(CHECK_INTERVAL);
            }
        });
        let deadline = Instant::now() + Duration::from_millis(150);
        while !last.is_finished() && Instant::now() < deadline {
            sys::pause(CHECK_INTERVAL);
        }
        std::process::exit(0)
    }

    fn read_input(self: &Arc<Server>) {
        let mut input = BufReader::new(io::stdin());
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut input).take(MAX_LINE_LEN).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if !line.ends_with(b"\n") && line.len() as u64 >= MAX_LINE_LEN => {
                    let error = ProtocolError::new(
                        message::INVALID_REQUEST,
                        format!("a message of more than {MAX_LINE_LEN} bytes"),
                    );
                    let _ = self.output.send(&message::error(&Value::Null, &error));
                    if !skip_line(&mut input) {
                        return;
                    }
                    continue;
                }
                Ok(_) => {}
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                self.on_message(Message::read(&line));
            }
            if self.output.is_broken() {
                return;
            }
        }
    }

    fn on_message(self: &Arc<Server>, message: Message) {
        match message {
            Message::Invalid(answer) => drop(self.output.send(&answer)),
            Message::Notification { method, params } => self.on_notification(&method, &params),
            Message::Response { id, result } => {
                if let Some(waiting) = lock(&self.questions).remove(&id.to_string()) {
                    let _ = waiting.send(result.unwrap_or(Value::Null));
                }
            }
            Message::Request(request) => self.on_request(request),
            Message::Batch(messages) => self.on_batch(messages),
        }
    }

    fn on_notification(&self, method: &str, params: &Map<String, Value>) {
        if method != "notifications/cancelled" {
            return;
        }
        let Some(id) = params.get("requestId") else { return };
        self.subscriptions.end_listen(id);
        if let Some(running) = lock(&self.running).get(&id.to_string()) {
            running.cancel.cancel();
        }
    }

    fn on_request(self: &Arc<Server>, request: Request) {
        if !dispatch::needs_thread(&request.method) {
            if let Some(answer) = dispatch::answer(self, &request, &Cancel::default()) {
                let _ = self.output.send(&answer);
            }
            return;
        }
        let cancel = Arc::new(Cancel::default());
        let key = request.id.to_string();
        {
            let mut running = lock(&self.running);
            if running.len() >= MAX_CALLS {
                let error =
                    ProtocolError::new(message::INTERNAL_ERROR, format!("{MAX_CALLS} calls are running already"));
                drop(running);
                let _ = self.output.send(&message::error(&request.id, &error));
                return;
            }
            running.insert(key.clone(), Running { cancel: cancel.clone(), session: None });
        }
        let server = self.clone();
        std::thread::spawn(move || {
            if let Some(answer) = dispatch::answer(&server, &request, &cancel)
                && !cancel.is_cancelled()
            {
                let _ = server.output.send(&answer);
            }
            lock(&server.running).remove(&key);
        });
    }

    /// Answers a batch of the revision 2025-03-26 with one.
    fn on_batch(self: &Arc<Server>, messages: Vec<Message>) {
        let server = self.clone();
        std::thread::spawn(move || {
            let mut answers = Vec::new();
            for message in messages {
                match message {
                    Message::Request(request) => {
                        answers.extend(dispatch::answer(&server, &request, &Cancel::default()))
                    }
                    Message::Invalid(answer) => answers.push(answer),
                    other => server.on_message(other),
                }
            }
            if !answers.is_empty() {
                let _ = server.output.send(&Value::Array(answers));
            }
        });
    }

    pub fn set_handshake(&self, handshake: Handshake) {
        *lock(&self.handshake) = handshake;
        self.subscriptions.set_handshake();
    }

    /// Makes the call of a request. `arguments` are those of a tool.
    pub fn call<'a>(&'a self, request: &Request, arguments: &Map<String, Value>, cancel: &'a Cancel) -> Call<'a> {
        let client = ClientInfo::of(request, &lock(&self.handshake).clone());
        let is_tool = request.method == "tools/call";
        let known = lock(&self.last_session).clone();
        let session = match (is_tool, known) {
            (false, Some(session)) if request.meta("threadId").is_none() => session,
            (true | false, _) => client.session(self.options.session.as_deref(), arguments),
        };
        if is_tool {
            *lock(&self.last_session) = Some(session.clone());
            if let Some(running) = lock(&self.running).get_mut(&request.id.to_string()) {
                running.session = Some(session.clone());
            }
        }
        let link = match is_tool {
            true => DaemonLink::new(&self.address, cancel),
            false => DaemonLink::without_start(&self.address, cancel),
        };
        Call {
            options: &self.options,
            address: &self.address,
            output: &self.output,
            carrier: &self.carrier,
            cancel,
            link,
            client,
            era: request.era,
            session,
            key: String::new(),
            cwd: self.cwd.clone(),
        }
    }

    /// Returns the number of running calls of a session.
    pub fn calls_in(&self, session: &str) -> usize {
        lock(&self.running).values().filter(|running| running.session.as_deref() == Some(session)).count()
    }

    /// Sends a request of ours to the client, and waits for the result.
    pub fn ask_client(&self, method: &str, params: Value, time: Duration, cancel: &Cancel) -> Option<Value> {
        let id = json!(format!("toold-{}", self.requests.fetch_add(1, Ordering::Relaxed)));
        let (sender, answers) = channel();
        lock(&self.questions).insert(id.to_string(), sender);
        let sent = self.output.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let deadline = Instant::now() + time;
        let mut answer = None;
        while sent.is_ok() && answer.is_none() && Instant::now() < deadline && !cancel.is_cancelled() {
            answer = answers.recv_timeout(Duration::from_millis(100)).ok();
        }
        lock(&self.questions).remove(&id.to_string());
        answer
    }

    /// Returns the state of a task for a notification.
    pub fn task_now(&self, session: &str, id: &str) -> Option<(Value, Option<Reply>)> {
        let cancel = Cancel::default();
        let capabilities = json!({"extensions": {message::TASKS_EXTENSION: {}}});
        let meta = json!({message::own_key("clientCapabilities"): capabilities});
        let params = json!({ "_meta": meta }).as_object().cloned()?;
        let request = Request { id: Value::Null, method: "tasks/get".into(), params, era: Era::Modern };
        let mut call = self.call(&request, &Map::new(), &cancel);
        call.session = session.to_owned();
        tasks::get(&mut call, id).ok()
    }
}

/// Reads up to the end of a line. Returns false at the end of the input.
fn skip_line(input: &mut impl BufRead) -> bool {
    loop {
        let (used, is_end) = match input.fill_buf() {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(used);
        if is_end {
            return true;
        }
    }
}
