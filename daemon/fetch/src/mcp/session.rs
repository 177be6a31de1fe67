//! The state of a bridge: the session with the server, and the calls in flight. Each call is answered once.

use super::bridge::Visibility;
use super::mirror::Mirror;
use serde_json::Value;
use std::collections::HashMap;
use tokio::task::AbortHandle;

/// Generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A handshake, sessions, a stream of its own for notifications, resumption.
    Session,
    /// None of these: since revision 2026-07-28 each request is complete in itself.
    Stateless,
}

#[derive(Debug)]
pub struct Call {
    pub id: Value,
    pub method: String,
    pub era: Era,
    /// Number of the session in which it was sent.
    pub session: u64,
    /// Ends its task.
    pub task: Option<AbortHandle>,
    pub visibility: Visibility,
}

#[derive(Debug, Default)]
pub struct Session {
    /// Value of `Mcp-Session-Id`.
    pub id: Option<String>,
    /// Protocol version that the handshake agreed on.
    pub version: Option<String>,
    /// Text of the last `initialize`, to begin a session again.
    pub initialize: Option<Value>,
    /// Counts sessions, so that an answer about an old one does not end the new one.
    pub number: u64,
    pub calls: HashMap<String, Call>,
    pub mirror: Mirror,
}

impl Session {
    /// Ends a call: the first who ends it answers it.
    pub fn end(&mut self, key: &str) -> Option<Call> {
        self.calls.remove(key)
    }

    /// Ends the session with this number. Returns false if it has ended already.
    pub fn expire(&mut self, number: u64) -> bool {
        if self.number != number || self.id.is_none() {
            return false;
        }
        self.number += 1;
        self.id = None;
        self.version = None;
        true
    }

    /// Ends the calls of the session with this number.
    pub fn end_all(&mut self, number: u64) -> Vec<Call> {
        let of_session = self.calls.iter().filter(|(_, call)| call.session == number);
        let keys: Vec<String> = of_session.map(|(key, _)| key.clone()).collect();
        keys.iter().filter_map(|key| self.calls.remove(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(session: u64) -> Call {
        Call {
            id: 1.into(),
            method: "tools/call".into(),
            era: Era::Session,
            session,
            task: None,
            visibility: Visibility::Written,
        }
    }

    #[test]
    fn a_session_expires_once_and_takes_its_calls_with_it() {
        let mut session = Session { id: Some("a".into()), number: 3, ..Session::default() };
        session.calls.insert("1".into(), call(3));
        session.calls.insert("2".into(), call(2));
        assert_eq!([session.expire(2), session.expire(3), session.expire(3)], [false, true, false]);
        assert_eq!(session.end_all(3).len(), 1);
        assert_eq!((session.id, session.number, session.calls.len()), (None, 4, 1));
    }
}
