//! Changes of files outside the roots: the call asks, waits for the answer, and is made again with the directory that it got.

use super::context::Daemon;
use super::error::not_approved;
use super::wire::Peer;
use crate::approvals::{PathQuestion, PathRefused, caller};
use crate::disk;
use crate::files::content::hex_sha256;
use crate::files::roots::Limits;
use crate::files::{FsError, Refusal};
use crate::sandbox::plan::Judged;
use crate::text::unified_diff;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use toold_proto::approval::{ActionFile, ApprovalKind};
use toold_proto::files::{FsEditParams, FsWriteParams};
use toold_proto::{ErrorKind, RpcError};

/// Bytes of a file, and of a change, that a person is shown.
const MAX_SHOWN_BYTES: u64 = 256 * 1024;

/// An error of the call itself, or of its file.
pub enum Failure {
    Rpc(RpcError),
    Fs(FsError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        Failure::Rpc(error)
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Failure {
        Failure::Fs(error)
    }
}

impl From<Failure> for RpcError {
    fn from(failure: Failure) -> RpcError {
        match failure {
            Failure::Rpc(error) => error,
            Failure::Fs(error) => error.into(),
        }
    }
}

/// The parts of a call that a person is asked about.
pub trait AsksForPath {
    fn question(&self, path: &std::path::Path, peer: &Peer) -> PathQuestion;
}

impl AsksForPath for FsWriteParams {
    fn question(&self, path: &std::path::Path, peer: &Peer) -> PathQuestion {
        let decoded = self.content_base64.as_ref().and_then(|encoded| STANDARD.decode(encoded).ok());
        let new = self.content.clone().map(String::into_bytes).or(decoded).unwrap_or_default();
        let mut old = Vec::new();
        // Without the old content the diff shows the new one only; the digest has its hash in any case.
        let _ = File::open(path).map(|file| file.take(MAX_SHOWN_BYTES).read_to_end(&mut old));
        let name = path.to_string_lossy();
        let mut diff = unified_diff(&name, &name, &old, &new).text;
        if diff.len() as u64 > MAX_SHOWN_BYTES {
            diff = format!("{} bytes are written\n", new.len());
        }
        PathQuestion {
            kind: ApprovalKind::Write,
            files: vec![ActionFile { path: name.into(), op: "write".into(), sha256: Some(hex_sha256(&new)) }],
            diff: Some(diff),
            cwd: self.cwd.clone(),
            session_key: self.session_key.clone(),
            task_id: self.task_id.clone(),
            request_id: self.request_id.clone(),
            timeout_ms: self.approval_timeout_ms,
            by: caller(peer.uid, peer.pid),
        }
    }
}

impl AsksForPath for FsEditParams {
    fn question(&self, path: &std::path::Path, peer: &Peer) -> PathQuestion {
        let lines = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
        let every = if self.replace_all { "every match\n" } else { "" };
        PathQuestion {
            kind: ApprovalKind::Write,
            files: vec![ActionFile { path: path.to_string_lossy().into(), op: "update".into(), sha256: None }],
            diff: Some(format!("{every}{}{}", lines('-', &self.old), lines('+', &self.new))),
            cwd: self.cwd.clone(),
            session_key: self.session_key.clone(),
            task_id: self.task_id.clone(),
            request_id: self.request_id.clone(),
            timeout_ms: self.approval_timeout_ms,
            by: caller(peer.uid, peer.pid),
        }
    }
}

/// Adds a directory that a person allowed to the limits of a call. Its protected paths stay as they are.
pub fn widen(limits: &mut Option<Limits>, root: Option<Judged>, protect: &[String]) {
    if let (Some(limits), Some(root)) = (limits, root) {
        limits.protect.extend(protect.iter().map(|name| root.path.join(name)));
        limits.roots.push(root);
    }
}

/// Does the work of a call. If its file is outside the roots, asks, and does it again with the directory that it got.
pub async fn ask_outside<C, T>(
    daemon: Arc<Daemon>,
    peer: &Peer,
    call: C,
    work: impl Fn(&C, &Daemon, Option<Judged>) -> Result<T, Failure> + Send + Sync + 'static,
) -> Result<T, RpcError>
where
    C: AsksForPath + Send + Sync + 'static,
    T: Send + 'static,
{
    let (call, work) = (Arc::new(call), Arc::new(work));
    let run = |root: Option<Judged>| {
        let (call, work, daemon) = (call.clone(), work.clone(), daemon.clone());
        disk::blocking(move || work(&call, &daemon, root))
    };
    let no_thread = |e| RpcError::new(ErrorKind::Unavailable, format!("run the call on a thread: {e}"));
    let (path, offer, refused) = match run(None).await.map_err(no_thread)? {
        Err(Failure::Fs(FsError::Refused { path, refusal: Refusal::Outside { offer } })) => {
            let refused = FsError::Refused { path: path.clone(), refusal: Refusal::Outside { offer: offer.clone() } };
            (path, offer, RpcError::from(refused))
        }
        done => return Ok(done?),
    };
    let asked = daemon.approvals.ask_for_paths(&offer, call.question(&path, peer)).await;
    let root = asked.map_err(|why| match why {
        PathRefused::Denied(approval) => not_approved(&path.display().to_string(), &approval, "nothing was changed"),
        PathRefused::NotAsked(why) => RpcError { message: format!("{}; {why}", refused.message), ..refused.clone() },
        PathRefused::Ask(error) => error.into(),
        PathRefused::Swapped(path) => {
            let message = format!("{} is another directory than the one that was approved", path.display());
            RpcError::new(ErrorKind::Denied, message).with("reason", "swapped").with("path", path.to_string_lossy())
        }
    })?;
    Ok(run(Some(root)).await.map_err(no_thread)??)
}
