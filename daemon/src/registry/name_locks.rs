//! A lock per name, held by a caller that is about to start a process of that name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

#[derive(Default)]
pub struct NameLocks {
    locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl NameLocks {
    /// Waits until every earlier caller has released the name, and locks it.
    pub async fn lock(&self, name: &str) -> NameGuard<'_> {
        let lock = self.locks().entry(name.to_string()).or_default().clone();
        // Created before the wait, so that a caller which is dropped while it waits leaves nothing behind.
        let mut held = NameGuard { names: self, name: name.to_string(), guard: None };
        held.guard = Some(lock.lock_owned().await);
        held
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<String, Arc<AsyncMutex<()>>>> {
        self.locks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A locked name.
pub struct NameGuard<'a> {
    names: &'a NameLocks,
    name: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for NameGuard<'_> {
    fn drop(&mut self) {
        let mut locks = self.names.locks();
        self.guard.take();
        // A waiting caller holds a reference, taken under this same lock.
        if locks.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn one_caller_at_a_time_holds_a_name_and_the_last_removes_its_lock() {
        let names = NameLocks::default();
        let first = names.lock("web").now_or_never().expect("the name is free");
        let mut second = Box::pin(names.lock("web"));
        assert!(second.as_mut().now_or_never().is_none(), "it is held");
        assert!(names.lock("db").now_or_never().is_some(), "another name is another lock");
        drop(first);
        let second = second.now_or_never().expect("it was released");
        assert_eq!(names.locks().keys().collect::<Vec<_>>(), ["web"]);
        drop(second);
        assert!(names.locks().is_empty());
    }

    #[test]
    fn a_dropped_waiter_leaves_nothing_behind() {
        let names = NameLocks::default();
        let first = names.lock("web").now_or_never().expect("the name is free");
        let mut second = Box::pin(names.lock("web"));
        assert!(second.as_mut().now_or_never().is_none(), "it is held");
        drop(first);
        drop(second);
        assert!(names.locks().is_empty());
    }
}
