//! Turns bytes into calls: one socket, three framings. Accepts connections, identifies the peer and enforces the limits.
//! Knows nothing of what the methods do.

mod call_limit;
pub mod cancel;
mod client_link;
mod connection;
mod delivery;
pub mod frame;
mod hang_up;
pub mod headers;
mod http;
mod http_io;
mod jsonrpsee;
pub mod lines;
pub mod message;
pub mod nesting;
mod opening;
mod peer;
mod pending;
pub mod probe;
mod push_budget;
mod reject;
mod reserve;
mod response;
pub mod sniff;
mod stream;
mod ws;

pub use delivery::{OnDelivery, Receipt};
pub use jsonrpsee::raw_response;
pub use peer::{Peer, SeenExits};
pub use push_budget::PushBudget;
pub use reserve::ReserveFd;
pub use response::{Serialized, WithReceipt, WriteJson};

use crate::clock::boot_ms;
use crate::config::Config;
use ::jsonrpsee::Methods;
use connection::Connection;
use futures_util::FutureExt;
use opening::OpeningDeadline;
use sniff::{Framing, Opening};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use toold_proto::{ErrorKind, RpcError};

/// The most clients that are sent the reason why they are rejected at a time. More are closed without one.
const MAX_REJECTING: usize = 32;
/// The time for writing finished answers when the daemon stops.
const STOP_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for connections to close after that. Those that are left are aborted.
const STOP_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause after a failed accept. Without one, a lack of descriptors would keep a CPU busy.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The time in which the subscriptions of a closed connection end, and in which others may close too.
const TRIM_DELAY: Duration = Duration::from_millis(500);

/// Limits on what clients can make the daemon hold. Every field is a top-level config key of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLimits {
    pub max_message_bytes: usize,
    pub max_nesting: usize,
    pub max_connections: usize,
    /// Of one connection.
    pub max_requests_in_flight: usize,
    pub max_batch: usize,
    /// Of one connection.
    pub max_subscriptions: usize,
    /// Of one connection: the bytes of answers that wait because the client does not read.
    pub max_outgoing_bytes: usize,
    /// The time in which a new connection must send its first whole request.
    pub first_byte_ms: u64,
    /// The web pages that may use HTTP and WebSocket, if a proxy makes the socket reachable for them.
    pub allowed_origins: Vec<String>,
}

impl From<&Config> for WireLimits {
    fn from(config: &Config) -> WireLimits {
        WireLimits {
            max_message_bytes: config.max_message_bytes as usize,
            max_nesting: config.max_nesting as usize,
            max_connections: config.max_connections as usize,
            max_requests_in_flight: config.max_requests_in_flight as usize,
            max_batch: config.max_batch as usize,
            max_subscriptions: config.max_subscriptions as usize,
            max_outgoing_bytes: config.max_outgoing_bytes as usize,
            first_byte_ms: config.first_byte_ms,
            allowed_origins: config.allowed_origins.clone(),
        }
    }
}

impl Default for WireLimits {
    fn default() -> WireLimits {
        WireLimits::from(&Config::default())
    }
}

/// Releases what is kept for a client when its connection ends. If the daemon stops, the client comes back to the next one, and
/// its output is kept.
struct ReleaseHolds {
    peer: Arc<Peer>,
    stop: StopSignal,
}

impl Drop for ReleaseHolds {
    fn drop(&mut self) {
        self.peer.sessions.close();
        if !self.stop.is_set() {
            self.peer.holds.close(self.peer.connection);
        }
    }
}

/// The methods, and the limits for their clients.
pub struct Wire {
    methods: Methods,
    limits: WireLimits,
    own_uid: u32,
    /// Number of open connections.
    open: Arc<AtomicUsize>,
    rejecting: AtomicUsize,
    next: AtomicU64,
    calls: Arc<AtomicUsize>,
    /// A trim of the allocator is due.
    trim_due: Arc<AtomicBool>,
    /// Returns the reason why a new client is not served.
    refuse: OnceLock<Refuse>,
    /// Returns the reason why a client may not call a method.
    authorize: OnceLock<Authorize>,
}

/// Looks at a call, by the name of its method.
type Authorize = Box<dyn Fn(&Peer, &str) -> Result<(), RpcError> + Send + Sync>;

/// Looks at a new client.
type Refuse = Box<dyn Fn(&Peer) -> Option<RpcError> + Send + Sync>;

impl Wire {
    pub fn new(methods: impl Into<Methods>, limits: WireLimits, own_uid: u32) -> Arc<Wire> {
        Wire::with_counter(methods, limits, own_uid, Arc::default())
    }

    /// Counts open connections in `open`, which the methods may read.
    pub fn with_counter(
        methods: impl Into<Methods>,
        limits: WireLimits,
        own_uid: u32,
        open: Arc<AtomicUsize>,
    ) -> Arc<Wire> {
        Arc::new(Wire {
            methods: methods.into(),
            limits,
            own_uid,
            open,
            rejecting: AtomicUsize::new(0),
            next: AtomicU64::new(1),
            calls: Arc::default(),
            trim_due: Arc::default(),
            refuse: OnceLock::new(),
            authorize: OnceLock::new(),
        })
    }

    /// Has each new client looked at from now on, once.
    pub fn refuse_by(&self, refuse: impl Fn(&Peer) -> Option<RpcError> + Send + Sync + 'static) {
        let _ = self.refuse.set(Box::new(refuse));
    }

    /// Has each call looked at from now on, before it starts.
    pub fn authorize_by(&self, authorize: impl Fn(&Peer, &str) -> Result<(), RpcError> + Send + Sync + 'static) {
        let _ = self.authorize.set(Box::new(authorize));
    }

    /// Returns the number of connected clients.
    pub fn connections(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Returns the number of calls in flight, also of clients that hung up.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Returns freed memory to the kernel a moment later. Called when a client with subscriptions has disconnected: what
    /// was queued for it is many small pieces, which glibc keeps.
    fn trim_later(&self) {
        if self.trim_due.swap(true, Relaxed) {
            return;
        }
        let trim_due = self.trim_due.clone();
        tokio::spawn(async move {
            tokio::time::sleep(TRIM_DELAY).await;
            trim_due.store(false, Relaxed);
            crate::sys::trim_malloc();
        });
    }

    /// Rejects clients of other users, and those over the limit.
    fn check_peer(&self, uid: u32) -> Result<(), RpcError> {
        if uid != self.own_uid && uid != 0 {
            let reason = match self.own_uid {
                0 => format!("uid {uid} is not root, who runs this daemon"),
                own => format!("uid {uid} is neither {own}, who runs this daemon, nor root"),
            };
            return Err(RpcError::new(ErrorKind::Denied, format!("access denied: {reason}")).with("reason", reason));
        }
        let max = self.limits.max_connections;
        if self.connections() >= max {
            return Err(RpcError::limit("max_connections", format!("{max} clients are connected; close one")));
        }
        Ok(())
    }
}

/// Increments a counter while it lives.
struct Counted<F: Fn(&Wire) -> &AtomicUsize>(Arc<Wire>, F);

impl<F: Fn(&Wire) -> &AtomicUsize> Counted<F> {
    fn new(wire: &Arc<Wire>, counter: F) -> Counted<F> {
        counter(wire).fetch_add(1, Relaxed);
        Counted(wire.clone(), counter)
    }
}

impl<F: Fn(&Wire) -> &AtomicUsize> Drop for Counted<F> {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Relaxed);
    }
}

/// The signal that the daemon stops.
#[derive(Clone)]
struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the daemon stops, and at once after that.
    async fn wait(&mut self) {
        // Without a sender nothing could stop the wire any more, so that counts as a stop too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Accepts and serves clients until `stop`. Then it accepts no more, writes the finished answers, closes every connection
/// and returns. Calls in flight are not cancelled.
pub async fn serve(listener: UnixListener, wire: Arc<Wire>, stop: watch::Receiver<bool>) {
    let (_, none) = mpsc::channel(1);
    serve_renewed(listener, none, ReserveFd::open().unwrap_or_default(), wire, stop).await;
}

/// Does the same, and goes on with each new listener that comes. Clients in the queue of the old one are served first.
pub async fn serve_renewed(
    mut listener: UnixListener,
    mut listeners: mpsc::Receiver<UnixListener>,
    mut reserve: ReserveFd,
    wire: Arc<Wire>,
    stop: watch::Receiver<bool>,
) {
    let mut stop = StopSignal(stop);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(stream, &wire, &stop, &mut clients),
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    let rejected = tokio::select! {
                        rejected = reserve.reject_one(&listener, &wire), if reserve::is_shortage(&error) => rejected,
                        () = stop.wait() => break,
                        else => false,
                    };
                    if !rejected {
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                }
            },
            Some(next) = listeners.recv() => {
                while let Some(Ok((stream, _))) = listener.accept().now_or_never() {
                    admit(stream, &wire, &stop, &mut clients);
                }
                listener = next;
            }
            Some(_) = clients.join_next() => {}
            () = stop.wait() => break,
        }
    }
    drop(listener);
    let close = async { while clients.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_CLOSE_TIMEOUT, close).await.is_err() {
        clients.shutdown().await;
    }
}

/// Starts a task for a new client: to serve it, or to send it the reason of its rejection.
fn admit(stream: UnixStream, wire: &Arc<Wire>, stop: &StopSignal, clients: &mut JoinSet<()>) {
    let Ok(credentials) = stream.peer_cred() else { return };
    if let Err(error) = wire.check_peer(credentials.uid()) {
        let rejecting = Counted::new(wire, |wire| &wire.rejecting);
        if wire.rejecting.load(Relaxed) <= MAX_REJECTING {
            let mut stop = stop.clone();
            clients.spawn(async move {
                let _rejecting = rejecting;
                tokio::select! {
                    () = reject::reject(stream, &error) => {}
                    () = stop.wait() => {}
                }
            });
        }
        return;
    }
    let peer = Peer {
        uid: credentials.uid(),
        pid: credentials.pid().unwrap_or(0),
        accepted_ms: boot_ms(),
        connection: wire.next.fetch_add(1, Relaxed),
        ..Peer::default()
    };
    let open = Counted::new(wire, |wire| &wire.open);
    let (wire, stop) = (wire.clone(), stop.clone());
    clients.spawn(async move {
        let _open = open;
        client(stream, wire, peer, stop).await;
    });
}

/// Serves one client, from its first byte to its last.
async fn client(mut stream: UnixStream, wire: Arc<Wire>, peer: Peer, mut stop: StopSignal) {
    if let Some(error) = wire.refuse.get().and_then(|refuse| refuse(&peer)) {
        return tokio::select! {
            () = reject::reject(stream, &error) => {}
            () = stop.wait() => {}
        };
    }
    let peer = Arc::new(peer);
    let _release = ReleaseHolds { peer: peer.clone(), stop: stop.clone() };
    let deadline = OpeningDeadline::new(wire.limits.first_byte_ms);
    let opening = tokio::select! {
        opening = sniff::read_opening(&mut stream, deadline.at()) => opening,
        () = stop.wait() => return,
    };
    let max = wire.limits.max_message_bytes;
    match opening {
        Opening::Closed => {}
        Opening::TimedOut => {
            reject::send_error_and_close(stream, Framing::Unknown, &deadline.error()).await;
        }
        Opening::Detected(Framing::Unknown, _) => {
            let message = "begin with { or [ for one JSON message per line, Content-Length: or an HTTP method";
            reject::send_error_and_close(stream, Framing::Unknown, &RpcError::new(ErrorKind::ParseError, message))
                .await;
        }
        Opening::Detected(Framing::Lines, bytes) => {
            let start = stream::Start { framing: Framing::Lines, bytes, deadline };
            stream::serve(lines::Lines::new(max), stream, start, Connection::new(wire, peer), stop).await;
        }
        Opening::Detected(Framing::Headers, bytes) => {
            let start = stream::Start { framing: Framing::Headers, bytes, deadline };
            stream::serve(headers::Headers::new(max), stream, start, Connection::new(wire, peer), stop).await;
        }
        // On the heap: the task of an idle line client should not have the size of an HTTP server.
        Opening::Detected(Framing::Http, bytes) => {
            Box::pin(http::serve(stream, (bytes, deadline), Connection::new(wire, peer), stop)).await;
        }
    }
}

/// Cuts `text` at these places, for the tests of the framings.
#[cfg(test)]
fn cut<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|at| at % (text.len() + 1)).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_is_denied_with_the_reason_and_root_and_the_owner_are_not() {
        let wire = Wire::new(Methods::new(), WireLimits::default(), 1000);
        assert_eq!((wire.check_peer(1000), wire.check_peer(0)), (Ok(()), Ok(())));
        let error = wire.check_peer(1001).expect_err("another user");
        assert_eq!(
            (error.kind(), error.data["reason"].as_str()),
            (Some(ErrorKind::Denied), Some("uid 1001 is neither 1000, who runs this daemon, nor root"))
        );
    }
}
