//! Checks the lengths in an `exec` call against the config. What a record holds stays in memory and in answers for as long
//! as it is kept, so it has a bound.

use super::InvalidParam;
use crate::config::Exec;
use toold_proto::params::ExecParams;
use toold_proto::pattern::Pattern;

/// Checks every text of the call that the record keeps.
pub fn check(call: &ExecParams, max: &Exec) -> Result<(), InvalidParam> {
    let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    // As the kernel counts them: each with its end.
    let argv = call.argv.iter().flatten().map(|arg| arg.len() + 1).sum();
    let env = call.env.iter().chain(&call.env_base64).map(|(name, value)| name.len() + value.len() + 2).sum();
    let labels = call.labels.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
    let watch = call.watch.iter().map(|(Pattern::Text(text) | Pattern::Regex(text))| text.len() + 1).sum();
    let all = [
        ("name", len(&call.name), max.max_name_bytes, "exec.max_name_bytes"),
        ("command", len(&call.command), max.max_argv_bytes, "exec.max_argv_bytes"),
        ("argv", argv, max.max_argv_bytes, "exec.max_argv_bytes"),
        ("env", env, max.max_env_bytes, "exec.max_env_bytes"),
        ("cwd", len(&call.cwd), max.max_path_bytes, "exec.max_path_bytes"),
        ("shell", len(&call.shell), max.max_path_bytes, "exec.max_path_bytes"),
        ("backend", len(&call.backend), max.max_name_bytes, "exec.max_name_bytes"),
        ("task_id", len(&call.task_id), max.max_key_bytes, "exec.max_key_bytes"),
        ("session_key", len(&call.session_key), max.max_key_bytes, "exec.max_key_bytes"),
        ("request_id", len(&call.request_id), max.max_key_bytes, "exec.max_key_bytes"),
        ("labels", labels, max.max_labels_bytes, "exec.max_labels_bytes"),
        ("watch", watch, max.max_watch_bytes, "exec.max_watch_bytes"),
    ];
    match all.into_iter().find(|(_, len, max, _)| *len as u64 > *max) {
        Some((param, len, max, key)) => Err(InvalidParam::too_long(param, key, max, len as u64)),
        None => Ok(()),
    }
}
