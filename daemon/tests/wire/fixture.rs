//! A wire server with methods for tests, and clients that time out instead of hanging.

use jsonrpsee::core::to_json_raw_value;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{Extensions, RpcModule};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use toold_daemon::rpc::register::{register, wire_error};
use toold_daemon::rpc::wire::{Peer, Wire, WireLimits, serve};
use toold_daemon::tools::clients::link::ClientLink;
use toold_proto::{api, results};

/// The timeout of every step: only a hang takes this long.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

pub async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP_TIMEOUT, future).await.expect("a hang")
}

/// The state that the methods share with the test.
pub struct Context {
    /// The method `gate` waits for a permit of this.
    pub gate: Semaphore,
    notes: mpsc::UnboundedSender<String>,
    links: mpsc::UnboundedSender<Arc<dyn ClientLink>>,
    stop: watch::Sender<bool>,
}

pub struct Fixture {
    pub wire: Arc<Wire>,
    pub context: Arc<Context>,
    pub socket: PathBuf,
    pub serving: JoinHandle<()>,
    notes: Mutex<mpsc::UnboundedReceiver<String>>,
    links: Mutex<mpsc::UnboundedReceiver<Arc<dyn ClientLink>>>,
    dir: tempfile::TempDir,
}

impl Fixture {
    pub fn start() -> Fixture {
        Fixture::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut WireLimits)) -> Fixture {
        Fixture::owned_by(nix::unistd::getuid().as_raw(), change)
    }

    pub fn owned_by(uid: u32, change: impl FnOnce(&mut WireLimits)) -> Fixture {
        let mut limits = WireLimits::default();
        change(&mut limits);
        let (notes, received) = mpsc::unbounded_channel();
        let (links, linked) = mpsc::unbounded_channel();
        let (stop, stopping) = watch::channel(false);
        let context = Arc::new(Context { gate: Semaphore::new(0), notes, links, stop });
        let wire = Wire::new(methods(context.clone()), limits, uid);
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        let serving = tokio::spawn(serve(listener, wire.clone(), stopping));
        let (notes, links) = (Mutex::new(received), Mutex::new(linked));
        Fixture { wire, context, socket, serving, notes, links, dir }
    }

    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub async fn connect(&self) -> Client {
        Client(BufReader::new(UnixStream::connect(&self.socket).await.expect("connected")))
    }

    /// Waits for the next note of a method.
    pub async fn next_note(&self) -> String {
        in_time(self.notes.lock().await.recv()).await.expect("the context lives")
    }

    /// Waits for the next link that the method `link` made.
    pub async fn next_link(&self) -> Arc<dyn ClientLink> {
        in_time(self.links.lock().await.recv()).await.expect("the context lives")
    }

    /// Takes a note, if there is one. Returns true if there was.
    pub async fn take_note(&self) -> bool {
        self.notes.lock().await.try_recv().is_ok()
    }

    pub fn stop(&self) {
        self.context.stop.send_replace(true);
    }

    /// Waits until the server has no connection left.
    pub async fn wait_disconnected(&self) {
        in_time(async {
            while self.wire.connections() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

fn methods(context: Arc<Context>) -> RpcModule<Context> {
    let mut module = RpcModule::from_arc(context.clone());
    let object = |params: &jsonrpsee::types::Params| params.parse::<Option<Value>>().map(Option::unwrap_or_default);
    module.register_method("echo", move |params, _, _| object(&params)).expect("new");
    module
        .register_async_method("peer", |_, _, ext: Extensions| async move {
            let peer = ext.get::<Arc<Peer>>().expect("every call has one");
            json!({ "uid": peer.uid, "pid": peer.pid, "connection": peer.connection })
        })
        .expect("new");
    module
        .register_method("note", move |params, context: &Context, _| {
            let _ = context.notes.send(format!("note {}", params.as_str().unwrap_or_default()));
        })
        .expect("new");
    for name in ["gate", "kill"] {
        module
            .register_async_method(name, move |params, context, _| async move {
                let _ = context.notes.send("waiting".into());
                context.gate.acquire().await.expect("open").forget();
                let _ = context.notes.send("passed".into());
                object(&params)
            })
            .expect("new");
    }
    module
        .register_method("link", |_, context: &Context, ext: &Extensions| {
            let peer = ext.get::<Arc<Peer>>().expect("every call has one");
            let link = peer.client_link().map_err(wire_error)?;
            link.accept_answers();
            link.open();
            let _ = context.links.send(link);
            Ok::<_, ErrorObjectOwned>("linked")
        })
        .expect("new");
    module
        .register_async_method("big", |params, _, _| async move {
            Ok::<_, ErrorObjectOwned>("x".repeat(params.parse::<Value>()?["bytes"].as_u64().unwrap_or(0) as usize))
        })
        .expect("new");
    module
        .register_async_method("panic", |_, _, _| async {
            if true {
                panic!("on purpose")
            }
        })
        .expect("new");
    module
        .register_async_method("panic_later", |_, _, _| async {
            tokio::task::yield_now().await;
            if true {
                panic!("on purpose")
            }
        })
        .expect("new");
    module
        .register_async_method("daemon.shutdown", |_, context, _| async move {
            context.stop.send_replace(true);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            "stopping"
        })
        .expect("new");
    register::<api::SessionEnd, _, _, _>(&mut module, &context, |params, _, _| async move {
        Ok(results::SessionEndResult { session_key: params.session_key, killed: Vec::new(), count: 0 })
    });
    subscription(&mut module);
    module
}

fn subscription(module: &mut RpcModule<Context>) {
    module
        .register_subscription("ticks", "tick", "ticks.end", |params, pending, context, _| async move {
            if params.as_str().is_some_and(|text| text.contains("refuse")) {
                pending.reject(ErrorObjectOwned::owned(-32005, "refused", Some(json!({ "kind": "denied" })))).await;
                return;
            }
            if params.as_str().is_some_and(|text| text.contains("drop")) {
                return;
            }
            let Ok(sink) = pending.accept().await else { return };
            for tick in 1..=3 {
                let _ = sink.send(to_json_raw_value(&tick).expect("a number")).await;
            }
            sink.closed().await;
            let _ = context.notes.send("unsubscribed".into());
        })
        .expect("new");
}

/// A client that sends lines, or any bytes.
pub struct Client(pub BufReader<UnixStream>);

impl Client {
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        in_time(self.0.get_mut().write_all(text.as_ref())).await.expect("sent");
    }

    /// Reads the next line as JSON.
    pub async fn line(&mut self) -> Value {
        let line = self.line_text().await;
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// Reads the next line.
    pub async fn line_text(&mut self) -> String {
        let mut line = String::new();
        in_time(self.0.read_line(&mut line)).await.expect("read");
        line
    }

    /// Reads the next message with a Content-Length header.
    pub async fn body(&mut self) -> Value {
        let mut header = String::new();
        in_time(self.0.read_line(&mut header)).await.expect("read");
        let length = header.trim().strip_prefix("Content-Length: ").expect("the header").parse().expect("a number");
        let mut blank = String::new();
        in_time(self.0.read_line(&mut blank)).await.expect("read");
        assert_eq!(blank, "\r\n");
        let mut body = vec![0; length];
        in_time(self.0.read_exact(&mut body)).await.expect("read");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Sends one line and reads one line.
    pub async fn round_trip(&mut self, text: &str) -> Value {
        self.send(format!("{text}\n")).await;
        self.line().await
    }

    /// Calls a method with id 1.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.round_trip(&request(json!(1), method, params)).await
    }

    /// Reads up to the end of the stream.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        in_time(self.0.read_to_string(&mut rest)).await.expect("an end, not a reset");
        rest
    }

    /// Checks that the connection still answers.
    pub async fn check_alive(&mut self) {
        assert_eq!(self.call("echo", json!({ "a": 1 })).await, answer(json!(1), json!({ "a": 1 })));
    }
}

pub fn request(id: Value, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub fn answer(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Returns the id, code and kind of an error answer.
pub fn error(answer: &Value) -> (Value, i64, &str) {
    let error = &answer["error"];
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{answer}");
    (answer["id"].clone(), error["code"].as_i64().expect("a code"), error["data"]["kind"].as_str().expect("a kind"))
}

/// Returns true for an error answer that names this limit.
pub fn is_limit(answer: &Value, key: &str) -> bool {
    let (_, code, kind) = error(answer);
    let named = answer["error"]["message"].as_str().is_some_and(|message| message.contains(key));
    (code, kind, answer["error"]["data"]["limit"].as_str(), named) == (-32004, "limit", Some(key), true)
}
