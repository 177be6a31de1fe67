//! `web_search` and `web_extract`: `toold-fetch`, a program beside the daemon, does the work. The daemon has no HTTP client.

use super::{Native, parse};
use crate::tools::helper::Helper;
use crate::tools::provider::Invocation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use toold_fetch_templates::{ErrorResponse, KEY_VAR, KeySource};
use toold_proto::params::EnvMode;
use toold_proto::{ErrorKind, RpcError};

/// The time in which a program prints a key: it may ask a person for a password.
const KEY_TIMEOUT_MS: u64 = 60_000;

impl Native {
    pub(super) async fn web_search(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            query: String,
            limit: Option<u32>,
        }
        let args: Args = parse(&invocation.args)?;
        let config = &self.approvals.registry.config.web.search;
        let request = config.request(&args.query, args.limit.unwrap_or(5))?;
        let timeout_ms = request.timeout_ms;
        let input = serde_json::to_string(&request).map_err(internal)?;
        self.fetch(invocation, "search", config.key(), input, timeout_ms).await
    }

    pub(super) async fn web_extract(&self, invocation: &Invocation) -> Result<Value, RpcError> {
        #[derive(Deserialize)]
        struct Args {
            urls: Vec<String>,
            char_limit: Option<usize>,
        }
        let args: Args = parse(&invocation.args)?;
        let config = &self.approvals.registry.config.web.extract;
        let out_dir = invocation.files_dir.clone();
        let request = config.request(args.urls, args.char_limit.unwrap_or(15_000), out_dir)?;
        if let Some(dir) = &request.out_dir {
            std::fs::create_dir_all(dir).map_err(|e| internal(format!("make {}: {e}", dir.display())))?;
        }
        // All pages at once, then the extraction of each.
        let timeout_ms = request.timeout_ms.saturating_mul(2);
        let input = serde_json::to_string(&request).map_err(internal)?;
        self.fetch(invocation, "extract", config.key(), input, timeout_ms).await
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        invocation: &Invocation,
        mode: &'static str,
        key: KeySource<'_>,
        input: String,
        timeout_ms: u64,
    ) -> Result<T, RpcError> {
        let registry = &self.approvals.registry;
        let mut env = BTreeMap::new();
        if let Some(key) = self.key(key).await? {
            env.insert(KEY_VAR.to_owned(), key);
        }
        let program = helper_program("toold-fetch")?;
        let helper = Helper {
            argv: vec![program, mode.into()],
            name: "toold-fetch",
            env,
            env_mode: EnvMode::Clean,
            input: Some(input),
            timeout_ms,
            session_key: invocation.scope.session_key.clone(),
            task_id: invocation.scope.task_id.clone(),
        };
        let text = helper.run(registry).await?;
        if let Ok(ErrorResponse { error }) = serde_json::from_slice(&text) {
            let kind = serde_json::from_value(error.kind.clone().into()).unwrap_or(ErrorKind::Unavailable);
            let mut answer = RpcError::new(kind, error.message);
            answer.data.extend(error.data);
            return Err(answer);
        }
        serde_json::from_slice(&text).map_err(|e| internal(format!("the answer of toold-fetch is not valid: {e}")))
    }

    /// Returns the key of a provider.
    async fn key(&self, source: KeySource<'_>) -> Result<Option<String>, RpcError> {
        let missing =
            |what: String| RpcError::new(ErrorKind::Unavailable, format!("the key of the web provider: {what}"));
        match source {
            KeySource::None => Ok(None),
            KeySource::Env(name) => match std::env::var(name) {
                Ok(key) if !key.is_empty() => Ok(Some(key)),
                _ => Err(missing(format!("{name} is not set in the environment of the daemon"))),
            },
            KeySource::Command(argv) => {
                let helper = Helper {
                    argv: argv.to_vec(),
                    name: "key_command",
                    env: BTreeMap::new(),
                    env_mode: EnvMode::Inherit,
                    input: None,
                    timeout_ms: KEY_TIMEOUT_MS,
                    session_key: None,
                    task_id: None,
                };
                let text = helper.run(&self.approvals.registry).await?;
                let key = String::from_utf8_lossy(&text).trim().to_owned();
                if key.is_empty() { Err(missing("key_command printed nothing".into())) } else { Ok(Some(key)) }
            }
        }
    }
}

/// Returns the path of a program that is installed beside the daemon.
pub fn helper_program(name: &str) -> Result<String, RpcError> {
    let own = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    match own.filter(|path| path.exists()) {
        Some(path) => Ok(path.to_string_lossy().into_owned()),
        None => Err(RpcError::new(
            ErrorKind::Unavailable,
            format!("{name} is not installed beside toold; install it there"),
        )),
    }
}

fn internal(e: impl std::fmt::Display) -> RpcError {
    RpcError::new(ErrorKind::Internal, e.to_string())
}
