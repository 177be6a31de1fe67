//! Changes of one file. Outside the roots the call asks, waits for the answer, and is made again with the directory that it got.

use super::{FileCalls, thread_error};
use crate::approvals::{PathQuestion, PathRefused};
use crate::call_error::{not_approved, swapped};
use crate::disk;
use crate::files::roots::Limits;
use crate::files::{FsError, Refusal, edit_file, write};
use crate::sandbox::plan::Judged;
use std::path::PathBuf;
use std::sync::Arc;
use toold_policy::ApprovalMode;
use toold_proto::RpcError;
use toold_proto::approval::{ActionFile, ApprovalKind, Caller};
use toold_proto::files::{FsEditParams, FsEditResult, FsWriteParams, FsWriteResult};

/// An error of the call itself, or of its file.
enum Failure {
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

/// A call that changes one file.
trait FileChange: Clone + Send + Sync + 'static {
    type Done: Send + 'static;

    fn session_key(&self) -> Option<&str>;

    /// Makes the change, with a directory that a person allowed. Without `apply` it only checks.
    fn make(&mut self, calls: &FileCalls, allowed: Option<Judged>, apply: bool) -> Result<Self::Done, Failure>;

    /// Returns true if an earlier call with the same `request_id` made the change: the file is as this one wants it.
    fn is_made(&self, checked: &Self::Done) -> bool;

    /// Makes the call hold only for the content that was checked.
    fn hold_to(&mut self, checked: &Self::Done);

    /// Returns the question about a change that was checked.
    fn question(&self, checked: Self::Done, by: Caller) -> PathQuestion;
}

impl FileChange for FsWriteParams {
    type Done = FsWriteResult;

    fn session_key(&self) -> Option<&str> {
        self.session_key.as_deref()
    }

    fn make(&mut self, calls: &FileCalls, allowed: Option<Judged>, apply: bool) -> Result<FsWriteResult, Failure> {
        let mut limits = calls.limits(self.sandbox.as_ref(), &mut self.cwd, self.session_key.as_deref())?;
        let config = &calls.approvals.registry.config;
        widen(&mut limits, allowed, &config.sandbox.protect);
        Ok(write::write(self, limits.as_ref(), &config.fs, &calls.files.writers, apply)?)
    }

    fn is_made(&self, checked: &FsWriteResult) -> bool {
        let is_repeated = self.request_id.is_some() && self.mode.is_none();
        is_repeated && checked.before_sha256.as_ref() == Some(&checked.sha256) && checked.diff.as_deref() == Some("")
    }

    fn hold_to(&mut self, checked: &FsWriteResult) {
        let before = checked.before_sha256.clone().or_else(|| checked.created.then(|| "absent".to_owned()));
        self.expect = before.or(self.expect.take());
    }

    fn question(&self, checked: FsWriteResult, by: Caller) -> PathQuestion {
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
            by,
        }
    }
}

impl FileChange for FsEditParams {
    type Done = FsEditResult;

    fn session_key(&self) -> Option<&str> {
        self.session_key.as_deref()
    }

    fn make(&mut self, calls: &FileCalls, allowed: Option<Judged>, apply: bool) -> Result<FsEditResult, Failure> {
        let mut limits = calls.limits(self.sandbox.as_ref(), &mut self.cwd, self.session_key.as_deref())?;
        let config = &calls.approvals.registry.config;
        widen(&mut limits, allowed, &config.sandbox.protect);
        Ok(edit_file::edit_file(self, limits.as_ref(), &config.fs, &calls.files.writers, apply)?)
    }

    fn is_made(&self, checked: &FsEditResult) -> bool {
        self.request_id.is_some() && checked.no_change
    }

    fn hold_to(&mut self, checked: &FsEditResult) {
        self.expect = Some(checked.before_sha256.clone());
    }

    fn question(&self, checked: FsEditResult, by: Caller) -> PathQuestion {
        PathQuestion {
            kind: ApprovalKind::Write,
            files: vec![ActionFile { path: checked.path, op: "update".into(), sha256: Some(checked.sha256) }],
            diff: Some(checked.diff.unwrap_or_else(|| format!("{} places are replaced\n", checked.count))),
            cwd: self.cwd.clone(),
            session_key: self.session_key.clone(),
            task_id: self.task_id.clone(),
            request_id: self.request_id.clone(),
            timeout_ms: self.approval_timeout_ms,
            by,
        }
    }
}

/// Adds a directory that a person allowed to the limits of a call. Its protected paths stay as they are.
fn widen(limits: &mut Option<Limits>, allowed: Option<Judged>, protect: &[String]) {
    if let (Some(limits), Some(root)) = (limits, allowed) {
        limits.protect.extend(protect.iter().map(|name| root.path.join(name)));
        limits.roots.push(root);
    }
}

/// A file outside the roots.
struct OutsideFile {
    path: PathBuf,
    /// The directory to ask for.
    offer: PathBuf,
}

impl OutsideFile {
    /// Returns the refusal of a change about which no person is asked.
    fn not_asked(&self, why: &str) -> RpcError {
        let refusal = Refusal::Outside { offer: self.offer.clone() };
        let refused = RpcError::from(FsError::Refused { path: self.path.clone(), refusal });
        RpcError { message: format!("{}; {why}", refused.message), ..refused }
    }
}

impl FileCalls {
    /// Writes a file. Outside the roots it asks, and waits for the answer.
    pub async fn write(
        self: &Arc<Self>,
        call: FsWriteParams,
        by: impl FnOnce() -> Caller,
    ) -> Result<FsWriteResult, RpcError> {
        self.change(call, by).await
    }

    /// Replaces a text in a file. Outside the roots it asks, and waits for the answer.
    pub async fn edit(
        self: &Arc<Self>,
        call: FsEditParams,
        by: impl FnOnce() -> Caller,
    ) -> Result<FsEditResult, RpcError> {
        self.change(call, by).await
    }

    /// Returns what `write` would do, outside the roots as if a person allowed it, and changes nothing. From then on the call
    /// holds only for the content that was found: if another program changes the file meanwhile, `write` is a conflict.
    pub async fn check_write(self: &Arc<Self>, call: &mut FsWriteParams) -> Result<FsWriteResult, RpcError> {
        self.check(call).await
    }

    /// Returns what `edit` would do, as `check_write` does.
    pub async fn check_edit(self: &Arc<Self>, call: &mut FsEditParams) -> Result<FsEditResult, RpcError> {
        self.check(call).await
    }

    async fn check<C: FileChange>(self: &Arc<Self>, call: &mut C) -> Result<C::Done, RpcError> {
        let checked = match self.try_change(call, false).await? {
            Ok(checked) => checked,
            Err(outside) => self.check_outside(call, &outside).await?,
        };
        call.hold_to(&checked);
        Ok(checked)
    }

    async fn change<C: FileChange>(
        self: &Arc<Self>,
        mut call: C,
        by: impl FnOnce() -> Caller,
    ) -> Result<C::Done, RpcError> {
        let outside = match self.try_change(&call, true).await? {
            Ok(done) => return Ok(done),
            Err(outside) => outside,
        };
        // A change that cannot be made is refused before a person is asked.
        let checked = self.check_outside(&call, &outside).await?;
        if call.is_made(&checked) {
            return Ok(checked);
        }
        call.hold_to(&checked);
        let question = call.question(checked, by());
        let asked = self.approvals.ask_for_paths(std::slice::from_ref(&outside.offer), question).await;
        let allowed = asked.map_err(|why| match why {
            PathRefused::Denied(approval) => {
                not_approved(&outside.path.display().to_string(), &approval, "nothing was changed")
            }
            PathRefused::NotAsked(why) => outside.not_asked(why),
            PathRefused::Ask(error) => error.into(),
            PathRefused::Swapped(path) => swapped(&path),
        })?;
        Ok(self.make(&call, allowed.into_iter().next(), true).await??)
    }

    /// Checks a change outside the roots as if it were allowed. Fails if no person may be asked.
    async fn check_outside<C: FileChange>(
        self: &Arc<Self>,
        call: &C,
        outside: &OutsideFile,
    ) -> Result<C::Done, RpcError> {
        if self.judge.approval_mode(call.session_key(), &self.approvals.registry.config) == ApprovalMode::Never {
            // Before the file is looked at.
            return Err(outside.not_asked("it needs an approval, and the policy `never` asks no person"));
        }
        let near = outside.offer.clone();
        let near = move || near.ancestors().find_map(|dir| Judged::open(dir).ok());
        let near = disk::blocking(near).await.map_err(thread_error)?;
        Ok(self.make(call, near, false).await??)
    }

    /// Makes or checks a change. Returns the file in the place of a result if it is outside the roots.
    async fn try_change<C: FileChange>(
        self: &Arc<Self>,
        call: &C,
        apply: bool,
    ) -> Result<Result<C::Done, OutsideFile>, RpcError> {
        match self.make(call, None, apply).await? {
            Err(Failure::Fs(FsError::Refused { path, refusal: Refusal::Outside { offer } })) => {
                Ok(Err(OutsideFile { path, offer }))
            }
            done => Ok(Ok(done?)),
        }
    }

    async fn make<C: FileChange>(
        self: &Arc<Self>,
        call: &C,
        allowed: Option<Judged>,
        apply: bool,
    ) -> Result<Result<C::Done, Failure>, RpcError> {
        let (mut call, calls) = (call.clone(), self.clone());
        disk::blocking(move || call.make(&calls, allowed, apply)).await.map_err(thread_error)
    }
}
