//! Changes of files outside the roots: the call asks, waits for the answer, and is made again with the directory that it got.

use super::context::Daemon;
use super::error::not_approved;
use super::wire::Peer;
use crate::approvals::{PathQuestion, PathRefused, caller};
use crate::disk;
use crate::files::roots::Limits;
use crate::files::{FsError, Refusal};
use crate::sandbox::plan::Judged;
use std::path::Path;
use std::sync::Arc;
use toold_policy::ApprovalMode;
use toold_proto::approval::{ActionFile, ApprovalKind};
use toold_proto::files::{FsEditParams, FsEditResult, FsWriteParams, FsWriteResult};
use toold_proto::{ErrorKind, RpcError};

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

/// A call that changes one file, and asks a person if that is outside the roots.
pub trait AsksForPath: Clone {
    type Done: Send + 'static;

    fn session_key(&self) -> Option<&str>;

    /// Returns true if an earlier call with the same `request_id` made the change: the file is as this one wants it.
    fn is_made(&self, checked: &Self::Done) -> bool;

    /// Returns the question about a change that was checked, and makes the call hold for the content that was shown only.
    fn question(&mut self, checked: Self::Done, peer: &Peer) -> PathQuestion;
}

impl AsksForPath for FsWriteParams {
    type Done = FsWriteResult;

    fn session_key(&self) -> Option<&str> {
        self.session_key.as_deref()
    }

    fn is_made(&self, checked: &FsWriteResult) -> bool {
        let is_repeated = self.request_id.is_some() && self.mode.is_none();
        is_repeated && checked.before_sha256.as_ref() == Some(&checked.sha256) && checked.diff.as_deref() == Some("")
    }

    fn question(&mut self, checked: FsWriteResult, peer: &Peer) -> PathQuestion {
        let before = checked.before_sha256.or_else(|| checked.created.then(|| "absent".to_owned()));
        self.expect = before.or(self.expect.take());
        let bytes = checked.bytes;
        PathQuestion {
            kind: ApprovalKind::Write,
            files: vec![ActionFile { path: checked.path, op: "write".into(), sha256: Some(checked.sha256) }],
            diff: Some(checked.diff.unwrap_or_else(|| format!("{bytes} bytes are written\n"))),
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
    type Done = FsEditResult;

    fn session_key(&self) -> Option<&str> {
        self.session_key.as_deref()
    }

    fn is_made(&self, checked: &FsEditResult) -> bool {
        self.request_id.is_some() && checked.no_change
    }

    fn question(&mut self, checked: FsEditResult, peer: &Peer) -> PathQuestion {
        self.expect = Some(checked.before_sha256);
        PathQuestion {
            kind: ApprovalKind::Write,
            files: vec![ActionFile { path: checked.path, op: "update".into(), sha256: Some(checked.sha256) }],
            diff: Some(checked.diff.unwrap_or_else(|| format!("{} places are replaced\n", checked.count))),
            cwd: self.cwd.clone(),
            session_key: self.session_key.clone(),
            task_id: self.task_id.clone(),
            request_id: self.request_id.clone(),
            timeout_ms: self.approval_timeout_ms,
            by: caller(peer.uid, peer.pid),
        }
    }
}

/// The error of a directory that was swapped after it was approved.
pub fn swapped(path: &Path) -> RpcError {
    let message = format!("{} is another directory than the one that was approved", path.display());
    RpcError::new(ErrorKind::Denied, message).with("reason", "swapped").with("path", path.to_string_lossy())
}

/// Adds a directory that a person allowed to the limits of a call. Its protected paths stay as they are.
pub fn widen(limits: &mut Option<Limits>, root: Option<Judged>, protect: &[String]) {
    if let (Some(limits), Some(root)) = (limits, root) {
        limits.protect.extend(protect.iter().map(|name| root.path.join(name)));
        limits.roots.push(root);
    }
}

/// Does the work of a call. If its file is outside the roots, checks the change, asks, and does it with the directory that it
/// got. `work` does nothing but check if its last argument is false.
pub async fn ask_outside<C>(
    daemon: Arc<Daemon>,
    peer: &Peer,
    mut call: C,
    work: impl Fn(&mut C, &Daemon, Option<Judged>, bool) -> Result<C::Done, Failure> + Send + Sync + 'static,
) -> Result<C::Done, RpcError>
where
    C: AsksForPath + Send + Sync + 'static,
{
    let work = Arc::new(work);
    let run = |call: &C, root: Option<Judged>, apply: bool| {
        let (mut call, work, daemon) = (call.clone(), work.clone(), daemon.clone());
        disk::blocking(move || work(&mut call, &daemon, root, apply))
    };
    let no_thread = |e| RpcError::new(ErrorKind::Unavailable, format!("run the call on a thread: {e}"));
    let (path, offer, refused) = match run(&call, None, true).await.map_err(no_thread)? {
        Err(Failure::Fs(FsError::Refused { path, refusal: Refusal::Outside { offer } })) => {
            let refused = FsError::Refused { path: path.clone(), refusal: Refusal::Outside { offer: offer.clone() } };
            (path, offer, RpcError::from(refused))
        }
        done => return Ok(done?),
    };
    let not_asked = |why: &str| RpcError { message: format!("{}; {why}", refused.message), ..refused.clone() };
    if daemon.judge.approval_mode(call.session_key(), &daemon.registry.config) == ApprovalMode::Never {
        // Before the file is looked at.
        return Err(not_asked("it needs an approval, and the policy `never` asks no person"));
    }
    let near = offer.clone();
    let near = move || near.ancestors().find_map(|dir| Judged::open(dir).ok());
    let near = disk::blocking(near).await.map_err(no_thread)?;
    // A change that cannot be made is refused before a person is asked.
    let checked = run(&call, near, false).await.map_err(no_thread)??;
    if call.is_made(&checked) {
        return Ok(checked);
    }
    let question = call.question(checked, peer);
    let asked = daemon.approvals.ask_for_paths(std::slice::from_ref(&offer), question).await;
    let root = asked.map_err(|why| match why {
        PathRefused::Denied(approval) => not_approved(&path.display().to_string(), &approval, "nothing was changed"),
        PathRefused::NotAsked(why) => not_asked(why),
        PathRefused::Ask(error) => error.into(),
        PathRefused::Swapped(path) => swapped(&path),
    })?;
    Ok(run(&call, root.into_iter().next(), true).await.map_err(no_thread)??)
}
