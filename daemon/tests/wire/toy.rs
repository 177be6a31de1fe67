//! A daemon with toy methods, and clients that give up after a while instead of hanging.

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
use toold_daemon::rpc::register::register;
use toold_daemon::rpc::wire::{Peer, Wire, WireLimits, serve};
use toold_proto::{api, results};

/// Nothing in these tests takes this long, unless it never ends.
const GUARD: Duration = Duration::from_secs(20);

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, future).await.expect("it happens at all")
}

/// What the toy methods share with the test.
pub struct Context {
    /// `gate` passes here.
    pub gate: Semaphore,
    news: mpsc::UnboundedSender<String>,
    stop: watch::Sender<bool>,
}

pub struct Toy {
    pub wire: Arc<Wire>,
    pub context: Arc<Context>,
    pub socket: PathBuf,
    pub serving: JoinHandle<()>,
    news: Mutex<mpsc::UnboundedReceiver<String>>,
    dir: tempfile::TempDir,
}

impl Toy {
    pub fn start() -> Toy {
        Toy::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut WireLimits)) -> Toy {
        Toy::owned_by(nix::unistd::getuid().as_raw(), change)
    }

    pub fn owned_by(uid: u32, change: impl FnOnce(&mut WireLimits)) -> Toy {
        let mut limits = WireLimits::default();
        change(&mut limits);
        let (news, heard) = mpsc::unbounded_channel();
        let (stop, stopping) = watch::channel(false);
        let context = Arc::new(Context { gate: Semaphore::new(0), news, stop });
        let wire = Wire::new(methods(context.clone()), limits, uid);
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).expect("bound");
        let serving = tokio::spawn(serve(listener, wire.clone(), stopping));
        Toy { wire, context, socket, serving, news: Mutex::new(heard), dir }
    }

    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub async fn connect(&self) -> Client {
        Client(BufReader::new(UnixStream::connect(&self.socket).await.expect("connected")))
    }

    /// The next thing a toy method said.
    pub async fn news(&self) -> String {
        soon(self.news.lock().await.recv()).await.expect("the context lives")
    }

    /// Whether a toy method has said something more by now.
    pub async fn heard(&self) -> bool {
        self.news.lock().await.try_recv().is_ok()
    }

    pub fn stop(&self) {
        self.context.stop.send_replace(true);
    }

    /// Comes back when every client is gone, as the daemon sees it.
    pub async fn alone(&self) {
        soon(async {
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
            let _ = context.news.send(format!("note {}", params.as_str().unwrap_or_default()));
        })
        .expect("new");
    for name in ["gate", "kill"] {
        module
            .register_async_method(name, move |params, context, _| async move {
                let _ = context.news.send("waiting".into());
                context.gate.acquire().await.expect("open").forget();
                let _ = context.news.send("passed".into());
                object(&params)
            })
            .expect("new");
    }
    module
        .register_async_method("big", |params, _, _| async move {
            Ok::<_, ErrorObjectOwned>("x".repeat(params.parse::<Value>()?["bytes"].as_u64().unwrap_or(0) as usize))
        })
        .expect("new");
    module
        .register_async_method("panic", |_, _, _| async {
            if true {
                panic!("as told")
            }
        })
        .expect("new");
    module
        .register_async_method("panic_later", |_, _, _| async {
            tokio::task::yield_now().await;
            if true {
                panic!("as told")
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
        Ok(results::SessionEnd { session_key: params.session_key, killed: Vec::new(), count: 0 })
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
            let _ = context.news.send("unsubscribed".into());
        })
        .expect("new");
}

/// A client that speaks lines, or whatever bytes it is told to.
pub struct Client(pub BufReader<UnixStream>);

impl Client {
    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        soon(self.0.get_mut().write_all(text.as_ref())).await.expect("sent");
    }

    /// The next line as JSON.
    pub async fn line(&mut self) -> Value {
        let line = self.line_text().await;
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// The next line.
    pub async fn line_text(&mut self) -> String {
        let mut line = String::new();
        soon(self.0.read_line(&mut line)).await.expect("read");
        line
    }

    /// The next message behind a Content-Length header.
    pub async fn body(&mut self) -> Value {
        let mut header = String::new();
        soon(self.0.read_line(&mut header)).await.expect("read");
        let length = header.trim().strip_prefix("Content-Length: ").expect("the header").parse().expect("a number");
        let mut blank = String::new();
        soon(self.0.read_line(&mut blank)).await.expect("read");
        assert_eq!(blank, "\r\n");
        let mut body = vec![0; length];
        soon(self.0.read_exact(&mut body)).await.expect("read");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// One line there, one line back.
    pub async fn ask(&mut self, text: &str) -> Value {
        self.send(format!("{text}\n")).await;
        self.line().await
    }

    /// Calls a method with id 1.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(&request(json!(1), method, params)).await
    }

    /// Everything up to the end of the stream.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        soon(self.0.read_to_string(&mut rest)).await.expect("an end, not a reset");
        rest
    }

    /// Proves that the connection lives.
    pub async fn is_well(&mut self) {
        assert_eq!(self.call("echo", json!({ "a": 1 })).await, answer(json!(1), json!({ "a": 1 })));
    }
}

pub fn request(id: Value, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub fn answer(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The id, code and kind of an error answer.
pub fn error(answer: &Value) -> (Value, i64, &str) {
    let error = &answer["error"];
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{answer}");
    (answer["id"].clone(), error["code"].as_i64().expect("a code"), error["data"]["kind"].as_str().expect("a kind"))
}

/// An error answer that names this limit.
pub fn is_limit(answer: &Value, key: &str) -> bool {
    let (_, code, kind) = error(answer);
    let named = answer["error"]["message"].as_str().is_some_and(|message| message.contains(key));
    (code, kind, answer["error"]["data"]["limit"].as_str(), named) == (-32004, "limit", Some(key), true)
}
