//! The daemon's words in those of the command line: who typed `--timeout 0` has never heard of `timeout_ms`.
//! Only for people; `--json` has the daemon's own.

use crate::render::time::exact;
use toold_proto::{ErrorKind, RpcError};

/// The option that gives a parameter. What is not here is named alike, or cannot be given wrong.
const OPTIONS: &[(&str, &str)] = &[
    ("until.match.regex", "--match"),
    ("until.match", "--match"),
    ("until.port", "--port"),
    ("until.quiet_ms", "--quiet"),
    ("ready.match.regex", "--ready-re"),
    ("ready.match", "--ready-match"),
    ("ready.port", "--ready-port"),
    ("ready.quiet_ms", "--ready-quiet"),
    ("ready_timeout_ms", "--ready-timeout"),
    ("timeout_ms", "--timeout"),
    ("heartbeat_ms", "--heartbeat"),
    ("limits.memory_bytes", "--memory"),
    ("limits.cpu_percent", "--cpu"),
    ("limits.pids", "--pids"),
    ("limits.output_bytes", "--output-max"),
    ("limits.idle_ms", "--idle"),
    ("older_than_ms", "--older-than"),
    ("grace_ms", "--grace"),
    ("wait_ms", "--wait"),
    ("yield_ms", "--yield"),
    ("max_bytes", "the size of a page"),
    ("pty.rows", "--pty"),
    ("pty.cols", "--pty"),
    ("rows", "ROWSxCOLS"),
    ("cols", "ROWSxCOLS"),
    ("task_id", "--task"),
    ("session_key", "--session"),
    ("labels", "--label"),
    ("env_mode", "--env-mode"),
    ("env", "--env"),
    ("cwd", "--cwd"),
    ("name", "--name"),
    ("if_running", "--if-running"),
    ("request_id", "--request-id"),
    ("write_id", "--write-id"),
    ("consumer", "--consumer"),
    ("grep", "--grep"),
    ("limit", "-n"),
    ("signal", "SIG"),
    ("shell", "--shell"),
    ("command", "--command"),
    ("argv", "CMD"),
    ("ids", "ID"),
    ("id", "ID"),
    ("after", "--after"),
    ("types", "--type"),
    ("watch", "--watch"),
];

/// What the daemon says of its own parameters in the middle of a sentence.
const PHRASES: &[(&str, &str)] = &[
    ("stdin: \"pipe\"", "--stdin"),
    ("pty: true", "--pty"),
    ("`list` shows", "`toolctl list` shows"),
    ("`heartbeat_ms`", "--heartbeat"),
    ("`notify`", "--notify"),
    (" with `already_exists`", ""),
];

/// An error of the daemon, for a person at a command line.
pub fn error(error: &RpcError) -> String {
    let param = error.data.get("param").and_then(|param| param.as_str()).unwrap_or_default();
    let own = error.message.strip_prefix(param).and_then(|rest| rest.strip_prefix(':'));
    match (error.kind(), own) {
        (Some(ErrorKind::InvalidParams), Some(rest)) if !param.is_empty() => {
            let rest = if param.ends_with("_ms") { with_units(rest) } else { rest.to_owned() };
            format!("{}:{}", option(param), text(&rest))
        }
        _ => text(&error.message),
    }
}

/// The option behind a parameter: `--timeout` for `timeout_ms`, `--label` for `labels.k`, `--watch` for `watch[1]`.
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

/// A sentence with the command line's words for the protocol's.
pub fn text(text: &str) -> String {
    PHRASES.iter().fold(text.to_owned(), |text, (wire, typed)| text.replace(wire, typed))
}

/// Milliseconds as durations are typed.
fn with_units(text: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_end_matches([',', ';', '.']);
        bare.parse().map_or_else(|_| word.to_owned(), |ms| word.replacen(bare, &exact(ms), 1))
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(param: &str, why: &str) -> String {
        error(&RpcError::param(param, why))
    }

    #[test]
    fn a_wrong_parameter_is_told_by_the_option_that_gave_it_and_times_as_they_are_typed() {
        assert_eq!(said("timeout_ms", "must be at least 1, not 0"), "--timeout: must be at least 1ms, not 0ms");
        assert_eq!(
            said("heartbeat_ms", "must be at least 60000, not 5000"),
            "--heartbeat: must be at least 1m, not 5s"
        );
        assert_eq!(said("until.match.regex", "unclosed group"), "--match: unclosed group");
        assert_eq!(said("ready.match.regex", "unclosed group"), "--ready-re: unclosed group");
        assert_eq!(said("watch[1]", "unclosed group"), "--watch or --watch-re, number 2: unclosed group");
        assert_eq!(said("limits.pids", "must be at least 1"), "--pids: must be at least 1");
        assert_eq!(said("env.A=B", "is not a name"), "--env A=B: is not a name");
        assert_eq!(
            said("id", "x has no terminal; start it with pty: true"),
            "ID: x has no terminal; start it with --pty"
        );
        assert_eq!(said("new_thing", "is new"), "new_thing: is new");
    }

    #[test]
    fn what_the_daemon_calls_by_its_protocol_is_called_as_it_is_typed() {
        let gone = RpcError::new(ErrorKind::NotFound, "no process \"x\"; `list` shows what there is");
        assert_eq!(error(&gone), "no process \"x\"; `toolctl list` shows what there is");
        let mute = RpcError::new(
            ErrorKind::StdinUnavailable,
            "x was started without stdin; start it with stdin: \"pipe\" or pty: true",
        );
        assert_eq!(error(&mute), "x was started without stdin; start it with --stdin or --pty");
    }

    #[test]
    fn every_option_that_is_named_here_is_one_of_the_command_line() {
        let command = crate::help::command();
        let all: Vec<String> = command
            .get_subcommands()
            .flat_map(|sub| sub.get_arguments())
            .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
            .collect();
        for (_, option) in OPTIONS.iter().filter(|(_, option)| option.starts_with("--")) {
            assert!(all.iter().any(|known| known == option), "{option}");
        }
    }
}
