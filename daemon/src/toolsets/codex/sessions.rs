//! The numbers of the sessions of `exec_command`. The number is a label of the process, so that its record is all that a later
//! daemon needs. A number is used again only when the process that had it is forgotten.

use crate::proc::Proc;
use crate::registry::Registry;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use toold_tools::toolset::codex::FIRST_SESSION_ID;

/// The label of a process that is a session.
pub const SESSION_LABEL: &str = "toold.codex";
/// The session keys whose next number is kept in memory. Those of others are looked up again.
const MAX_KEPT: usize = 1024;

/// The next number of each session key.
#[derive(Default)]
pub struct CodexSessions {
    next: Mutex<HashMap<Option<String>, Numbers>>,
}

struct Numbers {
    next: u64,
    /// Shared with every number that has no process yet.
    unused: Arc<()>,
}

/// A number that no other process gets. Dropped: its process has it, or there is none.
pub struct SessionNumber {
    pub number: u64,
    _unused: Arc<()>,
}

impl CodexSessions {
    /// Takes the next number of a session key.
    pub fn reserve(&self, registry: &Registry, session_key: Option<&str>) -> SessionNumber {
        let mut all = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > MAX_KEPT {
            all.retain(|_, numbers| Arc::strong_count(&numbers.unused) > 1);
        }
        let numbers = all.entry(session_key.map(String::from)).or_insert_with(|| Numbers {
            next: highest(registry, session_key).map_or(FIRST_SESSION_ID, |number| number + 1),
            unused: Arc::default(),
        });
        numbers.next += 1;
        SessionNumber { number: numbers.next - 1, _unused: numbers.unused.clone() }
    }
}

/// Returns the number of a session.
pub fn number_of(proc: &Proc) -> Option<u64> {
    proc.spec.labels.get(SESSION_LABEL)?.parse().ok()
}

/// Finds a session by its number.
pub fn find(registry: &Registry, session_key: Option<&str>, number: u64) -> Option<Arc<Proc>> {
    let is_it = |proc: &Arc<Proc>| proc.spec.session_key.as_deref() == session_key && number_of(proc) == Some(number);
    registry.newest_first().into_iter().find(is_it)
}

fn highest(registry: &Registry, session_key: Option<&str>) -> Option<u64> {
    let procs = registry.newest_first();
    let of_key = procs.iter().filter(|proc| proc.spec.session_key.as_deref() == session_key);
    of_key.filter_map(|proc| number_of(proc)).max()
}
