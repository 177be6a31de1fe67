//! The confinement of jobs: a profile becomes a plan, whose paths are open.

mod measures;
pub mod namespaces;
pub mod plan;
pub mod probe;
pub mod profile;
mod protect;
pub mod resolve;
mod ruleset;
pub mod session_tmp;
pub mod staged;
pub mod wall;

use namespaces::MakeError;
use profile::ProfileError;
use resolve::ResolveError;
use toold_proto::sandbox::NotEnforced;
use wall::Unavailable;

/// The reason why a job does not start confined as it should be. Nothing runs then.
#[derive(Debug)]
pub enum SandboxError {
    Profile(ProfileError),
    Resolve(ResolveError),
    /// This machine cannot enforce these, and they are required, or nothing can be enforced at all.
    Unavailable(Vec<NotEnforced>),
    /// A path is not the one that was judged, or could not be mounted.
    Failed(MakeError),
    /// It cannot be staged here. A whole sentence.
    NoStage(String),
    /// The settings of its session are damaged, so its profile is not known.
    SessionDamaged(String),
    /// It writes nothing that could be staged.
    NothingToStage,
}

impl From<Unavailable> for SandboxError {
    fn from(error: Unavailable) -> SandboxError {
        match error {
            Unavailable::NotEnforced(missing) => SandboxError::Unavailable(missing),
            Unavailable::Failed(error) => SandboxError::Failed(error),
            Unavailable::NoStage(why) => SandboxError::NoStage(format!("a stage needs namespaces: {why}")),
        }
    }
}

impl From<ProfileError> for SandboxError {
    fn from(error: ProfileError) -> SandboxError {
        SandboxError::Profile(error)
    }
}

impl From<ResolveError> for SandboxError {
    fn from(error: ResolveError) -> SandboxError {
        SandboxError::Resolve(error)
    }
}
