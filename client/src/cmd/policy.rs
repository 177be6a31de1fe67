//! `policy`: judges a command without running it, and reads the rules again.

use super::Context;
use super::options::caller_env;
use super::options::exec::{self, PtyDefault};
use crate::error::{CliError, DENIED, DONE};
use crate::render::policy;
use toold_proto::api;
use toold_proto::params::Empty;
use toold_proto::policy::{PolicySuggestParams, Verdict};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the verdict on a command with its reasons; nothing runs. The exit code is 5 if it would be denied
    #[command(
        override_usage = "toolctl policy check [OPTIONS] [--] CMD [ARG]...\n       toolctl policy check [OPTIONS] -c TEXT",
        after_help = "Examples:\n  toolctl policy check -- git push\n  toolctl policy check -c 'make && make install' --json"
    )]
    Check(Box<CheckArgs>),
    /// Read the rule files again; if one is refused, the old rules stay
    #[command(
        after_help = "Examples:\n  toolctl policy reload\n  toolctl policy reload && toolctl policy check -- make"
    )]
    Reload,
    /// Suggest a profile and rules for what a process was refused; writes nothing
    #[command(
        after_help = "Examples:\n  toolctl policy suggest build\n  toolctl policy suggest @last --json | jq -r .profile"
    )]
    Suggest {
        /// The process
        id: String,
    },
}

impl Args {
    /// Returns the id of `suggest`.
    pub fn ids(&mut self) -> Vec<&mut String> {
        match &mut self.action {
            Action::Suggest { id } => vec![id],
            Action::Check(_) | Action::Reload => Vec::new(),
        }
    }
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    #[command(flatten)]
    options: exec::Options,
    #[command(flatten)]
    what: exec::Program,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match args.action {
        Action::Check(args) => check(*args, cx),
        Action::Reload => cx.query::<api::PolicyReload>(&Empty {}, |result, _| policy::loaded(result)),
        Action::Suggest { id } => {
            cx.query::<api::PolicySuggest>(&PolicySuggestParams { id }, |result, _| policy::suggestion(result))
        }
    }
}

fn check(args: CheckArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut options = args.options;
    let _ = options.take_readiness();
    let env = options.take_env();
    let mut params = exec::params(args.what, options, PtyDefault::Daemon)?;
    caller_env::add(&mut params, env, cx)?;
    let raw = cx.connection.call_raw_with_retry::<api::PolicyCheck>(|_| params.clone())?;
    let result = cx.show::<api::PolicyCheck>(&raw, |result, _| policy::judgement(result))?;
    Ok(if result.verdict == Verdict::Deny { DENIED } else { DONE })
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;

    #[test]
    fn a_check_prints_the_verdict_and_its_reasons() {
        let reply = json!({
            "verdict": "deny", "plain": true, "commands": [["git", "status"], ["curl", "a b"]],
            "matches": [{"file": "n.toml", "index": 2, "prefix": ["curl"], "verdict": "deny", "reason": "no downloads"}],
            "sandbox": {"profile": "full", "mode": "full", "network": "full", "roots": []},
            "not_enforced": [], "reasons": [{"label": "rule", "text": "no downloads"}]
        });
        let fake = FakeDaemon::start(vec![vec![Reply::result(reply)]]);
        let (code, out, err) = test_run(&fake, &["policy", "check", "-c", "git status && curl 'a b'"]);
        assert_eq!((code, err.as_str()), (5, ""));
        let expected = "deny: no downloads\ncommand  git status\ncommand  curl 'a b'\nrule     n.toml, rule 2: deny\nsandbox  full\n";
        assert_eq!(out, expected);
        assert_eq!(fake.next_request().0, "policy.check");
    }

    #[test]
    fn a_reload_prints_what_holds_now() {
        let fake = FakeDaemon::start(vec![vec![Reply::result(json!({"rules": 3, "files": 1}))]]);
        let (code, out, _) = test_run(&fake, &["policy", "reload"]);
        assert_eq!((code, out.as_str()), (0, "3 rules from 1 file\n"));
        assert_eq!(fake.next_request(), ("policy.reload".into(), json!({})));
    }
}
