//! `queue`: lists queues, sets their slots, pauses and resumes them.

use super::Context;
use crate::args;
use crate::error::CliError;
use crate::render::queue;
use toold_proto::api;
use toold_proto::params::{Empty, QueuesSetParams};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the queues, as `toolctl queue` alone does
    #[command(after_help = "Examples:\n  toolctl queue list\n  toolctl queue list --json | jq -r '.queues[].name'")]
    List,
    /// Set the slots of a queue
    #[command(
        after_help = "Examples:\n  toolctl queue set build --slots 4\n  toolctl queue set build --slots 1 --json"
    )]
    Set {
        /// The queue; a new name makes a new one
        #[arg(value_parser = args::name)]
        name: String,
        /// The number of its processes that run at the same time
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        slots: u64,
    },
    /// Start nothing more from a queue; what runs goes on
    #[command(after_help = "Examples:\n  toolctl queue pause build\n  toolctl queue pause build && toolctl queue")]
    Pause {
        /// The queue
        #[arg(value_parser = args::name)]
        name: String,
    },
    /// Start processes from a queue again
    #[command(after_help = "Examples:\n  toolctl queue resume build\n  toolctl queue resume build && toolctl queue")]
    Resume {
        /// The queue
        #[arg(value_parser = args::name)]
        name: String,
    },
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (name, slots, paused) = match args.action {
        None | Some(Action::List) => {
            return cx.query::<api::QueuesList>(&Empty {}, |result, style| queue::list(&result.queues, style));
        }
        Some(Action::Set { name, slots }) => (name, Some(slots), None),
        Some(Action::Pause { name }) => (name, None, Some(true)),
        Some(Action::Resume { name }) => (name, None, Some(false)),
    };
    // The same settings again change nothing, so the call may be made again after a lost connection.
    cx.query::<api::QueuesSet>(&QueuesSetParams { name, slots, paused }, |queue, _| queue::line(queue))
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;

    #[test]
    fn every_subcommand_is_one_call() {
        let row = json!({"name": "build", "slots": 4, "paused": false, "running": 1, "pending": 2});
        for (line, method, params) in [
            ("queue", "queues.list", json!({})),
            ("queue list", "queues.list", json!({})),
            ("queue set build --slots 4", "queues.set", json!({"name": "build", "slots": 4})),
            ("queue pause build", "queues.set", json!({"name": "build", "paused": true})),
            ("queue resume build", "queues.set", json!({"name": "build", "paused": false})),
        ] {
            let is_list = method == "queues.list";
            let reply = if is_list { json!({ "queues": [row] }) } else { row.clone() };
            let fake = FakeDaemon::start(vec![vec![Reply::result(reply)]]);
            let args: Vec<&str> = line.split(' ').collect();
            let (code, out, err) = test_run(&fake, &args);
            assert_eq!((code, err.as_str()), (0, ""), "{line}");
            let expected = if is_list {
                "NAME   SLOTS  PAUSED  RUNNING  PENDING\nbuild  4      no      1        2\n"
            } else {
                "build  4 slots, 1 running, 2 pending\n"
            };
            assert_eq!(out, expected, "{line}");
            assert_eq!(fake.next_request(), (method.into(), params), "{line}");
        }
    }
}
