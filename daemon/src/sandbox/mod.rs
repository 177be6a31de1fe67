//! The confinement of jobs: a profile becomes a plan, whose paths are open.

pub mod plan;
pub mod profile;
mod protect;
pub mod resolve;
pub mod session_tmp;

use profile::ProfileError;
use resolve::ResolveError;
use toold_proto::sandbox::NotEnforced;

/// The reason why a job does not start confined as it should be. Nothing runs then.
#[derive(Debug)]
pub enum SandboxError {
    Profile(ProfileError),
    Resolve(ResolveError),
    /// This machine cannot enforce these, and they are required, or nothing can be enforced at all.
    Unavailable(Vec<NotEnforced>),
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
