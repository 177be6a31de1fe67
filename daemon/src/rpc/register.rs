//! Registers methods by their type in jsonrpsee's table. Every error of a parameter names the parameter.

use super::wire::{Peer, Serialized, WriteJson, raw_response};
use futures_util::FutureExt;
use jsonrpsee::types::{ErrorObjectOwned, Id};
use jsonrpsee::{AsyncMethod, MethodCallback, MethodResponse, Methods};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::{Future, ready};
use std::sync::Arc;
use toold_proto::api::Method;
use toold_proto::{ErrorKind, RpcError};

/// Registers `M`. Its parameters come by name. A wrong, unknown or missing one is an error, and the handler is not called.
pub fn register<M, C, F, Fut>(methods: &mut Methods, context: &Arc<C>, handler: F)
where
    M: Method,
    C: Send + Sync + 'static,
    F: Fn(M::Params, Arc<C>, Arc<Peer>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<M::Result, RpcError>> + Send + 'static,
{
    let plain = move |params, context, peer| handler(params, context, peer).map(|result| result.map(Serialized));
    register_like::<M, Serialized<M::Result>, C, _, _>(methods, context, plain);
}

/// Registers a handler whose result is written like the result of `M`, but is too large to be built first.
pub fn register_like<M, R, C, F, Fut>(methods: &mut Methods, context: &Arc<C>, handler: F)
where
    M: Method,
    R: WriteJson,
    C: Send + Sync + 'static,
    F: Fn(M::Params, Arc<C>, Arc<Peer>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let context = context.clone();
    let call: AsyncMethod<'static> = Arc::new(move |id, params, _, _, extensions| {
        let start = || {
            let params = parse::<M::Params>(params.as_str())?;
            let peer = extensions.get::<Arc<Peer>>().cloned().ok_or_else(|| internal("the peer is not known"))?;
            Ok(handler(params, context.clone(), peer))
        };
        // Not an async block: it would have room for the handler's future twice.
        match start() {
            Ok(call) => call.map(move |result| answer_call(id, result)).boxed(),
            Err(error) => ready(answer_call::<R>(id, Err(error))).boxed(),
        }
    });
    methods.verify_and_insert(M::NAME, MethodCallback::Async(call)).expect("every method is registered once");
}

/// Registers a handler that gets the id of the request and its parameters as text.
pub fn register_raw<R, F, Fut>(methods: &mut Methods, name: &'static str, handler: F)
where
    R: WriteJson,
    F: Fn(Value, Option<String>, Arc<Peer>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let call: AsyncMethod<'static> = Arc::new(move |id, params, _, _, extensions| {
        let Some(peer) = extensions.get::<Arc<Peer>>().cloned() else {
            return ready(MethodResponse::error(id, wire_error(internal("the peer is not known")))).boxed();
        };
        let number = serde_json::to_value(&id).unwrap_or_default();
        let result = handler(number, params.as_str().map(String::from), peer);
        result.map(move |result| answer_call(id, result)).boxed()
    });
    methods.verify_and_insert(name, MethodCallback::Async(call)).expect("every method is registered once");
}

/// Writes the answer of a call.
fn answer_call<R: WriteJson>(id: Id<'static>, result: Result<R, RpcError>) -> MethodResponse {
    let print =
        |result| raw_response(&id, &result).map_err(|e| internal(&format!("the result cannot be printed: {e}")));
    result.and_then(print).unwrap_or_else(|error| MethodResponse::error(id, wire_error(error)))
}

/// Converts an error for jsonrpsee.
pub fn wire_error(error: RpcError) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(error.code, error.message, Some(error.data))
}

/// Reads the parameters: an object, or nothing for an empty one.
pub fn parse<T: DeserializeOwned>(params: Option<&str>) -> Result<T, RpcError> {
    let text = params.unwrap_or("{}");
    if !text.starts_with('{') {
        return Err(RpcError::param("params", "give the parameters by name, as an object, not as a list"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let message = without_position(&e.into_inner());
        let problem = if message.starts_with(MISSING_FIELD) { "must be given" } else { &message };
        RpcError::param(&param(&path, &message), problem)
    })
}

/// The start of serde's message for a required field that is absent.
const MISSING_FIELD: &str = "missing field `";
/// The start of serde's message for a field that is there twice.
const DUPLICATE_FIELD: &str = "duplicate field `";

/// Returns the message of serde without line and column: the path is more useful.
fn without_position(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    text
}

/// Returns the path of the parameter that an error is about. For a duplicate or missing field serde reports the path of
/// the object, and the name of the field only in its message.
fn param(path: &str, message: &str) -> String {
    let field = [DUPLICATE_FIELD, MISSING_FIELD].iter().find_map(|prefix| message.strip_prefix(prefix));
    match (path, field.and_then(|rest| rest.split('`').next())) {
        (".", Some(field)) => field.into(),
        (".", None) => "params".into(),
        (path, Some(field)) => format!("{path}.{field}"),
        (path, None) => path.into(),
    }
}

fn internal(message: &str) -> RpcError {
    RpcError::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::params;

    fn refusal<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> (String, String) {
        let error = parse::<T>(Some(text)).expect_err(text);
        assert_eq!((error.code, error.kind()), (-32602, Some(ErrorKind::InvalidParams)));
        (error.data["param"].as_str().expect("named").into(), error.message)
    }

    #[test]
    fn no_params_are_an_empty_object() {
        assert_eq!(parse::<params::ExecParams>(None), Ok(params::ExecParams::default()));
    }

    #[test]
    fn every_error_names_its_parameter() {
        let poll = |text: &str| refusal::<params::PollParams>(text);
        assert_eq!(poll("{}"), ("id".into(), "id: must be given".into()));
        assert_eq!(poll("[1]").0, "params");
        let (param, message) = poll(r#"{"id":"x","cursr":0}"#);
        assert_eq!(param, "cursr");
        assert!(message.starts_with("cursr: unknown field `cursr`, expected one of `id`, `cursor`"), "{message}");
        assert_eq!(poll(r#"{"id":7}"#), ("id".into(), "id: invalid type: integer `7`, expected a string".into()));
        assert_eq!(poll(r#"{"id":"x","id":"y"}"#).0, "id");
        assert_eq!(poll(r#"{"id":"x","wait_ms":-1}"#).0, "wait_ms");
        let resize = refusal::<params::ResizeParams>(r#"{"id":"x","rows":1}"#);
        assert_eq!(resize, ("cols".into(), "cols: must be given".into()));
    }

    #[test]
    fn an_error_inside_a_parameter_names_its_path() {
        let exec = |text: &str| refusal::<params::ExecParams>(text).0;
        assert_eq!(exec(r#"{"argv":["a",1]}"#), "argv[1]");
        assert_eq!(exec(r#"{"limits":{"pids":"many"}}"#), "limits.pids");
        assert_eq!(exec(r#"{"limits":{"pid":1}}"#), "limits.pid");
        assert_eq!(exec(r#"{"env":{"A":1}}"#), "env.A");
        assert_eq!(exec(r#"{"pty":{"rows":1}}"#), "pty.cols");
    }
}
