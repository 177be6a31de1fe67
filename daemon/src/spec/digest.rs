//! The digest of what a request runs, by which a `request_id` that is used for something else is noticed. Pure.
//!
//! It is of the call, not of the spec: the same call must have the same digest after a restart of the daemon in another
//! environment. Its bytes are on disk, so a part that is left at its default must not change them.

use crate::store::record::RequestDigest;
use serde::Serialize;
use std::num::NonZeroU64;
use toold_format::fnv1a;
use toold_proto::params::{EnvMode, ExecParams, Limits};
use toold_proto::sandbox::SandboxSetting;

/// Variables that a shell changes by itself: with these, a repeated command in the same shell is the same request.
const SHELL_STATE: [&str; 4] = ["_", "OLDPWD", "PWD", "SHLVL"];

/// The parts of a call that decide what is run.
#[derive(Serialize)]
struct Parts<'a> {
    command: Option<&'a str>,
    argv: Option<&'a [String]>,
    cwd: Option<&'a str>,
    env_names: Vec<&'a str>,
    env_mode: EnvMode,
    limits: &'a Limits,
    backend: &'a str,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'a SandboxSetting>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stage: bool,
}

/// Returns the digest of a call with a `request_id`.
pub fn digest(call: &ExecParams) -> Option<RequestDigest> {
    call.request_id.as_ref()?;
    let names = call.env.keys().chain(call.env_base64.keys()).map(String::as_str);
    let mut env_names: Vec<&str> = names.filter(|name| !SHELL_STATE.contains(name)).collect();
    env_names.sort_unstable();
    let parts = Parts {
        command: call.command.as_deref(),
        argv: call.argv.as_deref(),
        cwd: call.cwd.as_deref(),
        env_names,
        env_mode: call.env_mode,
        limits: &call.limits,
        backend: call.backend.as_deref().unwrap_or("local"),
        name: call.name.as_deref(),
        sandbox: call.sandbox.as_ref(),
        stage: call.stage,
    };
    let json = serde_json::to_vec(&parts).ok()?;
    Some(NonZeroU64::new(fnv1a(&json)).unwrap_or(NonZeroU64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(mut call: serde_json::Value) -> Option<u64> {
        call["request_id"] = json!("r");
        digest(&serde_json::from_value(call).expect("a call")).map(NonZeroU64::get)
    }

    #[test]
    fn what_is_run_is_compared_and_nothing_else() {
        let call =
            json!({"argv": ["a", "b"], "cwd": "/", "env": {"A": "1", "B": "2"}, "limits": {"pids": 3}, "name": "n"});
        let with = |key: &str, value: serde_json::Value| {
            let mut other = call.clone();
            other[key] = value;
            of(other)
        };
        let same = of(call.clone());
        for (key, value) in [
            ("yield_ms", json!(5)),
            ("env", json!({"A": "2", "B": "x", "OLDPWD": "/", "_": "x"})),
            ("backend", json!("local")),
            ("timeout_ms", json!(5)),
            ("notify", json!(true)),
            ("labels", json!({"a": "b"})),
            ("request_id", json!("other")),
        ] {
            assert_eq!(with(key, value), same, "{key}");
        }
        for (key, value) in [
            ("argv", json!(["ab"])),
            ("cwd", json!("/tmp")),
            ("env", json!({"A": "1"})),
            ("env_mode", json!("replace")),
            ("limits", json!({"pids": 4})),
            ("backend", json!("other")),
            ("name", json!(null)),
            ("sandbox", json!("read-only")),
        ] {
            assert_ne!(with(key, value), same, "{key}");
        }
        assert_ne!(of(json!({"command": "a"})), of(json!({"argv": ["a"]})));
    }

    #[test]
    fn the_digest_of_a_call_is_that_of_earlier_versions_and_a_call_without_a_request_has_none() {
        // It is on disk: a change here makes repeated requests of recorded processes fail.
        assert_eq!(of(json!({"argv": ["/bin/true"], "name": "n"})), Some(GOLDEN));
        assert_eq!(digest(&ExecParams { command: Some("a".into()), ..Default::default() }), None);
    }

    const GOLDEN: u64 = 4_430_823_819_138_755_693;
}
