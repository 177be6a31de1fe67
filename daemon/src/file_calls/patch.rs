//! Patches, with the roots of the call.

use super::FileCalls;
use crate::patch::PatchCall;
use crate::sandbox::plan::Plan;
use toold_proto::RpcError;
use toold_proto::approval::Caller;
use toold_proto::patch::{PatchApplyParams, PatchResult, PatchRevertParams, PatchRevertResult};

impl FileCalls {
    /// Applies a patch. Outside the roots it asks, and waits for the answer. With a `request_id` it is applied once, also if
    /// the daemon is killed in between and the call is repeated.
    pub async fn patch_apply(
        &self,
        mut call: PatchApplyParams,
        by: impl FnOnce() -> Caller,
    ) -> Result<PatchResult, RpcError> {
        let plan = self.plan(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
        Ok(self.patches.apply_or_ask(call, self.within(plan.as_ref(), by())).await?)
    }

    /// Undoes a patch. Outside the roots it asks, and waits for the answer.
    pub async fn patch_revert(
        &self,
        call: PatchRevertParams,
        by: impl FnOnce() -> Caller,
    ) -> Result<PatchRevertResult, RpcError> {
        // The roots of a profile are relative to the directory of the patch.
        let mut cwd = self.patches.working_dir(&call.patch_id).await?;
        let plan = self.plan(call.sandbox.as_ref(), &mut cwd, call.session_key.as_deref())?;
        Ok(self.patches.revert_or_ask(call, cwd, self.within(plan.as_ref(), by())).await?)
    }

    fn within<'a>(&'a self, plan: Option<&'a Plan>, by: Caller) -> PatchCall<'a> {
        PatchCall { approvals: &self.approvals, plan, by }
    }
}
