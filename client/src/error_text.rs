//! Prints the daemon's errors in the names of the command line: `--timeout` for the parameter `timeout_ms`.
//!
//! The text comes from an error's `data`; the client never reads the daemon's message. `--json` prints the daemon's own.

use crate::render::time::exact;
use serde_json::Value;
use toold_proto::id::ProcId;
use toold_proto::{ErrorKind, RpcError};

/// The option that sets a parameter, for every parameter that a user can set. A parameter of a parameter (`labels.k`)
/// has the option of the longest entry that it starts with.
const OPTIONS: &[(&str, &str)] = &[
    ("until.match.regex", "--match"),
    ("until.match", "--match"),
    ("until.port", "--port"),
    ("until.quiet_ms", "--quiet"),
    ("mode", "--any"),
    ("ready.match.regex", "--ready-re"),
    ("ready.match", "--ready-match"),
    ("ready.port", "--ready-port"),
    ("ready.quiet_ms", "--ready-quiet"),
    ("ready_timeout_ms", "--ready-timeout"),
    ("timeout_ms", "--timeout"),
    ("approval_timeout_ms", "--approval-timeout"),
    ("escalate.to", "--escalate"),
    ("escalate.reason", "--reason"),
    ("escalate", "--escalate"),
    ("heartbeat_ms", "--heartbeat"),
    ("limits.memory_bytes", "--memory"),
    ("limits.cpu_percent", "--cpu"),
    ("limits.pids", "--pids"),
    ("limits.output_bytes", "--output-max"),
    ("limits.idle_ms", "--idle"),
    ("require_limits", "--require-limits"),
    ("older_than_ms", "--older-than"),
    ("grace_ms", "--grace"),
    ("wait_ms", "--wait"),
    ("yield_ms", "--yield"),
    ("max_bytes", "the size of a page"),
    ("pty.rows", "--pty"),
    ("pty.cols", "--pty"),
    ("pty", "--pty"),
    ("stdin", "--stdin"),
    ("rows", "ROWSxCOLS"),
    ("cols", "ROWSxCOLS"),
    ("task_id", "--task"),
    ("session_key", "--session"),
    ("labels", "--label"),
    ("label", "--label"),
    ("env_mode", "--env-mode"),
    ("env_base64", "--env"),
    ("env", "--env"),
    ("cwd", "--cwd"),
    ("merge", "--merge"),
    ("name", "--name"),
    ("if_running", "--if-running"),
    ("restart.backoff_ms", "--restart-backoff"),
    ("restart.max", "--max-restarts"),
    ("restart", "--restart"),
    ("sandbox.roots", "--root"),
    ("sandbox.network", "--net"),
    ("sandbox", "--sandbox"),
    ("stage", "--stage"),
    ("paths", "PATHS"),
    ("request_id", "--request-id"),
    ("write_id", "--write-id"),
    ("keys", "KEY"),
    ("secret", "--secret"),
    ("consumer", "--consumer"),
    ("grep", "--grep"),
    ("limit", "-n"),
    ("signal", "SIG"),
    ("shell", "--shell"),
    ("login", "--login"),
    ("command", "--command"),
    ("argv", "CMD"),
    ("ids", "ID"),
    ("id", "ID"),
    ("after_ok", "--after-any"),
    ("after", "--after"),
    ("queue", "--queue"),
    ("slots", "the slots"),
    ("types", "--type"),
    ("watch", "--watch"),
    ("notify", "--notify"),
    ("cursor", "--cursor"),
    ("offset", "--offset"),
    ("or_input", "--or-input"),
    ("stream", "--stream"),
    ("ansi", "--raw"),
    ("fields", "--fields"),
    ("view", "--short"),
    ("tail_lines", "--tail"),
    ("status", "--status"),
    ("failed", "--failed"),
    ("from", "--from"),
    ("usage", "--usage"),
    ("output", "--output"),
    ("all", "--all"),
    ("kill", "--kill"),
    ("message", "--message"),
    ("patch_id", "--revert"),
    ("patch", "the patch"),
    ("check", "--check"),
    ("mode", "--sequential"),
    ("hard_links", "--break-links"),
    ("code", "--code"),
    ("file", "FILE"),
    ("language", "--lang"),
    ("tools", "--tool"),
    ("args", "--args"),
    ("call_timeout_ms", "--call-timeout"),
    ("max_calls", "--max-calls"),
    ("max_parallel", "--max-parallel"),
    ("call", "CALL"),
    ("cell", "--cell"),
    ("idle_ms", "--idle"),
    ("if_busy", "--if-busy"),
    ("provider", "--provider"),
    ("effect", "--effect"),
    ("query", "QUERY"),
    ("toolset", "--toolset"),
    ("format", "--format"),
];

/// Returns an error of the daemon as a sentence for a user of the command line.
pub fn describe(error: &RpcError) -> String {
    let text = |key: &str| error.data.get(key).and_then(Value::as_str);
    match (error.kind(), text("reason"), text("id")) {
        (Some(ErrorKind::StdinUnavailable), Some("not_piped"), Some(id)) => {
            format!("{id} was started without stdin; start it with --stdin or --pty")
        }
        (Some(ErrorKind::InvalidParams), Some("no_pty"), Some(id)) => {
            format!("{id} has no terminal; start it with --pty")
        }
        (Some(ErrorKind::Conflict), _, _) if text("request_id").is_some() => {
            let id = error.data.get("process").and_then(|process| process["id"].as_str()).unwrap_or("another process");
            format!(
                "--request-id {:?} belongs to {id}, which was started with another command, directory, names of variables, \
                 limits or name; repeat that call unchanged, or use another --request-id",
                text("request_id").unwrap_or_default()
            )
        }
        (Some(ErrorKind::NotFound), _, Some(id)) if !id.starts_with("appr_") && !id.starts_with("grant_") => {
            let short =
                if ProcId::is_short_prefix(id) { ", and the start of an id needs at least 4 digits" } else { "" };
            format!("no process {id:?}{short}; `toolctl list` shows what there is")
        }
        _ => match (text("param"), text("problem")) {
            (Some(param), Some(problem)) => {
                format!("{}: {}", option(param), too_short(error, param).unwrap_or_else(|| problem.to_owned()))
            }
            // The kinds that name no parameter, and a daemon of before `problem`.
            _ => error.message.clone(),
        },
    }
}

/// Returns the problem of a duration below its minimum, with both as durations are typed.
fn too_short(error: &RpcError, param: &str) -> Option<String> {
    let ms = |key: &str| error.data.get(key).and_then(Value::as_u64).filter(|_| param.ends_with("_ms"));
    Some(format!("must be at least {}, not {}", exact(ms("min")?), exact(ms("given")?)))
}

/// Returns the option that sets a parameter: `--timeout` for `timeout_ms`, `--label k` for `labels.k`, `--watch` for `watch[1]`.
pub fn option(param: &str) -> String {
    let inner = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let found = OPTIONS.iter().find(|(name, _)| param.strip_prefix(name).is_some_and(inner));
    match found {
        Some(("watch", option)) => match param["watch".len()..].trim_matches(['[', ']']).parse::<usize>() {
            Ok(at) => format!("{option} or --watch-re, number {}", at + 1),
            Err(_) => (*option).into(),
        },
        Some((name, option)) => match param[name.len()..].strip_prefix('.') {
            Some(key) if matches!(*name, "env" | "labels") => format!("{option} {key}"),
            Some(_) | None => (*option).into(),
        },
        None => param.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(param: &str, problem: &str) -> String {
        describe(&RpcError::param(param, problem))
    }

    #[test]
    fn an_error_about_a_parameter_names_the_option_and_prints_durations_as_they_are_typed() {
        let too_small = |param, min, given| describe(&RpcError::too_small(param, min, given));
        assert_eq!(too_small("timeout_ms", 1, 0), "--timeout: must be at least 1ms, not 0ms");
        assert_eq!(too_small("heartbeat_ms", 60_000, 5000), "--heartbeat: must be at least 1m, not 5s");
        assert_eq!(too_small("timeout_ms", 1, -1), "--timeout: must be at least 1, not -1");
        assert_eq!(too_small("limits.pids", 1, 0), "--pids: must be at least 1, not 0");
        assert_eq!(described("until.match.regex", "unclosed group"), "--match: unclosed group");
        assert_eq!(described("ready.match.regex", "unclosed group"), "--ready-re: unclosed group");
        assert_eq!(described("watch[1]", "unclosed group"), "--watch or --watch-re, number 2: unclosed group");
        assert_eq!(described("env.A=B", "is not a name"), "--env A=B: is not a name");
        assert_eq!(described("new_thing", "is new"), "new_thing: is new");
    }

    /// The text comes from `data`: whatever the message is, the sentence is the same.
    #[test]
    fn a_process_without_stdin_or_terminal_or_that_is_not_there_is_described_from_data() {
        let error = |kind, key: &str, value: &str| RpcError::new(kind, "x").with("id", "web").with(key, value);
        let not_piped = error(ErrorKind::StdinUnavailable, "reason", "not_piped");
        assert_eq!(describe(&not_piped), "web was started without stdin; start it with --stdin or --pty");
        let no_pty = error(ErrorKind::InvalidParams, "reason", "no_pty").with("param", "id").with("problem", "x");
        assert_eq!(describe(&no_pty), "web has no terminal; start it with --pty");
        let gone = RpcError::new(ErrorKind::NotFound, "x").with("id", "web");
        assert_eq!(describe(&gone), "no process \"web\"; `toolctl list` shows what there is");
        let short = RpcError::new(ErrorKind::NotFound, "x").with("id", "abc");
        assert!(describe(&short).contains("the start of an id needs at least 4 digits"), "{}", describe(&short));
        assert_eq!(describe(&RpcError::new(ErrorKind::Limit, "4096 processes run")), "4096 processes run");
    }

    /// Parameters that no user of the command line sets, or only in part (`limits.pids`).
    const NO_OPTION: &[&str] = &[
        "detail",
        "max_output_bytes",
        "max_stderr_bytes",
        "reconnect_ms",
        "redact",
        "takeover",
        "approval",
        "env_pass",
        "roots",
        "backend",
        "collapse",
        "data",
        "data_base64",
        "decision",
        "digest",
        "encoding",
        "ended_within_ms",
        "expect",
        "grant",
        "hold",
        "limits",
        "max_output_tokens",
        "paused",
        "ready",
        "reason",
        "scope",
        "seq",
        "spans",
        "state",
        "stopped",
        "subscription",
        "until",
        "content",
        "content_base64",
        "context",
        "create_dirs",
        "depth",
        "from_byte",
        "fuzzy",
        "glob",
        "hidden",
        "ignore",
        "new",
        "old",
        "path",
        "pattern",
        "replace_all",
    ];

    #[test]
    fn every_parameter_has_an_option_and_every_option_is_one_of_the_command_line() {
        let document = toold_proto::openrpc::document();
        let methods = document["methods"].as_array().expect("a list of methods");
        for param in methods.iter().flat_map(|method| method["params"].as_array().expect("a list of parameters")) {
            let name = param["name"].as_str().expect("a name");
            let listed = OPTIONS.iter().any(|(param, _)| *param == name);
            assert!(
                listed != NO_OPTION.contains(&name),
                "{name}: give it an option in OPTIONS, or add it to NO_OPTION"
            );
        }
        let command = crate::help::command();
        let all: Vec<String> = command
            .get_subcommands()
            .flat_map(|sub| std::iter::once(sub).chain(sub.get_subcommands()))
            .flat_map(|sub| sub.get_arguments())
            .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
            .collect();
        for (_, option) in OPTIONS.iter().filter(|(_, option)| option.starts_with("--")) {
            assert!(all.iter().any(|known| known == option), "{option}");
        }
    }

    /// The client reads `kind` and `data`. The one use of `message` is to print it.
    #[test]
    fn no_file_of_the_client_branches_on_the_text_of_a_message() {
        let mut dirs = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let reads =
            regex::Regex::new(r"\.message\s*(\.(as_str|contains|starts_with|ends_with|strip|split|find|replace)|==)")
                .expect("a regular expression");
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("a directory of sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|ext| ext == "rs") {
                    let text = std::fs::read_to_string(&path).expect("a source file");
                    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                    assert!(!reads.is_match(product), "{} reads the text of a message", path.display());
                }
            }
        }
    }
}
