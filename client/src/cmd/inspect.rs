//! `inspect`: shows everything about one process, and its last lines.

use super::Context;
use super::options::fields::{Fields, Selection};
use crate::error::{CliError, DONE};
use crate::local_time;
use crate::render::inspect::{TimeContext, inspect};
use toold_proto::api;
use toold_proto::params;

/// The number of lines of output at the end.
const TAIL_LINES: u64 = 10;

const NOTES: &str = "Times are local, and RFC 3339 with --json. Sizes of the tree are those of this moment.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    #[command(flatten)]
    fields: Fields,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Selection { fields, view, .. } = args.fields.select(cx, &[]);
    let params = params::InspectParams { id: args.id, fields, view };
    if cx.json {
        let raw = cx.connection.call_raw_with_retry::<api::Inspect>(|_| params.clone())?;
        return cx.document(&raw).map(|()| DONE);
    }
    let result = cx.connection.call_with_retry::<api::Inspect>(&params)?;
    let moment = TimeContext { now_ms: local_time::now_ms(), local: &local_time::date_time };
    cx.console.print(&inspect(&result, &moment, cx.console.style))?;
    let id = result.process.id.to_string();
    let last = params::LogParams { id: Some(id), limit: Some(TAIL_LINES), ..Default::default() };
    let last = cx.connection.call_with_retry::<api::Log>(&last)?;
    if !last.output.is_empty() {
        cx.console.print("\n")?;
        cx.console.print_output(&last.output)?;
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::json;

    #[test]
    fn the_last_lines_stand_below_the_facts_and_json_is_one_answer() {
        let inspected =
            process(json!({"tree": [], "usage": {"processes": 0, "cpu_ms": 0, "rss_bytes": 0}, "log_path": null,
            "state_path": "/s", "env_names": [], "shim_pid": null, "timeout_ms": null}));
        let log = json!({"id": "proc_0123456789ab", "output": "one\ntwo", "total_lines": 2, "first_line": 0, "lines_shown": 2,
            "matched_lines": null, "next_offset": null, "truncated": false, "gap": null});
        let fake = FakeDaemon::start(vec![
            vec![Reply::result(&inspected), Reply::result(log)],
            vec![Reply::result(&inspected)],
        ]);
        let (code, out, err) = test_run(&fake, &["inspect", "x"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.starts_with("● proc_0123456789ab - make test\n") && out.ends_with("\n\none\ntwo\n"), "{out}");
        let asked = fake.requests();
        assert_eq!(asked[1], ("log".into(), json!({"id": "proc_0123456789ab", "limit": 10})));
        assert_eq!(test_run(&fake, &["inspect", "x", "--json"]), (0, format!("{inspected}\n"), String::new()));
    }
}
