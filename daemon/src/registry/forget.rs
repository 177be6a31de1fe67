//! Removes processes and their files: by request, and by retention.

use super::Registry;
use crate::clock::retention_ms;
use crate::config::Retention;
use crate::disk;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::retention::counted_from;
use crate::store::remove_tree::remove_tree;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use toold_proto::ProcId;

/// Time that a shim has to exit after its process has closed.
const SHIM_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time that calls have to read the output of processes that are not kept.
const READERS_TIMEOUT: Duration = Duration::from_secs(1);
const READERS_INTERVAL: Duration = Duration::from_millis(5);

impl Registry {
    /// Returns the closed processes that ended at or before `ms`, newest first.
    pub fn ended_before(&self, ms: u64) -> Vec<Arc<Proc>> {
        let mut procs = self.newest_first();
        procs.retain(|proc| {
            let state = proc.published_state();
            state.closed && state.ended_ms().is_some_and(|at| at <= ms)
        });
        procs
    }

    /// Removes processes and their files. Returns the removed ones and those of which something still runs.
    pub async fn forget_all(&self, procs: Vec<Arc<Proc>>) -> (Vec<ProcId>, Vec<ProcId>) {
        let (mut forgotten, mut skipped) = (Vec::new(), Vec::new());
        for proc in procs {
            let (id, state) = (proc.spec.id, proc.published_state());
            if state.has_ended() && state.closed {
                // Its shim is about to exit.
                let _ = timeout(SHIM_EXIT_TIMEOUT, proc.subscribe().wait_for(State::is_final)).await;
            }
            let list = if self.forget(id).await { &mut forgotten } else { &mut skipped };
            list.push(id);
        }
        (forgotten, skipped)
    }

    /// Removes a process in its final state and its files. Returns false for any other process, and for one that a pending
    /// process waits for.
    pub async fn forget(&self, id: ProcId) -> bool {
        let removed = {
            let mut table = self.table();
            match table.get(id) {
                Some(proc) if proc.published_state().is_final() && !self.is_awaited(id) => table.remove(id),
                Some(_) | None => None,
            }
        };
        let Some(proc) = removed else { return false };
        if let Ok(mut finished) = self.ended.lock() {
            finished.remove(id);
        }
        let dir = proc.dir.clone();
        let run_dir = proc.spec.script.as_ref().map(|script| script.run_dir.clone());
        let gone = disk::blocking(move || {
            // The results of a script that were too long for answers.
            run_dir.iter().for_each(|dir| drop(std::fs::remove_dir_all(dir)));
            remove(&dir)
        })
        .await;
        if let Err(e) = gone.flatten() {
            tracing::warn!(id = %proc.spec.id, %e, "failed to remove the record");
        }
        true
    }

    /// Removes what retention does not keep, whenever a process finished or became too old. Never returns.
    pub async fn retain(self: Arc<Self>) {
        loop {
            let (victims, next_ms) = self.expired(retention_ms());
            let unread_until = Instant::now() + READERS_TIMEOUT;
            for id in &victims {
                self.wait_for_readers(*id, unread_until).await;
                self.forget(*id).await;
            }
            if !victims.is_empty() {
                tracing::info!(count = victims.len(), "forgot finished processes");
                continue;
            }
            let old_enough = async {
                match next_ms {
                    Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.finished.notified() => {}
                () = old_enough => {}
            }
        }
    }

    async fn wait_for_readers(&self, id: ProcId, until: Instant) {
        let proc = self.table().get(id);
        while proc.as_ref().is_some_and(|proc| proc.has_readers()) && Instant::now() < until {
            tokio::time::sleep(READERS_INTERVAL).await;
        }
    }

    /// Queues a process for retention that was found in its final state. All are counted at one moment, so that those with
    /// a stamp in the future, or too long ago, stay in the order of their stamps.
    pub(super) fn queue_found(&self, proc: &Proc) {
        let age = self.opened_ms.saturating_sub(proc.published_state().ended_ms().unwrap_or(0));
        self.queue_retention(proc, age, self.opened_ms);
    }

    /// Queues a process in its final state for retention, with its age at the retention time `now_ms`.
    pub(super) fn queue_retention(&self, proc: &Proc, age_ms: u64, now_ms: u64) {
        let state = proc.published_state();
        let Some(ended) = state.ended_ms().filter(|_| state.is_final()) else { return };
        let counts = state.progress.counts;
        let kept = counts.end.saturating_sub(counts.dropped).saturating_sub(counts.unstored);
        if let Ok(mut finished) = self.ended.lock() {
            let counted_ms = counted_from(age_ms, now_ms, self.config.retention.max_age_ms);
            finished.insert(End { counted_ms, ended_ms: ended, id: proc.spec.id }, kept);
        }
        self.finished.notify_one();
    }

    /// Sets the bytes that a process in its final state keeps in its stage, besides its output.
    pub fn set_staged_bytes(&self, id: ProcId, bytes: u64) {
        if let Ok(mut finished) = self.ended.lock() {
            finished.set_staged(id, bytes);
        }
        self.finished.notify_one();
    }

    /// Returns the processes to remove now, and the milliseconds until the next one is too old.
    fn expired(&self, now: u64) -> (Vec<ProcId>, Option<u64>) {
        match self.ended.lock() {
            Ok(mut finished) => finished.expired(&self.config.retention, now),
            Err(_) => (Vec::new(), None),
        }
    }
}

/// Extension of a directory that is being removed.
const REMOVED_EXT: &str = "forgotten";

/// Removes a record. The rename comes first, so that a crash leaves it whole or gone.
fn remove(dir: &Path) -> io::Result<()> {
    let away = dir.with_extension(REMOVED_EXT);
    std::fs::rename(dir, &away)?;
    remove_tree(&away)
}

/// Removes a directory whose removal a daemon had started before it died. Returns false for any other directory.
pub fn finish_removal(dir: &Path) -> bool {
    if dir.extension().is_none_or(|e| e != REMOVED_EXT) {
        return false;
    }
    if let Err(e) = remove_tree(dir) {
        tracing::warn!(dir = %dir.display(), %e, "failed to remove a forgotten record");
    }
    true
}

/// The end of a process: the retention time from which its age is counted, and its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    counted_ms: u64,
    ended_ms: u64,
    id: ProcId,
}

/// Finished processes, oldest end first. Pure; a step costs the same however many there are.
#[derive(Default)]
pub struct RetentionQueue {
    by_end: BTreeMap<End, u64>,
    ends: HashMap<ProcId, End>,
    bytes: u64,
    /// The part of the bytes that is in stages.
    staged: HashMap<ProcId, u64>,
}

impl RetentionQueue {
    fn insert(&mut self, end: End, bytes: u64) {
        if let Entry::Vacant(place) = self.ends.entry(end.id) {
            place.insert(end);
            self.by_end.insert(end, bytes);
            self.bytes += bytes;
        }
    }

    fn remove(&mut self, id: ProcId) {
        if let Some(bytes) = self.ends.remove(&id).and_then(|end| self.by_end.remove(&end)) {
            self.bytes -= bytes;
            self.staged.remove(&id);
        }
    }

    fn set_staged(&mut self, id: ProcId, staged: u64) {
        if let Some(bytes) = self.ends.get(&id).and_then(|end| self.by_end.get_mut(end)) {
            let before = self.staged.insert(id, staged).unwrap_or(0);
            *bytes = *bytes - before + staged;
            self.bytes = self.bytes - before + staged;
        }
    }

    fn expired(&mut self, keep: &Retention, now: u64) -> (Vec<ProcId>, Option<u64>) {
        let mut victims = Vec::new();
        while let Some((&End { counted_ms, id, .. }, _)) = self.by_end.first_key_value() {
            let age = now.saturating_sub(counted_ms);
            if self.by_end.len() as u64 <= keep.max_count && self.bytes <= keep.max_bytes && age < keep.max_age_ms {
                return (victims, Some(keep.max_age_ms - age));
            }
            self.remove(id);
            victims.push(id);
        }
        (victims, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_end_goes_first_by_count_by_bytes_and_by_age() {
        let keep = Retention { max_age_ms: 100, max_count: 3, max_bytes: 50 };
        let id = ProcId::from_bits;
        let end = |at, n| End { counted_ms: at, ended_ms: at, id: id(n) };
        let mut finished = RetentionQueue::default();
        for (ended, n, bytes) in [(10, 1, 1), (20, 2, 1), (30, 3, 1), (40, 4, 1)] {
            finished.insert(end(ended, n), bytes);
        }
        assert_eq!(finished.expired(&keep, 50), (vec![id(1)], Some(70)));
        finished.insert(end(60, 5), 49);
        assert_eq!(finished.expired(&keep, 60), (vec![id(2), id(3)], Some(80)));
        assert_eq!(finished.expired(&keep, 140), (vec![id(4)], Some(20)));
        // A stage counts as long as it is there.
        finished.set_staged(id(5), 7);
        finished.set_staged(id(5), 7);
        assert_eq!(finished.bytes, 56);
        finished.set_staged(id(5), 0);
        finished.set_staged(id(9), 7);
        assert_eq!(finished.bytes, 49);
        finished.remove(id(5));
        assert_eq!(finished.expired(&keep, 1000), (vec![], None));
        assert_eq!(finished.bytes, 0);
    }
}
