//! The client of a connection, as its calls know it.

use super::client_link::{ConnectionLink, PushQueue};
use crate::proc::client::Client;
use crate::proc::hold::ConnectionHolds;
use crate::rpc::live_sessions::ConnectionSessions;
use crate::tools::clients::link::ClientLink;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use toold_proto::{ErrorKind, ProcId, RpcError};

/// The client of a connection. Every call, in every framing, has it in jsonrpsee's `Extensions` as `Arc<Peer>`.
#[derive(Debug, Default)]
pub struct Peer {
    pub uid: u32,
    pub pid: i32,
    /// The time since the boot at which it was accepted.
    pub accepted_ms: u64,
    /// The number of the connection, unique while the daemon runs.
    pub connection: u64,
    pub seen_exits: SeenExits,
    /// Each message comes by itself and gets one answer: nothing is known of the client in between.
    pub is_post: AtomicBool,
    /// The processes whose output is kept for this client while it is connected.
    pub holds: ConnectionHolds,
    /// The sessions that it has used.
    pub sessions: ConnectionSessions,
    /// It has shown the token of a script, on the channel of that.
    pub is_known: AtomicBool,
    /// The queue of pushes to it.
    pub(super) queue: OnceLock<PushQueue>,
    /// The link by which it is sent requests, once it has asked to be.
    pub(super) link: OnceLock<ConnectionLink>,
    /// The script that it is a process of, if that was looked for.
    pub script: OnceLock<Option<ProcId>>,
}

impl Peer {
    /// Returns the process that connected.
    pub fn client(&self) -> Client {
        Client { pid: self.pid, accepted_ms: self.accepted_ms }
    }

    /// Returns the link to a client that can be sent requests.
    pub fn client_link(&self) -> Result<Arc<dyn ClientLink>, RpcError> {
        let queue = self.queue.get().filter(|_| !self.is_post.load(Relaxed));
        let Some(queue) = queue else {
            let message = "tools need a connection that can be pushed to: use lines, Content-Length or WebSocket";
            return Err(RpcError::new(ErrorKind::InvalidRequest, message));
        };
        let link = self.link.get_or_init(|| ConnectionLink::new(queue.clone(), self.connection, self.uid, self.pid));
        Ok(Arc::new(link.clone()))
    }

    /// Returns the link if the client serves tools, so that it may send answers.
    pub(super) fn answering_link(&self) -> Option<&ConnectionLink> {
        self.link.get().filter(|link| link.has_answers())
    }

    /// Records that the client sends nothing more.
    pub(super) fn on_sending_ended(&self) {
        if let Some(link) = self.link.get() {
            link.end();
        }
    }

    /// Checks that the client can follow output, for `hold`.
    pub fn check_follows(&self) -> Result<(), RpcError> {
        if self.is_post.load(Relaxed) {
            let why =
                "needs a connection that stays, on which its reader polls: use lines, Content-Length or WebSocket";
            return Err(RpcError::param("hold", why));
        }
        Ok(())
    }
}

/// The exits that one client was sent while output could still follow. Bounded: it forgets the oldest.
#[derive(Debug, Default)]
pub struct SeenExits(Mutex<VecDeque<u64>>);

impl SeenExits {
    const CAPACITY: usize = 64;

    /// Adds a process, by the number of its id.
    pub fn insert(&self, id: u64) {
        if let Ok(mut seen) = self.0.lock()
            && !seen.contains(&id)
        {
            seen.push_back(id);
            if seen.len() > SeenExits::CAPACITY {
                seen.pop_front();
            }
        }
    }

    pub fn contains(&self, id: u64) -> bool {
        self.0.lock().is_ok_and(|seen| seen.contains(&id))
    }
}
