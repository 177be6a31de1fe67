//! A method by its type into jsonrpsee's table, with every parameter error in our words.

use super::wire::{Peer, Serialized, WriteJson, raw_response};
use futures_util::FutureExt;
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{AsyncMethod, MethodCallback, MethodResponse, Methods};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use toold_proto::api::Method;
use toold_proto::openrpc::REQUIRED;
use toold_proto::{ErrorKind, RpcError};

/// Registers `M`. Its parameters come by name; a wrong, unknown or missing one is refused by name
/// before the handler is called.
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

/// The same for a handler whose result only prints like `M`'s: for what is too large to be put together first.
pub fn register_like<M, R, C, F, Fut>(methods: &mut Methods, context: &Arc<C>, handler: F)
where
    M: Method,
    R: WriteJson,
    C: Send + Sync + 'static,
    F: Fn(M::Params, Arc<C>, Arc<Peer>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let required: Vec<&'static str> = REQUIRED.iter().filter(|(name, _)| *name == M::NAME).map(|(_, p)| *p).collect();
    let context = context.clone();
    let call: AsyncMethod<'static> = Arc::new(move |id, params, _, _, extensions| {
        let begun = || {
            let params = parse::<M::Params>(params.as_str(), &required)?;
            let peer = extensions.get::<Arc<Peer>>().cloned().ok_or_else(|| internal("the peer is not known"))?;
            Ok(handler(params, context.clone(), peer))
        };
        let call: Result<Fut, RpcError> = begun();
        let answer = async move {
            let print = |result| {
                raw_response(&id, &result).map_err(|e| internal(&format!("the result cannot be printed: {e}")))
            };
            match async { print(call?.await?) }.await {
                Ok(answer) => answer,
                Err(error) => MethodResponse::error(id, wire_error(error)),
            }
        };
        answer.boxed()
    });
    methods.verify_and_insert(M::NAME, MethodCallback::Async(call)).expect("every method is registered once");
}

/// The error as jsonrpsee carries it.
pub fn wire_error(error: RpcError) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(error.code, error.message, Some(error.data))
}

/// Reads the parameters: an object, or nothing for an empty one.
pub fn parse<T: DeserializeOwned>(params: Option<&str>, required: &[&str]) -> Result<T, RpcError> {
    let text = params.unwrap_or("{}");
    if !text.starts_with('{') {
        return Err(RpcError::param("params", "give parameters by name, as an object; a list is not taken"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let message = plain(&e.into_inner());
        RpcError::param(&param(&path, &message), message)
    })?;
    match required.is_empty() {
        true => Ok(parsed),
        false => missing(text, required).map_or(Ok(parsed), |name| Err(RpcError::param(name, "must be given"))),
    }
}

/// What serde says, without the place: the path says it better.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].into(),
        None => text,
    }
}

/// The parameter an error is about. Of a field that is there twice, or not there, serde gives the
/// place as that of the object, and the name only in its message.
fn param(path: &str, message: &str) -> String {
    let field = ["duplicate field `", "missing field `"].iter().find_map(|begin| message.strip_prefix(begin));
    match (path, field.and_then(|rest| rest.split('`').next())) {
        (".", Some(field)) => field.into(),
        (".", None) => "params".into(),
        (path, Some(field)) => format!("{path}.{field}"),
        (path, None) => path.into(),
    }
}

/// The first of these names that the object `text` does not have.
fn missing<'a>(text: &str, required: &[&'a str]) -> Option<&'a str> {
    struct Names<'a, 'b>(&'b [&'a str]);
    impl<'de, 'a> Visitor<'de> for Names<'a, '_> {
        type Value = Option<&'a str>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<&'a str>, A::Error> {
            let mut left: Vec<&str> = self.0.to_vec();
            while let Some((name, _)) = map.next_entry::<Cow<'de, str>, IgnoredAny>()? {
                left.retain(|one| *one != name);
            }
            Ok(left.first().copied())
        }
    }
    use serde::Deserializer;
    // The text was read once already, so it is an object.
    serde_json::Deserializer::from_str(text).deserialize_map(Names(required)).ok().flatten()
}

fn internal(message: &str) -> RpcError {
    RpcError::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::params;

    fn refusal<T: DeserializeOwned + fmt::Debug>(text: &str, required: &[&str]) -> (String, String) {
        let error = parse::<T>(Some(text), required).expect_err(text);
        assert_eq!((error.code, error.kind()), (-32602, Some(ErrorKind::InvalidParams)));
        (error.data["param"].as_str().expect("named").into(), error.message)
    }

    #[test]
    fn no_params_are_an_empty_object() {
        assert_eq!(parse::<params::Exec>(None, &[]), Ok(params::Exec::default()));
    }

    #[test]
    fn every_mistake_is_told_by_the_name_of_its_parameter() {
        let poll = |text: &str| refusal::<params::Poll>(text, &["id"]);
        assert_eq!(poll("{}"), ("id".into(), "id: must be given".into()));
        assert_eq!(poll("[1]").0, "params");
        let (param, message) = poll(r#"{"id":"x","cursr":0}"#);
        assert_eq!(param, "cursr");
        assert!(message.starts_with("cursr: unknown field `cursr`, expected one of `id`, `cursor`"), "{message}");
        assert_eq!(poll(r#"{"id":7}"#), ("id".into(), "id: invalid type: integer `7`, expected a string".into()));
        assert_eq!(poll(r#"{"id":"x","id":"y"}"#).0, "id");
        assert_eq!(poll(r#"{"id":"x","wait_ms":-1}"#).0, "wait_ms");
    }

    #[test]
    fn a_mistake_inside_a_parameter_is_told_by_its_path() {
        let exec = |text: &str| refusal::<params::Exec>(text, &[]).0;
        assert_eq!(exec(r#"{"argv":["a",1]}"#), "argv[1]");
        assert_eq!(exec(r#"{"limits":{"pids":"many"}}"#), "limits.pids");
        assert_eq!(exec(r#"{"limits":{"pid":1}}"#), "limits.pid");
        assert_eq!(exec(r#"{"env":{"A":1}}"#), "env.A");
        assert_eq!(exec(r#"{"pty":{"rows":1}}"#), "pty.cols");
    }
}
