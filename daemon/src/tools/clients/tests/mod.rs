//! Clients that come, go and come back, with links that the test answers.

mod calls;
mod table;

use super::link::{ClientLink, LinkAnswer, LinkClosed, LinkRequest, PendingAnswer, SendError};
use super::{ClientProviders, RegistrationRules};
use crate::tools::provider::{CallFacts, CallScope, Invocation, Resumed};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use toold_proto::approval::Caller;
use toold_proto::{ErrorKind, RpcError};

/// The timeout of every step: only a hang takes this long.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(STEP_TIMEOUT, future).await.expect("a hang")
}

/// A request that the client has got.
struct Received {
    params: Value,
    answer: oneshot::Sender<LinkAnswer>,
}

impl Received {
    fn answer(self, value: Value) {
        let raw = RawValue::from_string(value.to_string()).expect("JSON");
        let _ = self.answer.send(LinkAnswer::Result(raw));
    }
}

/// The daemon's end of a connection that the test serves.
struct FakeLink {
    connection: u64,
    requests: mpsc::UnboundedSender<Received>,
    notes: mpsc::UnboundedSender<(&'static str, Value)>,
    closed: watch::Receiver<bool>,
}

impl ClientLink for FakeLink {
    fn connection(&self) -> u64 {
        self.connection
    }

    fn caller(&self) -> Caller {
        Caller { uid: 1000, pid: self.connection as i32, program: None }
    }

    fn accept_answers(&self) {}

    fn open(&self) {}

    fn send(&self, request: LinkRequest) -> BoxFuture<'static, Result<PendingAnswer, SendError>> {
        let (requests, mut closed) = (self.requests.clone(), self.closed.clone());
        async move {
            if *closed.borrow() {
                return Err(SendError::Closed);
            }
            (request.before)().map_err(SendError::Refused)?;
            let (answer, answered) = oneshot::channel();
            let _ = requests.send(Received { params: request.params, answer });
            let pending = async move {
                tokio::select! {
                    biased;
                    Ok(answer) = answered => Ok(answer),
                    _ = closed.wait_for(|closed| *closed) => Err(LinkClosed),
                }
            };
            Ok(pending.boxed())
        }
        .boxed()
    }

    fn notify(&self, method: &'static str, params: Value) -> BoxFuture<'static, ()> {
        let _ = self.notes.send((method, params));
        std::future::ready(()).boxed()
    }

    fn settled(&self, _: Arc<str>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn closed(&self) -> BoxFuture<'static, ()> {
        let mut closed = self.closed.clone();
        async move {
            let _ = closed.wait_for(|closed| *closed).await;
        }
        .boxed()
    }

    fn ignored_answers(&self) -> u64 {
        self.connection
    }
}

/// The client's end.
struct FakeClient {
    link: Arc<FakeLink>,
    requests: mpsc::UnboundedReceiver<Received>,
    notes: mpsc::UnboundedReceiver<(&'static str, Value)>,
    closed: watch::Sender<bool>,
}

impl FakeClient {
    fn connect(connection: u64) -> FakeClient {
        let (requests, received) = mpsc::unbounded_channel();
        let (notes, noted) = mpsc::unbounded_channel();
        let (close, closed) = watch::channel(false);
        let link = Arc::new(FakeLink { connection, requests, notes, closed });
        FakeClient { link, requests: received, notes: noted, closed: close }
    }

    /// Connects and registers `p.once`, and `p.again`, which is idempotent.
    async fn serving(providers: &Arc<ClientProviders>, connection: u64, more: Value) -> FakeClient {
        let client = FakeClient::connect(connection);
        client.register(providers, more).await.expect("registered");
        client
    }

    async fn register(&self, providers: &Arc<ClientProviders>, more: Value) -> Result<Value, RpcError> {
        let schema = json!({ "type": "object" });
        let mut call = json!({ "provider": "p", "reconnect_ms": 30, "tools": [
            { "name": "once", "input_schema": schema },
            { "name": "again", "input_schema": schema, "idempotent": true },
        ] });
        call.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let params = serde_json::from_value(call).expect("parameters");
        let result = providers.register(params, self.link.clone()).await?;
        Ok(serde_json::to_value(result).expect("it prints"))
    }

    async fn request(&mut self) -> Received {
        in_time(self.requests.recv()).await.expect("the link lives")
    }

    fn take_request(&mut self) -> bool {
        self.requests.try_recv().is_ok()
    }

    fn disconnect(&self) {
        self.closed.send_replace(true);
    }
}

/// Facts in memory.
#[derive(Default)]
struct Facts {
    recorded: Mutex<Vec<Value>>,
    fails: bool,
}

impl CallFacts for Facts {
    fn record(&self, facts: Value) -> io::Result<()> {
        if self.fails {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.recorded.lock().expect("no panic").push(facts);
        Ok(())
    }
}

impl Facts {
    fn all(&self) -> Vec<Value> {
        self.recorded.lock().expect("no panic").clone()
    }
}

fn providers() -> Arc<ClientProviders> {
    ClientProviders::new(RegistrationRules { mcp_servers: Vec::new(), max_key_bytes: 100 })
}

fn invocation(tool: &str, facts: &Arc<Facts>) -> Invocation {
    Invocation {
        call: "proc_1/l-1".into(),
        tool: tool.into(),
        args: json!({ "x": 1 }),
        scope: CallScope { session_key: Some("s".into()), ..CallScope::default() },
        script: None,
        files_dir: None,
        by: Caller { uid: 1000, pid: 1, program: None },
        timeout_ms: None,
        resumed: None,
        facts: facts.clone(),
    }
}

fn resumed(tool: &str, facts: Option<Value>) -> Invocation {
    Invocation { resumed: Some(Resumed { accepted_ms: 0, facts }), ..invocation(tool, &Arc::default()) }
}

/// Starts a call in a task of its own.
fn start(providers: &Arc<ClientProviders>, invocation: Invocation) -> JoinHandle<Result<Value, RpcError>> {
    tokio::spawn(providers.expect("p", Some("s")).invoke(invocation))
}

fn call(providers: &Arc<ClientProviders>, tool: &str) -> JoinHandle<Result<Value, RpcError>> {
    start(providers, invocation(tool, &Arc::default()))
}

async fn end(call: JoinHandle<Result<Value, RpcError>>) -> Result<Value, RpcError> {
    in_time(call).await.expect("no panic")
}

async fn kind(call: JoinHandle<Result<Value, RpcError>>) -> Option<ErrorKind> {
    end(call).await.expect_err("an error").kind()
}

/// Waits until the table has recorded the end of the connection.
async fn until_gone(providers: &Arc<ClientProviders>) {
    let mut changes = providers.changes.subscribe();
    while providers.live("p", Some("s")).is_some() {
        in_time(changes.changed()).await.expect("the table lives");
    }
}
