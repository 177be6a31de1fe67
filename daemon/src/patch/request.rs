//! One call at a time per `request_id`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The requests that are answered now.
#[derive(Debug, Default)]
pub struct RequestLocks {
    all: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The turn of one call, until it is dropped.
pub struct RequestTurn<'a> {
    locks: &'a RequestLocks,
    id: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl RequestLocks {
    pub async fn lock(&self, id: &str) -> RequestTurn<'_> {
        let lock = self.all.lock().unwrap_or_else(PoisonError::into_inner).entry(id.into()).or_default().clone();
        RequestTurn { locks: self, id: id.into(), guard: Some(lock.lock_owned().await) }
    }
}

impl Drop for RequestTurn<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut all = self.locks.all.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the table has it: no other call waits.
        if all.get(&self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            all.remove(&self.id);
        }
    }
}
