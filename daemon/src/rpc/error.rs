//! Maps the typed errors of the layers below to error answers.

use crate::spec::{self, InvalidParam, Problem};
use toold_proto::{ErrorKind, RpcError};

impl From<InvalidParam> for RpcError {
    fn from(invalid: InvalidParam) -> RpcError {
        match invalid.problem {
            Problem::Text(text) => RpcError::param(&invalid.param, text),
            Problem::TooSmall { min, given } => RpcError::too_small(&invalid.param, min, given),
        }
    }
}

impl From<spec::Error> for RpcError {
    fn from(error: spec::Error) -> RpcError {
        match error {
            spec::Error::InvalidParam(invalid) => invalid.into(),
            spec::Error::UnknownBackend(name) => {
                let message = format!("there is no backend {name:?} here; `local` is the one there is");
                RpcError::new(ErrorKind::Unavailable, message).with("backend", name)
            }
        }
    }
}
