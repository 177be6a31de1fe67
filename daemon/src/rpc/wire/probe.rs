//! A client inside the daemon, connected through a socket pair: checks that calls are answered.

#[cfg(feature = "counts")]
use super::connection::{Connection, Inbox, Transport};
#[cfg(feature = "counts")]
use super::pending::Dispatched;
use super::{Peer, StopSignal, Wire, client};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

/// A call that reads the state of every process and changes nothing.
const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.active\",\"params\":{\"session_key\":\"\"}}\n";

/// Makes a call on the path of every client, from its bytes to the bytes of its answer. Returns false if the connection
/// ended without an answer.
pub async fn probe(wire: &Arc<Wire>) -> bool {
    let Ok((mut ours, theirs)) = UnixStream::pair() else { return false };
    let peer = own_peer(wire);
    // A probe is never stopped; it ends when `ours` is dropped.
    let (_running, stop) = watch::channel(false);
    let served = tokio::spawn(client(theirs, wire.clone(), peer, StopSignal(stop)));
    let mut answer = [0; 1];
    let answered = match ours.write_all(CALL).await {
        Ok(()) => ours.read_exact(&mut answer).await.is_ok(),
        Err(_) => false,
    };
    drop(ours);
    served.abort();
    answered
}

/// A client without a socket, for counting the instructions of a call without the kernel and the runtime.
#[cfg(feature = "counts")]
pub struct Caller {
    connection: Arc<Connection>,
    _inbox: Inbox,
}

#[cfg(feature = "counts")]
impl Caller {
    pub fn new(wire: &Arc<Wire>) -> Caller {
        let (connection, _inbox) = Connection::new(wire.clone(), own_peer(wire));
        Caller { connection, _inbox }
    }

    /// Returns the answer to one message. None: it has no answer, or would have to wait for it.
    pub fn call(&self, text: &[u8]) -> Option<Box<str>> {
        match self.connection.receive(text, Transport::Stream) {
            Dispatched::Answer(answer) => Some(answer.text),
            Dispatched::NoAnswer | Dispatched::Pending(_) => None,
        }
    }
}

fn own_peer(wire: &Wire) -> Peer {
    Peer {
        uid: wire.own_uid,
        pid: std::process::id() as i32,
        connection: wire.next.fetch_add(1, Relaxed),
        ..Peer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::wire::WireLimits;
    use jsonrpsee::RpcModule;

    #[tokio::test]
    async fn the_probe_succeeds_if_calls_are_answered_and_hangs_if_they_hang() {
        let mut module = RpcModule::new(());
        module.register_async_method("session.active", |_, _, _| async { 0 }).expect("a new name");
        assert!(probe(&Wire::new(module, WireLimits::default(), 0)).await);
        let mut stuck = RpcModule::new(());
        let hang = |_, _, _| async { std::future::pending::<u32>().await };
        stuck.register_async_method("session.active", hang).expect("a new name");
        let wire = Wire::new(stuck, WireLimits::default(), 0);
        let soon = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, probe(&wire)).await.is_err());
    }
}
