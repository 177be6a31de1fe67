//! A lock for every name that somebody is about to give to a process, for as long as somebody is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

#[derive(Default)]
pub struct NameLocks {
    locks: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl NameLocks {
    /// The name, when everybody who asked for it before has given it back.
    pub async fn lock(&self, name: &str) -> NameGuard<'_> {
        let lock = self.locks().entry(name.to_string()).or_default().clone();
        // Made before the wait: a caller that is dropped while it waits leaves nothing behind either.
        let mut held = NameGuard { names: self, name: name.to_string(), guard: None };
        held.guard = Some(lock.lock_owned().await);
        held
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<String, Arc<AsyncMutex<()>>>> {
        self.locks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A name that nobody else has until this is dropped.
pub struct NameGuard<'a> {
    names: &'a NameLocks,
    name: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for NameGuard<'_> {
    fn drop(&mut self) {
        let mut locks = self.names.locks();
        self.guard.take();
        // Whoever waits holds a count, taken under this same lock.
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
    fn a_name_is_had_by_one_at_a_time_and_forgotten_with_the_last() {
        let names = NameLocks::default();
        let first = names.lock("web").now_or_never().expect("nobody has it");
        let mut second = Box::pin(names.lock("web"));
        assert!(second.as_mut().now_or_never().is_none(), "it is held");
        assert!(names.lock("db").now_or_never().is_some(), "another name is another lock");
        drop(first);
        let second = second.now_or_never().expect("it was given back");
        assert_eq!(names.locks().keys().collect::<Vec<_>>(), ["web"]);
        drop(second);
        assert!(names.locks().is_empty());
    }

    #[test]
    fn who_gives_up_waiting_leaves_nothing_behind() {
        let names = NameLocks::default();
        let first = names.lock("web").now_or_never().expect("nobody has it");
        let mut second = Box::pin(names.lock("web"));
        assert!(second.as_mut().now_or_never().is_none(), "it is held");
        drop(first);
        drop(second);
        assert!(names.locks().is_empty());
    }
}
