//! `approvals`: lists questions that wait for a person. At a terminal it shows one after the other, and one key decides.

mod interactive;

use super::Context;
use crate::error::CliError;
use crate::render::approval;
use std::io::IsTerminal;
use toold_proto::api;
use toold_proto::approval::{ApprovalsListParams, ListedState};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Stay, and show new questions as they come
    #[arg(long, short = 'f')]
    follow: bool,
    /// Only those of this session
    #[arg(long, alias = "session-key", value_name = "KEY")]
    session: Option<String>,
    /// Only those of this task
    #[arg(long, alias = "task-id", value_name = "TASK")]
    task: Option<String>,
    /// Also those that were decided, as a list
    #[arg(long, short = 'a', conflicts_with = "follow")]
    all: bool,
    /// List them, and ask for no key
    #[arg(long, short = 'l', conflicts_with = "follow")]
    list: bool,
    /// At most N of them, oldest first
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
}

impl Args {
    fn params(&self) -> ApprovalsListParams {
        ApprovalsListParams {
            state: if self.all { ListedState::All } else { ListedState::Pending },
            session_key: self.session.clone(),
            task_id: self.task.clone(),
            limit: self.limit,
        }
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let at_terminal = cx.console.is_real && cx.console.style.terminal() && std::io::stdin().is_terminal();
    if args.follow || (at_terminal && !cx.json && !args.all && !args.list) {
        return interactive::run(args, at_terminal && !cx.json, cx);
    }
    cx.query::<api::ApprovalsList>(&args.params(), |result, style| approval::list(&result.approvals, style))
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::{Value, json};

    pub fn approval(state: &str) -> Value {
        json!({
            "id": "appr_0123456789ab", "state": state, "kind": "exec", "process": "proc_0123456789ab",
            "session_key": "s", "task_id": null, "requested_by": {"uid": 1, "pid": 2, "program": "/bin/agent"},
            "at": "2026-11-16T03:28:50.123Z", "expires_at": "2026-11-16T03:38:50.123Z",
            "why": [{"label": "danger", "text": "forced removal"}],
            "action": {"argv": ["rm", "-f", "x"], "command": "rm -f x", "cwd": "/w"}, "digest": "d1",
            "offers": [{"scope": "once", "grant": null}]
        })
    }

    #[test]
    fn a_pipe_gets_one_line_per_question() {
        let listed = json!({"approvals": [approval("pending")], "total": 1});
        let fake = FakeDaemon::start(vec![vec![Reply::result(listed)]]);
        let (code, out, err) = test_run(&fake, &["approvals", "--session", "s", "-n", "5"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(
            out,
            "ID                 STATE    PROCESS            WHAT     WHY\n\
             appr_0123456789ab  pending  proc_0123456789ab  rm -f x  forced removal\n"
        );
        assert_eq!(fake.next_request(), ("approvals.list".into(), json!({"session_key": "s", "limit": 5})));
    }

    #[test]
    fn a_decision_names_the_digest_of_the_action_that_was_shown() {
        for (line, decision) in [
            ("approve appr_0123456789ab", json!({"decision": "approve"})),
            ("approve appr_0123456789ab --session", json!({"decision": "approve", "scope": "session"})),
            ("approve appr_0123456789ab --always", json!({"decision": "approve", "scope": "always"})),
            ("deny appr_0123456789ab -m no", json!({"decision": "deny", "message": "no"})),
            ("deny appr_0123456789ab --abort", json!({"decision": "abort"})),
        ] {
            let decided = json!({"approval": approval("approved")});
            let fake = FakeDaemon::start(vec![vec![Reply::result(approval("pending")), Reply::result(decided)]]);
            let args: Vec<&str> = line.split(' ').collect();
            let (code, out, err) = test_run(&fake, &args);
            assert_eq!((code, err.as_str()), (0, ""), "{line}");
            assert_eq!(out, "appr_0123456789ab approved: rm -f x\n", "{line}");
            assert_eq!(fake.next_request().0, "approvals.get");
            let (method, mut params) = fake.next_request();
            assert_eq!((method.as_str(), &params["digest"]), ("approvals.decide", &json!("d1")), "{line}");
            let given = params.as_object_mut().expect("an object");
            given.remove("digest");
            given.remove("id");
            assert_eq!(params, decision, "{line}");
        }
    }
}
