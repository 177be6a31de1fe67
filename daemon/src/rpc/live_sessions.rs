//! The sessions that have a client: a connection that used the session and is still open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most sessions that count for one connection. A connection that uses more of them is not the client of one.
const MAX_PER_CONNECTION: usize = 64;

/// The number of open connections that used each session.
#[derive(Debug, Default)]
pub struct LiveSessions {
    uses: Mutex<BTreeMap<String, u64>>,
}

impl LiveSessions {
    /// Notes that a connection uses a session.
    pub fn add_use(self: &Arc<Self>, connection: &ConnectionSessions, key: Option<&str>) {
        let Some(key) = key.filter(|key| !key.is_empty()) else { return };
        let mut used = connection.lock();
        let Used::Open(guards) = &mut *used else { return };
        if guards.len() < MAX_PER_CONNECTION && !guards.iter().any(|guard| guard.key == key) {
            *self.uses().entry(key.to_owned()).or_default() += 1;
            guards.push(SessionUse { key: key.to_owned(), all: self.clone() });
        }
    }

    /// Returns the sessions that have a client.
    pub fn keys(&self) -> Vec<String> {
        self.uses().keys().cloned().collect()
    }

    fn uses(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions that one connection has used.
#[derive(Debug, Default)]
pub struct ConnectionSessions(Mutex<Used>);

#[derive(Debug)]
enum Used {
    Open(Vec<SessionUse>),
    /// The connection is closed. A call of it may still run.
    Closed,
}

impl Default for Used {
    fn default() -> Used {
        Used::Open(Vec::new())
    }
}

impl ConnectionSessions {
    /// Ends all uses: the connection is closed.
    pub fn close(&self) {
        *self.lock() = Used::Closed;
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One use of a session, until it is dropped.
#[derive(Debug)]
struct SessionUse {
    key: String,
    all: Arc<LiveSessions>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut uses = self.all.uses();
        if let Some(count) = uses.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                uses.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_as_long_as_the_last_connection_that_used_it() {
        let all = Arc::new(LiveSessions::default());
        let (first, second) = (ConnectionSessions::default(), ConnectionSessions::default());
        for key in [Some("a"), Some("a"), Some("b"), Some(""), None] {
            all.add_use(&first, key);
        }
        all.add_use(&second, Some("a"));
        assert_eq!(all.keys(), ["a", "b"]);
        first.close();
        assert_eq!(all.keys(), ["a"]);
        all.add_use(&first, Some("late"));
        drop(second);
        assert_eq!(all.keys(), Vec::<String>::new(), "a call of a closed connection opens nothing");
    }

    #[test]
    fn a_connection_counts_for_a_bounded_number_of_sessions() {
        let all = Arc::new(LiveSessions::default());
        let connection = ConnectionSessions::default();
        for n in 0..200 {
            all.add_use(&connection, Some(&format!("s{n}")));
        }
        assert_eq!(all.keys().len(), 64);
    }
}
