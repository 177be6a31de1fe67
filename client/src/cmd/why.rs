//! `why`: shows what confined a process, what it was refused, and who or which rule let it start.

use super::Context;
use crate::error::CliError;
use crate::render::{approval, sandbox};
use toold_proto::{api, params};

const NOTES: &str = "A command failed because of its sandbox only if something is listed as refused: the list has what the \
kernel reported, and never what the output looks like.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = params::InspectParams { id: args.id, ..Default::default() };
    cx.call_once::<api::Inspect>(&params, |result, _| sandbox::why(&result.process) + &approval::permission(result))
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::json;

    #[test]
    fn enforced_measures_and_refused_calls_are_shown() {
        let sandbox = json!({"kind": "namespaces", "profile": "ci", "roots": ["/srv/app"], "protect": ["/srv/app/.git/hooks"],
            "unprotected": ["/srv/app/.envrc"], "network": "off", "enforced": ["fs_write", "network"],
            "not_enforced": [{"what": "signals", "why": "Landlock 6 is needed"}],
            "by": {"landlock": 3, "seccomp": true, "namespaces": ["user", "mnt", "net"]},
            "denials": {"observed": ["fs_write", "network"], "unknown": ["fs_read"], "count": 3, "list": [
                {"op": "open", "path": "/etc/x", "via": "/srv/app/link", "errno": 30, "count": 2, "first_at": "2026-11-17T20:00:00Z"},
                {"op": "connect", "address": "10.0.0.1:443", "errno": 101, "count": 1, "first_at": "2026-11-17T20:00:00Z"}]}});
        let inspected = |sandbox: serde_json::Value| {
            process(json!({"tree": [], "usage": {"processes": 0, "cpu_ms": 0, "rss_bytes": 0}, "log_path": null,
                "state_path": "/s", "env_names": [], "shim_pid": null, "timeout_ms": null, "sandbox": sandbox}))
        };
        let none = json!({"kind": "none", "enforced": []});
        let fake =
            FakeDaemon::start(vec![vec![Reply::result(inspected(sandbox))], vec![Reply::result(inspected(none))]]);
        let (code, out, err) = test_run(&fake, &["why", "x"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let expected = "proc_0123456789ab ran in the sandbox ci: namespaces user, mnt, net; Landlock 3; a filter of system calls\n\
            Writes in     /srv/app\n\
            Protected     /srv/app/.git/hooks\n\
            Unprotected   /srv/app/.envrc\n\
            Network       off\n\
            Enforced      fs_write, network\n\
            Not enforced  signals: Landlock 6 is needed\n\
            Refused       3 calls; fs_write and network are seen, fs_read is not\n\
            \x20             open /etc/x, by the link /srv/app/link: Read-only file system (2 times)\n\
            \x20             connect 10.0.0.1:443: Network is unreachable\n";
        assert_eq!(out, expected);
        assert_eq!(test_run(&fake, &["why", "x"]).1, "proc_0123456789ab had no sandbox\n");
    }
}
