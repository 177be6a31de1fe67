//! Patches: verified in memory first, then applied all at once, recorded, and undone on request. See `docs/patch.md`.

mod ask;
mod bounds;
mod command;
mod error;
mod named;
mod published;
mod request;
mod revert;
mod verify;

pub use ask::PatchCall;
pub use bounds::Bounds;
pub use command::{PatchCommand, recognise};
pub use error::ApplyError;

use crate::changes::{ChangeSet, Changes, HardLinks, RecoveredChange, RecoveredOutcome, Request};
use crate::config::Config;
use crate::disk;
use crate::events::Journal;
use published::Note;
use request::RequestLocks;
use std::sync::Arc;
use toold_format::fnv1a;
use toold_proto::files as wire;
use toold_proto::patch::{PatchApplyParams, PatchResult, PatchStatus};
use toold_shim::hooks;
use verify::Verified;

const ID_PREFIX: &str = "patch_";
const REVERT_PREFIX: &str = "revert_";

/// Applies patches, and knows those that were applied.
pub struct Patches {
    changes: Arc<Changes>,
    journal: Arc<Journal>,
    max_bytes: u64,
    max_key_bytes: u64,
    requests: RequestLocks,
}

impl Patches {
    pub fn new(changes: Arc<Changes>, journal: Arc<Journal>, config: &Config) -> Patches {
        let (max_bytes, max_key_bytes) = (config.patch.max_bytes, config.exec.max_key_bytes);
        Patches { changes, journal, max_bytes, max_key_bytes, requests: RequestLocks::default() }
    }

    /// Publishes the events of patches that an earlier daemon committed, once. Returns descriptions of files that were left
    /// alone when a patch was walked back.
    pub fn recover(&self, recovered: &[RecoveredChange]) -> Vec<String> {
        let mut left_alone = Vec::new();
        for change in recovered.iter().filter(|change| is_own(&change.id)) {
            match &change.outcome {
                RecoveredOutcome::Committed => self.publish_due(change),
                RecoveredOutcome::WalkedBack(files) => {
                    tracing::warn!(id = change.id, "walked a patch back that a crash had interrupted");
                    left_alone.extend(files.iter().map(|file| error::left_alone(&change.id, file)));
                }
            }
        }
        left_alone
    }

    /// Applies a patch: all of it or nothing. The same `request_id` returns the first result.
    /// `shown`: the files as a person saw them; another one is a conflict.
    pub async fn apply(
        self: &Arc<Self>,
        mut call: PatchApplyParams,
        bounds: Bounds,
        shown: Option<&PatchResult>,
    ) -> Result<PatchResult, ApplyError> {
        check_keys(&call, self.max_key_bytes)?;
        let digest = digest(&call);
        for file in shown.into_iter().flat_map(|shown| &shown.files) {
            let before = file.before_sha256.clone().unwrap_or_else(|| verify::ABSENT.into());
            call.expect.entry(file.path.clone()).or_insert(before);
        }
        let Some(id) = call.request_id.clone().filter(|_| !call.check) else {
            return self.apply_once(call, bounds, None).await;
        };
        // The same request waits for the first one.
        let _turn = self.requests.lock(&id).await;
        let request = Request { digest, id };
        if let Some((patch_id, digest)) = self.changes.find_request(&request.id) {
            if digest != request.digest {
                return Err(ApplyError::RequestConflict { request_id: request.id, patch_id });
            }
            let changes = self.changes.clone();
            let note = disk::blocking(move || changes.note(&patch_id)).await.map_err(ApplyError::Internal)?;
            return Ok(Note::parse(&note.map_err(ApplyError::from)?).map_err(ApplyError::Internal)?.result);
        }
        self.apply_once(call, bounds, Some(request)).await
    }

    async fn apply_once(
        self: &Arc<Self>,
        call: PatchApplyParams,
        bounds: Bounds,
        request: Option<Request>,
    ) -> Result<PatchResult, ApplyError> {
        let max_bytes = self.max_bytes;
        let verified =
            disk::blocking(move || verify::verify(&call, bounds, max_bytes).map(|verified| (call, verified)));
        let (call, verified) = verified.await.map_err(ApplyError::Internal)??;
        if call.check {
            let status = if verified.failed.is_some() { PatchStatus::Partial } else { PatchStatus::Checked };
            return Ok(verified.into_result(None, status));
        }
        hooks::at("patch.verified");
        let patches = self.clone();
        disk::blocking(move || patches.commit(call, verified, request)).await.map_err(ApplyError::Internal)?
    }

    fn commit(
        &self,
        call: PatchApplyParams,
        mut verified: Verified,
        request: Option<Request>,
    ) -> Result<PatchResult, ApplyError> {
        let id = new_id(ID_PREFIX).map_err(ApplyError::Internal)?;
        let (roots, changes) = (std::mem::take(&mut verified.roots), std::mem::take(&mut verified.changes));
        let status = if verified.failed.is_some() { PatchStatus::Partial } else { PatchStatus::Applied };
        let note = Note {
            cwd: call.cwd.unwrap_or_default(),
            session_key: call.session_key,
            task_id: call.task_id,
            after_seq: self.journal.last(),
            reverts: None,
            result: verified.into_result(Some(id.clone()), status),
        };
        let hard_links = match call.hard_links {
            wire::HardLinks::Refuse => HardLinks::Refuse,
            wire::HardLinks::Break => HardLinks::Break,
        };
        let text = note.to_text().map_err(ApplyError::Internal)?;
        let set = ChangeSet { id: id.clone(), roots, changes, keep_before: true, hard_links, note: text, request };
        self.changes.commit_now(set)?;
        self.publish(&id, &note);
        Ok(note.result)
    }
}

fn is_own(id: &str) -> bool {
    id.starts_with(ID_PREFIX) || id.starts_with(REVERT_PREFIX)
}

fn new_id(prefix: &str) -> std::io::Result<String> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().fold(prefix.to_owned(), |id, byte| id + &format!("{byte:02x}")))
}

/// Every event has these keys, so they are bounded.
fn check_keys(call: &PatchApplyParams, max: u64) -> Result<(), ApplyError> {
    let keys = [("request_id", &call.request_id), ("session_key", &call.session_key), ("task_id", &call.task_id)];
    for (param, key) in keys {
        if key.as_ref().is_some_and(|key| key.len() as u64 > max) {
            let problem = format!("must be at most {max} bytes (config key `exec.max_key_bytes`)");
            return Err(ApplyError::Param { param: param.into(), problem });
        }
    }
    Ok(())
}

/// The digest of what a request asks for, by which another use of its id is noticed. Its value is on disk.
fn digest(call: &PatchApplyParams) -> u64 {
    let parts = (&call.patch, &call.cwd, call.mode, &call.expect, call.hard_links);
    fnv1a(&serde_json::to_vec(&parts).unwrap_or_default())
}
