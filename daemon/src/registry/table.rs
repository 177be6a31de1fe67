//! The index of processes: by id, by name, by request, by age. Pure.

use crate::proc::Proc;
use crate::store::record::RequestDigest;
use crate::store::requests::{AnsweredRequest, MAX_REQUESTS, Requests};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::watch;
use toold_proto::ProcId;

/// The state of a `request_id`.
pub enum RequestSlot {
    /// A caller is starting the process. The receiver changes when the outcome is known.
    Pending(watch::Receiver<bool>),
    Done(ProcId),
}

#[derive(Default)]
pub struct Table {
    by_id: BTreeMap<ProcId, Arc<Proc>>,
    by_age: BTreeMap<(u64, u64), Arc<Proc>>,
    by_name: HashMap<String, Vec<ProcId>>,
    by_request: HashMap<String, RequestSlot>,
    /// The requests that got a process which another request had started.
    aliases: HashMap<ProcId, Aliases>,
}

/// The requests that got one process which another request had started, as its file has them.
#[derive(Default)]
struct Aliases {
    /// Oldest first.
    requests: VecDeque<AnsweredRequest>,
    /// Lines in the file.
    lines: usize,
}

fn age(proc: &Proc) -> (u64, u64) {
    (proc.spec.created_ms, proc.spec.seq)
}

impl Table {
    pub fn get(&self, id: ProcId) -> Option<Arc<Proc>> {
        self.by_id.get(&id).cloned()
    }

    /// Returns the process of that name that has not ended, else the newest one of that name.
    pub fn named(&self, name: &str) -> Option<Arc<Proc>> {
        let procs = || self.by_name.get(name).into_iter().flatten().filter_map(|id| self.by_id.get(id));
        let living = procs().find(|p| !p.published_state().has_ended());
        living.or_else(|| procs().max_by_key(|p| age(p))).cloned()
    }

    /// Returns every process of that name.
    pub fn all_named(&self, name: &str) -> Vec<Arc<Proc>> {
        self.by_name.get(name).into_iter().flatten().filter_map(|id| self.get(*id)).collect()
    }

    pub fn range(&self, low: ProcId, high: ProcId) -> impl Iterator<Item = ProcId> + '_ {
        self.by_id.range(low..=high).map(|(id, _)| *id)
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<Proc>> {
        self.by_age.values().rev()
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn request_slot(&self, request: &str) -> Option<&RequestSlot> {
        self.by_request.get(request)
    }

    pub fn insert_request(&mut self, request: &str, request_slot: RequestSlot) {
        self.by_request.insert(request.to_string(), request_slot);
    }

    pub fn remove_request(&mut self, request: &str) {
        self.by_request.remove(request);
    }

    /// Removes the claim of a caller that got no process of its own.
    pub fn release_request(&mut self, request: &str) {
        if matches!(self.by_request.get(request), Some(RequestSlot::Pending(_))) {
            self.by_request.remove(request);
        }
    }

    /// Returns the remembered requests that got this process and did not start it, oldest first, and the lines in its file.
    pub fn aliases(&self, id: ProcId) -> (Vec<AnsweredRequest>, usize) {
        self.aliases.get(&id).map_or((Vec::new(), 0), |a| (a.requests.iter().cloned().collect(), a.lines))
    }

    /// Remembers that this request got a process which ran already. `lines` counts the lines in the file afterwards.
    pub fn alias_request(&mut self, request: AnsweredRequest, id: ProcId, lines: usize) {
        if !self.contains(id) {
            return;
        }
        self.insert_request(&request.id, RequestSlot::Done(id));
        let aliases = self.aliases.entry(id).or_default();
        aliases.lines = lines;
        aliases.requests.push_back(request);
        if aliases.requests.len() > MAX_REQUESTS
            && let Some(oldest) = aliases.requests.pop_front()
        {
            self.forget_request(&oldest.id, id);
        }
    }

    /// Remembers the requests that a file has for this process. A process that the same request started comes first.
    pub fn load_aliases(&mut self, id: ProcId, loaded: Requests) {
        if loaded.lines == 0 {
            return;
        }
        for request in &loaded.all {
            self.by_request.entry(request.id.clone()).or_insert(RequestSlot::Done(id));
        }
        self.aliases.insert(id, Aliases { requests: loaded.all.into(), lines: loaded.lines });
    }

    /// Returns the digest of the request that got this process. None: an earlier version recorded it without one.
    pub fn request_digest(&self, request: &str, proc: &Proc) -> Option<RequestDigest> {
        if proc.spec.request_id.as_deref() == Some(request) {
            return proc.spec.request_digest;
        }
        let aliases = self.aliases.get(&proc.spec.id)?;
        aliases.requests.iter().rfind(|alias| alias.id == request)?.digest
    }

    fn forget_request(&mut self, request: &str, id: ProcId) {
        if matches!(self.by_request.get(request), Some(RequestSlot::Done(done)) if *done == id) {
            self.by_request.remove(request);
        }
    }

    pub fn insert(&mut self, proc: Arc<Proc>) {
        let id = proc.spec.id;
        self.by_age.insert(age(&proc), proc.clone());
        if let Some(name) = &proc.spec.name {
            self.by_name.entry(name.clone()).or_default().push(id);
        }
        if let Some(request) = &proc.spec.request_id {
            self.by_request.insert(request.clone(), RequestSlot::Done(id));
        }
        self.by_id.insert(id, proc);
    }

    pub fn remove(&mut self, id: ProcId) -> Option<Arc<Proc>> {
        let proc = self.by_id.remove(&id)?;
        self.by_age.remove(&age(&proc));
        if let Some(name) = &proc.spec.name
            && let Some(ids) = self.by_name.get_mut(name)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_name.remove(name);
            }
        }
        let aliases = self.aliases.remove(&id).unwrap_or_default().requests;
        for request in proc.spec.request_id.iter().chain(aliases.iter().map(|alias| &alias.id)) {
            self.forget_request(request, id);
        }
        Some(proc)
    }

    pub fn contains(&self, id: ProcId) -> bool {
        self.by_id.contains_key(&id)
    }
}
