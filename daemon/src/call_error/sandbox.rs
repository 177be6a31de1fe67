//! Errors of a confinement.

use crate::sandbox::SandboxError;
use crate::sandbox::profile::ProfileError;
use crate::sandbox::resolve::ResolveError;
use toold_proto::{ErrorKind, RpcError};

impl From<SandboxError> for RpcError {
    fn from(error: SandboxError) -> RpcError {
        match error {
            SandboxError::Profile(error) => profile_error(error),
            SandboxError::Resolve(error) => resolve_error(error),
            SandboxError::Unavailable(missing) => {
                let one = |what: &toold_proto::sandbox::NotEnforced| format!("{}: {}", what.what.name(), what.why);
                let list = missing.iter().map(one).collect::<Vec<_>>().join("; ");
                let message = format!("the sandbox cannot be enforced here: {list}; nothing was started");
                RpcError::new(ErrorKind::Unavailable, message)
                    .with("not_enforced", serde_json::to_value(&missing).unwrap_or_default())
            }
            SandboxError::Failed(error) if error.step == toold_format::step::PATH_IDENTITY => denied(
                "swapped",
                format!("a path of the sandbox is not the one that was judged: {error}; nothing was started"),
            ),
            SandboxError::Failed(error) => {
                let message = format!("the sandbox could not be made: {error}; nothing was started");
                RpcError::new(ErrorKind::Unavailable, message).with("step", toold_format::step::name(error.step))
            }
            SandboxError::NoStage(why) => {
                RpcError::new(ErrorKind::Unavailable, format!("{why}; nothing was started")).with("reason", "stage")
            }
            SandboxError::SessionDamaged(key) => {
                let message = format!(
                    "the settings of session {key:?} are damaged, so what it may do is not known; configure it again with \
                     session.configure; nothing was started"
                );
                denied("session_damaged", message).with("session_key", key)
            }
            SandboxError::NothingToStage => {
                RpcError::param("stage", "the profile lets the process write nowhere, so there is nothing to stage")
            }
        }
    }
}

fn profile_error(error: ProfileError) -> RpcError {
    match error {
        ProfileError::Unknown { param, name, known } => {
            let problem = format!("there is no profile {name:?}; there are {}", known.join(", "));
            RpcError::param(param, problem).with("profiles", known)
        }
        ProfileError::Key { param, problem } => RpcError::param(param, problem),
        ProfileError::Wider { name, key, ceiling } => {
            let message = format!("the profile {name} is wider than {ceiling}, in {key}; nothing was started");
            denied("ceiling", message).with("profile", name).with("key", key)
        }
    }
}

fn resolve_error(error: ResolveError) -> RpcError {
    match error {
        ResolveError::Path { param, problem } => RpcError::param(&param, problem),
        ResolveError::Outside { path, ceiling } => {
            let path = path.display().to_string();
            let message = format!("{path} is outside the roots of {ceiling}; nothing was started");
            denied("ceiling", message).with("path", path).with("key", "roots")
        }
        ResolveError::Swapped { path } => {
            let message = format!("{path} is not the directory that was judged; nothing was started");
            denied("swapped", message).with("path", path)
        }
        ResolveError::Tmp { path, source } => {
            let message = format!("make the private /tmp {}: {source}", path.display());
            RpcError::new(ErrorKind::Unavailable, message).with("path", path.display().to_string())
        }
    }
}

fn denied(reason: &str, message: String) -> RpcError {
    RpcError::new(ErrorKind::Denied, message).with("reason", reason)
}
