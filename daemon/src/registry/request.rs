//! One start per `request_id`: finds the process that the same request got before.

use super::Registry;
use super::spawn::{NamePolicy, SpawnError, Spawned, wait_started};
use super::starter::started_by;
use super::table::RequestSlot;
use crate::disk;
use crate::proc::Proc;
use crate::spec::SpawnRequest;
use crate::store::requests::{self, AnsweredRequest};
use std::io;
use std::sync::Arc;
use tokio::sync::watch;
use toold_shim::hooks;

/// The state of a `request_id` for one caller.
enum RequestClaim {
    /// The caller starts the process, and sends when done.
    Ours(watch::Sender<bool>),
    /// Another caller starts it. The receiver changes when that is done, and closes if it was abandoned.
    Pending(watch::Receiver<bool>),
    Started(Arc<Proc>),
}

impl Registry {
    /// Starts a process, or returns the one that the same `request_id` got before, unless that was to run something else. Returns
    /// when the program runs.
    pub async fn spawn(self: &Arc<Self>, mut request: SpawnRequest, policy: NamePolicy) -> Result<Spawned, SpawnError> {
        let spec = &mut request.spec;
        spec.started_by.get_or_insert_with(|| started_by(&spec.labels, policy.uid, policy.pid));
        let Some(request_id) = request.spec.request_id.clone() else { return self.spawn_named(request, policy).await };
        loop {
            let mut pending = match self.claim_request(&request_id) {
                RequestClaim::Ours(done) => {
                    let outcome = self.spawn_named(request, policy).await;
                    match &outcome {
                        // The table has the process with its request.
                        Ok(Spawned { existing: false, .. }) | Err(SpawnError::Failed(_)) => {}
                        // It has this one too, unless the process was forgotten meanwhile.
                        Ok(Spawned { existing: true, .. }) => self.table().release_request(&request_id),
                        // Nothing was recorded, so the request may be tried again.
                        Err(_) => self.table().remove_request(&request_id),
                    }
                    let _ = done.send(true);
                    return outcome;
                }
                RequestClaim::Started(proc) => {
                    let earlier = self.table().request_digest(&request_id, &proc);
                    if earlier.zip(request.spec.request_digest).is_some_and(|(earlier, ours)| earlier != ours) {
                        return Err(SpawnError::Conflict { proc, request_id });
                    }
                    let reader = proc.add_reader();
                    return wait_started(proc).await.map(|_| Spawned { proc: reader, existing: true });
                }
                RequestClaim::Pending(pending) => pending,
            };
            // An error means that the other caller gave up: the claim is free again.
            let _ = pending.wait_for(|done| *done).await;
        }
    }

    /// Returns the process that a request has started.
    pub fn started_by_request(&self, request_id: &str) -> Option<Arc<Proc>> {
        let table = self.table();
        match table.request_slot(request_id)? {
            RequestSlot::Done(id) => table.get(*id),
            RequestSlot::Pending(_) => None,
        }
    }

    /// Returns true if the request has a process, or is about to get one.
    pub fn knows_request(&self, request_id: &str) -> bool {
        let table = self.table();
        match table.request_slot(request_id) {
            Some(RequestSlot::Done(id)) => table.get(*id).is_some(),
            Some(RequestSlot::Pending(pending)) => pending.has_changed().is_ok(),
            None => false,
        }
    }

    fn claim_request(&self, request_id: &str) -> RequestClaim {
        let mut table = self.table();
        match table.request_slot(request_id) {
            Some(RequestSlot::Done(id)) => {
                if let Some(proc) = table.get(*id) {
                    return RequestClaim::Started(proc);
                }
            }
            Some(RequestSlot::Pending(pending)) if pending.has_changed().is_ok() => {
                return RequestClaim::Pending(pending.clone());
            }
            Some(RequestSlot::Pending(_)) | None => {}
        }
        let (done, pending) = watch::channel(false);
        table.insert_request(request_id, RequestSlot::Pending(pending));
        RequestClaim::Ours(done)
    }

    /// Records that this request got a process which ran already, before the answer: the same request gets the same
    /// process also after a crash, and after the end of the process. The caller holds the lock of the process's name.
    pub(super) async fn record_request(&self, request: &SpawnRequest, proc: &Arc<Proc>) -> Result<(), SpawnError> {
        let Some(id) = request.spec.request_id.clone() else { return Ok(()) };
        let answered = AnsweredRequest { id, digest: request.spec.request_digest };
        hooks::at("request.found");
        let (remembered, lines) = self.table().aliases(proc.spec.id);
        let (dir, durable) = (proc.dir.clone(), self.config.survive_power_cut);
        let written = disk::blocking(move || {
            let lines = requests::append(&dir, &answered, &remembered, lines, durable);
            lines.map(|lines| (answered, lines))
        });
        match written.await.flatten() {
            Ok((answered, lines)) => {
                hooks::at("request.recorded");
                self.table().alias_request(answered, proc.spec.id, lines);
                Ok(())
            }
            // It ended and was forgotten meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(SpawnError::Request { proc: proc.clone(), source }),
        }
    }
}
