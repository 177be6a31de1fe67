//! Builds and checks the specification of a process from an `exec` call: arguments, directory, environment, limits.

mod again;
mod ask;
mod build;
mod digest;
mod env;
mod lengths;
mod login_env;
mod pending;

pub use again::{AgainEnv, again, requested_limits};
pub use ask::{Ask, AskError};
pub use build::{build, daemon_env, find_program, resolve_path, terminal_size};
pub use env::{DEFAULT_PATH, Variables, given};
pub use pending::check_queue_name;

use crate::backend::cgroup;
use crate::sandbox::plan::Plan;
use crate::store::record::Spec;
use crate::watch::Patterns;
use std::sync::Arc;

/// A checked request to start a process.
#[derive(Clone)]
pub struct SpawnRequest {
    /// The specification without id, sequence and times: the registry assigns those.
    pub spec: Spec,
    /// The environment as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    pub wanted: cgroup::RequestedLimits,
    pub patterns: Option<Arc<Patterns>>,
    /// The errno of a program that was not found. The registry records such a request as a failed start.
    pub unresolved: Option<i32>,
    /// The processes that have to end first, as the call names them.
    pub after: Vec<String>,
    /// The confinement as it was judged, with its open paths. None: there is none, or it is opened again at the start.
    pub plan: Option<Arc<Plan>>,
    /// The question that a person must answer first.
    pub ask: Option<Arc<dyn Ask>>,
}

/// A parameter with a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParam {
    /// The path of the parameter: `cwd`, `argv[1]`, `limits.pids`.
    pub param: String,
    pub problem: Problem,
}

/// The reason why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Text(String),
    TooSmall {
        min: u64,
        given: i64,
    },
    /// More bytes than this config key allows.
    TooLong {
        key: &'static str,
        max: u64,
        given: u64,
    },
}

impl InvalidParam {
    pub fn new(param: impl Into<String>, problem: impl Into<String>) -> InvalidParam {
        InvalidParam { param: param.into(), problem: Problem::Text(problem.into()) }
    }

    pub fn too_small(param: impl Into<String>, min: u64, given: i64) -> InvalidParam {
        InvalidParam { param: param.into(), problem: Problem::TooSmall { min, given } }
    }

    pub fn too_long(param: impl Into<String>, key: &'static str, max: u64, given: u64) -> InvalidParam {
        InvalidParam { param: param.into(), problem: Problem::TooLong { key, max, given } }
    }
}

/// The reason why no specification was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecError {
    InvalidParam(InvalidParam),
    UnknownBackend(String),
}

impl From<InvalidParam> for SpecError {
    fn from(invalid: InvalidParam) -> SpecError {
        SpecError::InvalidParam(invalid)
    }
}
