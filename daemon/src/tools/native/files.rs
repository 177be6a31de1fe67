//! `read_file`, `write_file`, `search_files` and `patch`: views of `fs.*` and `patch.apply`. A change records the hashes of its
//! file before and after it happens, so that a call that is made again after a crash knows whether it happened.

use super::{Native, parse};
use crate::tools::provider::{Invocation, Resumed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toold_proto::files::{
    FsEditParams, FsEditResult, FsListParams, FsReadParams, FsSearchParams, FsWriteParams, FsWriteResult, SearchMode,
};
use toold_proto::patch::PatchApplyParams;
use toold_proto::time::rfc3339;
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// The facts about a change of one file, recorded before it happens.
#[derive(Debug, Serialize, Deserialize)]
struct ChangeFacts {
    path: String,
    /// Null: there was no file.
    before: Option<String>,
    after: String,
    /// The answer, once the change has happened.
    result: Value,
}

/// The state of a change that an earlier daemon began.
enum Progress {
    /// It happened.
    Done(Value),
    /// It did not.
    NotYet,
}

/// Compares a file with the facts of an earlier daemon. `now`: the hash of its present content.
fn progress(resumed: &Resumed, facts: ChangeFacts, now: Option<&str>, call: &str) -> Result<Progress, RpcError> {
    if now == Some(facts.after.as_str()) {
        return Ok(Progress::Done(facts.result));
    }
    if now == facts.before.as_deref() {
        return Ok(Progress::NotYet);
    }
    let message = format!("{} was changed by another program: it is not known whether the call happened", facts.path);
    Err(RpcError::new(ErrorKind::OutcomeUnknown, message)
        .with("call", call)
        .with("sent_at", rfc3339(resumed.accepted_ms))
        .with("path", facts.path)
        .with("before_sha256", facts.before)
        .with("after_sha256", facts.after)
        .with("now_sha256", now))
}

impl Native {
    pub(super) async fn read_file(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            path: String,
            offset: Option<u64>,
            limit: Option<u64>,
        }
        let Args { path, offset, limit } = parse(&invocation.args)?;
        let scope = invocation.scope.clone();
        let (cwd, sandbox, session_key, task_id) = (scope.cwd, scope.sandbox, scope.session_key, scope.task_id);
        let call = FsReadParams { path, cwd, offset, limit, sandbox, session_key, task_id, ..FsReadParams::default() };
        print(self.file_calls.read(call).await?)
    }

    pub(super) async fn write_file(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            path: String,
            content: String,
            expect: Option<String>,
        }
        let Args { path, content, expect } = parse(&invocation.args)?;
        let scope = invocation.scope.clone();
        let call = FsWriteParams {
            path,
            content: Some(content),
            expect,
            cwd: scope.cwd,
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            request_id: Some(super::command::request_id(&invocation.call)),
            ..FsWriteParams::default()
        };
        let mut checked = FsWriteParams { expect: None, ..call.clone() };
        let mut known = self.file_calls.check_write(&mut checked).await?;
        if let Some((resumed, facts)) = earlier(invocation) {
            let now = known.before_sha256.as_deref();
            match progress(resumed, facts, now, &invocation.call)? {
                Progress::Done(result) => return Ok(result),
                Progress::NotYet => {}
            }
        } else if call.expect.is_some() {
            // The caller's own expectation counts when the call is new.
            checked = call;
            known = self.file_calls.check_write(&mut checked).await?;
        }
        let FsWriteResult { path, sha256, before_sha256, .. } = known.clone();
        let facts = ChangeFacts { path, before: before_sha256, after: sha256, result: print(known)? };
        record(invocation, &facts)?;
        print(self.file_calls.write(checked, || invocation.by.clone()).await?)
    }

    pub(super) async fn patch(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            path: Option<String>,
            old_string: Option<String>,
            new_string: Option<String>,
            #[serde(default)]
            replace_all: bool,
            mode: Option<String>,
            patch: Option<String>,
        }
        let args: Args = parse(&invocation.args)?;
        let missing = |name: &str, mode: &str| {
            let problem = format!("must be given with mode {mode:?}");
            RpcError::param(&format!("args/{name}"), problem).with("pointer", format!("/{name}"))
        };
        if args.mode.as_deref() == Some("patch") {
            let text = args.patch.ok_or_else(|| missing("patch", "patch"))?;
            return self.apply_patch(invocation, text).await;
        }
        let scope = invocation.scope.clone();
        let call = FsEditParams {
            path: args.path.ok_or_else(|| missing("path", "replace"))?,
            old: args.old_string.ok_or_else(|| missing("old_string", "replace"))?,
            new: args.new_string.ok_or_else(|| missing("new_string", "replace"))?,
            replace_all: args.replace_all,
            cwd: scope.cwd,
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            request_id: Some(super::command::request_id(&invocation.call)),
            ..FsEditParams::default()
        };
        self.replace(invocation, call).await
    }

    async fn replace(&self, invocation: &Invocation, mut call: FsEditParams) -> Result<Value, RpcError> {
        if let Some((resumed, facts)) = earlier(invocation) {
            let now = self.hash_of(invocation, &facts.path).await?;
            match progress(resumed, facts, now.as_deref(), &invocation.call)? {
                Progress::Done(result) => return Ok(result),
                Progress::NotYet => {}
            }
        }
        let known = self.file_calls.check_edit(&mut call).await?;
        let FsEditResult { path, sha256, before_sha256, .. } = known.clone();
        let facts = ChangeFacts { path, before: Some(before_sha256), after: sha256, result: edited(&known) };
        record(invocation, &facts)?;
        let done = self.file_calls.edit(call, || invocation.by.clone()).await?;
        Ok(edited(&done))
    }

    /// Returns the hash of a file. None: it is not there.
    async fn hash_of(&self, invocation: &Invocation, path: &str) -> Result<Option<String>, RpcError> {
        let scope = invocation.scope.clone();
        let call = FsReadParams {
            path: path.into(),
            cwd: scope.cwd,
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            ..FsReadParams::default()
        };
        self.file_calls.sha256(call).await
    }

    /// Applies a patch. The same call again, after a crash, has the same `request_id`: it is applied once.
    async fn apply_patch(&self, invocation: &Invocation, patch: String) -> Result<Value, RpcError> {
        let scope = invocation.scope.clone();
        let call = PatchApplyParams {
            patch,
            cwd: scope.cwd,
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            request_id: Some(super::command::request_id(&invocation.call)),
            ..PatchApplyParams::default()
        };
        print(self.file_calls.patch_apply(call, || invocation.by.clone()).await?)
    }

    pub(super) async fn search_files(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            pattern: String,
            target: Option<String>,
            path: Option<String>,
            file_glob: Option<String>,
            limit: Option<u64>,
            #[serde(default)]
            offset: u64,
            output_mode: Option<String>,
            context: Option<u64>,
        }
        let args: Args = parse(&invocation.args)?;
        let scope = invocation.scope.clone();
        let path = args.path.unwrap_or_else(|| ".".into());
        let limit = args.limit.unwrap_or(50);
        if args.target.as_deref() == Some("files") {
            let call = FsListParams {
                path,
                cwd: scope.cwd,
                glob: Some(args.pattern),
                limit: Some(limit),
                sandbox: scope.sandbox,
                session_key: scope.session_key,
                task_id: scope.task_id,
                ..FsListParams::default()
            };
            return print(self.file_calls.find_files(call, args.offset).await?);
        }
        let mode = match args.output_mode.as_deref() {
            Some("files_only") => SearchMode::Files,
            Some("count") => SearchMode::Count,
            _ => SearchMode::Content,
        };
        let call = FsSearchParams {
            pattern: args.pattern,
            path,
            cwd: scope.cwd,
            glob: args.file_glob,
            mode,
            context: args.context,
            limit: Some(limit),
            offset: Some(args.offset).filter(|offset| *offset > 0),
            sandbox: scope.sandbox,
            session_key: scope.session_key,
            task_id: scope.task_id,
            ..FsSearchParams::default()
        };
        print(self.file_calls.search(call).await?)
    }
}

fn earlier(invocation: &Invocation) -> Option<(&Resumed, ChangeFacts)> {
    let resumed = invocation.resumed.as_ref()?;
    Some((resumed, serde_json::from_value(resumed.facts.clone()?).ok()?))
}

fn record(invocation: &Invocation, facts: &ChangeFacts) -> Result<(), RpcError> {
    let recorded =
        serde_json::to_value(facts).map_err(std::io::Error::from).and_then(|facts| invocation.facts.record(facts));
    recorded.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("record the change before it is made: {e}")))?;
    hooks::at("call.before_change");
    Ok(())
}

fn edited(done: &FsEditResult) -> Value {
    json!({
        "status": if done.no_change { "no_change" } else { "applied" },
        "files": [{
            "path": done.path,
            "op": "update",
            "before_sha256": done.before_sha256,
            "after_sha256": done.sha256,
            "count": done.count,
            "strategy": done.strategy,
        }],
        "diff": done.diff,
    })
}

fn print(result: impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(result).map_err(|e| RpcError::new(ErrorKind::Internal, format!("print the result: {e}")))
}
