//! Calls of tools by clients of the socket. One with a `request_id` is journalled in a file of its own in the state directory,
//! so that the same request gets the same result, also from a later daemon.

use super::dispatcher::{CallRequest, Dispatcher};
use super::journal::{CallJournal, CallOutcome};
use super::owner::{AllowedTools, CallBounds, Owner, OwnerInit};
use super::provider::CallScope;
use crate::clock::wall_ms;
use crate::config::Config;
use crate::disk;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use toold_proto::approval::Caller;
use toold_proto::tools::{ToolsCallParams, Toolset};
use toold_proto::{ErrorKind, RpcError};

/// The one call of an owner with a `request_id`.
const ONLY_CALL: &str = "1";
/// The journals that are kept after a removal of old ones.
const CLEAN_EVERY: usize = 256;

/// The calls of clients.
pub struct DirectCalls {
    dir: PathBuf,
    keep: Duration,
    owners: Mutex<Owners>,
}

#[derive(Default)]
struct Owners {
    by_request: HashMap<String, Weak<Owner>>,
    opened: usize,
}

/// A call that was made.
pub struct DirectCall {
    pub owner: Arc<Owner>,
    pub request: CallRequest,
}

impl DirectCalls {
    /// Makes the table. Journals are kept as long as finished processes.
    pub fn new(state_dir: &Path, config: &Config) -> DirectCalls {
        DirectCalls {
            dir: state_dir.join("calls"),
            keep: Duration::from_millis(config.retention.max_age_ms),
            owners: Mutex::default(),
        }
    }

    /// Prepares a call: finds the owner of the same request, or makes one.
    pub async fn prepare(
        self: &Arc<Self>,
        call: ToolsCallParams,
        by: Caller,
        config: &Config,
    ) -> Result<DirectCall, RpcError> {
        let scope = CallScope {
            session_key: call.session_key.clone(),
            task_id: call.task_id.clone(),
            cwd: call.cwd.clone(),
            sandbox: None,
        };
        let bounds = CallBounds {
            max_calls: None,
            max_parallel: 1,
            call_timeout_ms: Some(config.script.call_timeout_ms).filter(|ms| *ms > 0),
            max_result_bytes: config.script.max_result_bytes,
        };
        let init = |key: String, journal| OwnerInit {
            key,
            scope,
            by,
            tools: AllowedTools::Session,
            bounds,
            script: None,
            result_dir: None,
            journal,
            made: Arc::default(),
            asking: Default::default(),
        };
        // A tool of another provider is the same in every toolset.
        let toolset = if call.name.contains('.') { Toolset::Toold } else { call.toolset };
        let request = |id: String| CallRequest {
            id,
            name: call.name.clone(),
            toolset,
            args: serde_json::Value::Object(call.args.clone()),
            timeout_ms: call.timeout_ms,
            cell: 0,
        };
        let Some(request_id) = &call.request_id else {
            let owner = Arc::new(Owner::new(init("call".into(), None)));
            return Ok(DirectCall { owner, request: request(random_id()?) });
        };
        if request_id.is_empty() {
            return Err(RpcError::param("request_id", "must not be empty"));
        }
        // The session is part of it: another one's request is another request.
        let session = call.session_key.as_deref().unwrap_or_default();
        let key = format!("{:x}", Sha256::digest(format!("{session}\0{request_id}")))[..32].to_owned();
        if let Some(owner) = self.owner(&key) {
            return Ok(DirectCall { owner, request: request(ONLY_CALL.into()) });
        }
        let (calls, path) = (self.clone(), self.dir.join(&key));
        let opened = disk::blocking(move || calls.open(&path)).await.flatten();
        let (journal, found) = opened.map_err(|e| {
            RpcError::new(ErrorKind::Unavailable, format!("the journal of calls cannot be opened: {e}"))
        })?;
        let owner = Owner::new(init(format!("call/{key}"), Some(journal)));
        owner.restore(&found);
        Ok(DirectCall { owner: self.insert(&key, owner), request: request(ONLY_CALL.into()) })
    }

    fn owner(&self, key: &str) -> Option<Arc<Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).by_request.get(key)?.upgrade()
    }

    /// Puts an owner into the table, unless a call of the same request was faster.
    fn insert(&self, key: &str, owner: Owner) -> Arc<Owner> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = owners.by_request.get(key).and_then(Weak::upgrade) {
            return known;
        }
        owners.by_request.retain(|_, owner| owner.strong_count() > 0);
        let owner = Arc::new(owner);
        owners.by_request.insert(key.to_owned(), Arc::downgrade(&owner));
        owner
    }

    fn open(&self, path: &Path) -> io::Result<(CallJournal, super::journal::FoundCalls)> {
        std::fs::create_dir_all(&self.dir)?;
        let is_due = {
            let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            owners.opened += 1;
            owners.opened % CLEAN_EVERY == 1
        };
        if is_due {
            self.remove_old();
        }
        CallJournal::open(path)
    }

    /// Removes the journals of calls that no client asks for any more.
    fn remove_old(&self) {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return };
        let is_old = |entry: &std::fs::DirEntry| {
            let changed = entry.metadata().and_then(|found| found.modified()).ok();
            changed.is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > self.keep))
        };
        for entry in entries.flatten().filter(is_old) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Dispatcher {
    /// Makes the call of a client, and waits for its outcome.
    pub async fn call_direct(self: &Arc<Self>, call: DirectCall) -> (Arc<CallOutcome>, String) {
        let DirectCall { owner, request } = call;
        let id = owner.unique(&request.id).to_string();
        (self.call(&owner, request).await, id)
    }
}

fn random_id() -> Result<String, RpcError> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random)
        .map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("the kernel gave no random bytes: {e}")))?;
    Ok(format!("{:016x}-{:x}", u64::from_be_bytes(random), wall_ms()))
}
