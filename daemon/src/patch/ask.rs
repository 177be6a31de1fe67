//! Patches outside the roots: the patch is checked first, a person is asked once for all of its files, and it is applied to the
//! files as that person saw them.

use super::{ApplyError, Bounds, Patches};
use crate::approvals::{Approvals, PathQuestion};
use crate::disk;
use crate::sandbox::plan::{Judged, Plan};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_proto::approval::{ActionFile, ApprovalKind, Caller};
use toold_proto::patch::{PatchApplyParams, PatchFile, PatchOp, PatchResult, PatchRevertParams, PatchRevertResult};

/// The most directories outside the roots that one patch may ask for.
const MAX_PLACES: usize = 16;

/// The bounds of a call, and who made it.
pub struct PatchCall<'a> {
    pub approvals: &'a Arc<Approvals>,
    /// None: it may change everything.
    pub plan: Option<&'a Plan>,
    pub by: Caller,
}

/// The directories outside the roots that a patch needs.
#[derive(Default)]
struct WantedDirs {
    /// The first path outside.
    path: PathBuf,
    offers: Vec<PathBuf>,
    near: Vec<Judged>,
}

impl WantedDirs {
    /// Adds a directory. Fails if it cannot be asked for.
    async fn add(&mut self, path: PathBuf, offer: PathBuf) -> Result<(), ApplyError> {
        let place = offer.clone();
        let open = move || place.ancestors().find_map(|dir| Judged::open(dir).ok());
        let near = disk::blocking(open).await.map_err(ApplyError::Internal)?;
        let is_new = near.as_ref().is_some_and(|near| self.near.iter().all(|known| known.path != near.path));
        let (Some(near), true, true) = (near, is_new, self.near.len() < MAX_PLACES) else {
            return Err(ApplyError::Outside { path, offer });
        };
        if self.offers.is_empty() {
            self.path = path;
        }
        self.offers.push(offer);
        self.near.push(near);
        Ok(())
    }
}

impl PatchCall<'_> {
    fn bounds(&self, given: &[Judged]) -> Result<Bounds, ApplyError> {
        let protect = &self.approvals.registry.config.sandbox.protect;
        Bounds::new(self.plan, given, protect).map_err(ApplyError::Internal)
    }

    async fn ask(&self, places: &WantedDirs, question: PathQuestion) -> Result<Vec<Judged>, ApplyError> {
        let asked = self.approvals.ask_for_paths(&places.offers, question).await;
        asked.map_err(|refused| ApplyError::NotApproved { path: places.path.clone(), refused })
    }
}

impl Patches {
    /// Applies a patch. Outside the roots it asks, and waits for the answer.
    pub async fn apply_or_ask(
        self: &Arc<Self>,
        call: PatchApplyParams,
        within: PatchCall<'_>,
    ) -> Result<PatchResult, ApplyError> {
        let mut places = WantedDirs::default();
        match self.apply(call.clone(), within.bounds(&[])?, None).await {
            Err(ApplyError::Outside { path, offer }) if !call.check => places.add(path, offer).await?,
            done => return done,
        }
        // A patch that does not fit is refused before a person is asked.
        let check = PatchApplyParams { check: true, ..call.clone() };
        let checked = loop {
            match self.apply(check.clone(), within.bounds(&places.near)?, None).await {
                Err(ApplyError::Outside { path, offer }) => places.add(path, offer).await?,
                done => break done?,
            }
        };
        let question = PathQuestion {
            kind: ApprovalKind::Patch,
            files: checked.files.iter().map(|file| action_file(call.cwd.as_deref(), file)).collect(),
            diff: Some(checked.diff.clone()),
            cwd: call.cwd.clone(),
            session_key: call.session_key.clone(),
            task_id: call.task_id.clone(),
            request_id: call.request_id.clone(),
            timeout_ms: call.approval_timeout_ms,
            by: within.by.clone(),
        };
        let given = within.ask(&places, question).await?;
        self.apply(call, within.bounds(&given)?, Some(&checked)).await
    }

    /// Undoes a patch. Outside the roots it asks, and waits for the answer.
    pub async fn revert_or_ask(
        self: &Arc<Self>,
        call: PatchRevertParams,
        cwd: Option<String>,
        within: PatchCall<'_>,
    ) -> Result<PatchRevertResult, ApplyError> {
        let mut places = WantedDirs::default();
        match self.revert(call.clone(), within.bounds(&[])?).await {
            Err(ApplyError::Outside { path, offer }) => places.add(path, offer).await?,
            done => return done,
        }
        let (files, diff) = loop {
            match self.check_revert(&call.patch_id, within.bounds(&places.near)?).await {
                Err(ApplyError::Outside { path, offer }) => places.add(path, offer).await?,
                done => break done?,
            }
        };
        let question = PathQuestion {
            kind: ApprovalKind::Patch,
            files: files.iter().map(|file| action_file(cwd.as_deref(), file)).collect(),
            diff: Some(diff),
            cwd,
            session_key: call.session_key.clone(),
            task_id: call.task_id.clone(),
            request_id: call.request_id.clone(),
            timeout_ms: call.approval_timeout_ms,
            by: within.by.clone(),
        };
        let given = within.ask(&places, question).await?;
        self.revert(call, within.bounds(&given)?).await
    }
}

/// A file of a patch, as a person decides on it.
fn action_file(cwd: Option<&str>, file: &PatchFile) -> ActionFile {
    let op = match (file.op, &file.to) {
        (_, Some(to)) => format!("move to {to}"),
        (PatchOp::Add, None) => "add".into(),
        (PatchOp::Update, None) => "update".into(),
        (PatchOp::Delete, None) => "delete".into(),
    };
    let path = Path::new(cwd.unwrap_or("/")).join(&file.path).to_string_lossy().into_owned();
    ActionFile { path, op, sha256: file.after_sha256.clone() }
}
