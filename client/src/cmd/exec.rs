//! `exec`: start a process in the background and print its id.

use super::start::{self, PtyDefault};
use super::{Context, ended};
use crate::args;
use crate::failure::{DONE, Failure};
use crate::render::{Look, poll};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::Status;
use toold_proto::results;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: start::Options,
    /// Wait so long for its end before answering
    #[arg(long = "yield", value_name = "TIME", value_parser = args::duration_ms)]
    yield_ms: Option<u64>,
    #[command(flatten)]
    what: start::What,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let mut params = start::params(args.what, args.options, PtyDefault::Daemon)?;
    params.yield_ms = args.yield_ms.unwrap_or(0);
    cx.link.expect_wait(Duration::from_millis(params.yield_ms));
    let raw = cx.link.call_again_raw::<api::Exec>(|_| params.clone())?;
    cx.show::<api::Exec>(&raw, picture)?;
    Ok(DONE)
}

fn picture(result: &results::Exec, look: Look) -> String {
    let process = &result.process;
    if !look.terminal() {
        return format!("{}\n", process.id);
    }
    match process.status {
        Status::Starting | Status::Running if result.output.is_empty() => {
            // On its own line the hint fits a narrow terminal whole, ready to be copied.
            poll::header(process, result.next_cursor, result.gap, look) + &format!("  toolctl log -f {}\n", process.id)
        }
        Status::Starting | Status::Running | Status::Exited | Status::Lost => {
            poll::header(process, result.next_cursor, result.gap, look) + &ended(&result.output)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::started;
    use serde_json::json;

    #[test]
    fn a_program_gets_the_id_alone_and_a_person_a_line_and_what_came_out() {
        let running: results::Exec = serde_json::from_value(started(json!({}))).expect("a whole result");
        assert_eq!(picture(&running, Look::plain()), "proc_0123456789ab\n");
        let look = Look { width: Some(100), colour: false };
        let hint = "proc_0123456789ab running 5m, cursor 0\n  toolctl log -f proc_0123456789ab\n";
        assert_eq!(picture(&running, look), hint);
        let changes = json!({"status": "exited", "reason": "exited", "exit_code": 0, "output": "hi", "next_cursor": 2});
        let done: results::Exec = serde_json::from_value(started(changes)).expect("a whole result");
        assert_eq!(picture(&done, look), "proc_0123456789ab exited 0, cursor 2\nhi\n");
    }
}
