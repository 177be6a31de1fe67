//! `list`: shows processes as a table, and with `--watch` as they change.

mod sort;
mod watch;

use super::Context;
use super::options::fields::{Fields, Selection};
use crate::error::{CliError, DONE};
use crate::local_time::now_ms;
use crate::render::list::{Row, list};
use crate::render::status;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sort::Sort;
use toold_proto::api;
use toold_proto::params::{self, Status};
use toold_proto::process::Reason;
use toold_proto::results;

/// The time for which an ended process is shown, unless more is wanted.
const RECENT_MS: u64 = 3_600_000;
/// The number of ended processes that are shown, the last to end.
const MAX_RECENT: usize = 20;
/// More processes than any daemon has.
const MAX_PROCESSES: u64 = 1_000_000;

const NOTES: &str = "Shows what runs and what ended in the last hour, at most 20 of those; -a, --status and --failed show all. \
STATE is the reason of an ended process, else its status, as --json has them; `toolctl help states` lists them.  \
CPU is the time that the whole tree used so far, and with --watch its share of one CPU now.
--watch ends with Ctrl-C or q, and continues after the daemon was restarted. If standard output is not a terminal it prints a \
table whenever a process starts or ends, with an empty line between two.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Only these: starting, running, stopped, exited (however it ended), killed, signaled, timeout, oom, failed_start, lost or
    /// failed
    #[arg(long, visible_alias = "state", hide_possible_values = true, value_parser = state(), conflicts_with = "failed")]
    status: Option<StatusFilter>,
    /// Only what failed: lost, not started, ended by a signal or a limit, or with a code other than 0
    #[arg(long)]
    failed: bool,
    /// Only processes of this task
    #[arg(long)]
    task: Option<String>,
    /// Only processes of this session
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only processes with this label, of any value or of this one
    #[arg(long, value_name = "K[=V]")]
    label: Option<String>,
    /// Only processes with such a name; * is any text, ? any character
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Also processes that ended long ago
    #[arg(short, long)]
    all: bool,
    /// Order by age (newest first), name, cpu, mem or status [default: age]
    #[arg(long, value_name = "BY", value_enum, hide_possible_values = true)]
    sort: Option<Sort>,
    /// Reverse the order
    #[arg(short, long)]
    reverse: bool,
    /// At most N processes [default: all; 200 with --json]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// Keep the list on the screen, and show what changes
    #[arg(short, long)]
    watch: bool,
    /// Print only the ids, one per line
    #[arg(short, long, conflicts_with = "watch")]
    quiet: bool,
    /// With --json: also the CPU and memory that each process uses
    #[arg(long)]
    usage: bool,
    #[command(flatten)]
    fields: Fields,
}

/// A value of the STATE column, or `failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatusFilter {
    Is(Status),
    EndedBy(Reason),
    Stopped,
    Failed,
}

impl StatusFilter {
    fn status(self) -> Option<Status> {
        match self {
            StatusFilter::Is(status) => Some(status),
            StatusFilter::EndedBy(_) | StatusFilter::Stopped | StatusFilter::Failed => None,
        }
    }

    fn reason(self) -> Option<Reason> {
        match self {
            StatusFilter::Is(_) | StatusFilter::Stopped | StatusFilter::Failed => None,
            StatusFilter::EndedBy(reason) => Some(reason),
        }
    }
}

/// Every value that the column shows. `exited` and `lost` are the protocol's: `exited` is any end.
fn state() -> impl TypedValueParser<Value = StatusFilter> {
    const STATUSES: [Status; 5] = [Status::Pending, Status::Starting, Status::Running, Status::Exited, Status::Lost];
    const REASONS: [Reason; 7] = [
        Reason::Killed,
        Reason::Signaled,
        Reason::Timeout,
        Reason::Oom,
        Reason::FailedStart,
        Reason::Dependency,
        Reason::Denied,
    ];
    let statuses = STATUSES.map(|known| (status::name(known), StatusFilter::Is(known)));
    let reasons = REASONS.map(|known| (status::reason(known), StatusFilter::EndedBy(known)));
    let (stopped, failed) = (("stopped", StatusFilter::Stopped), ("failed", StatusFilter::Failed));
    let all: Vec<_> = statuses.into_iter().chain([stopped]).chain(reasons).chain([failed]).collect();
    PossibleValuesParser::new(all.iter().map(|(name, _)| *name)).try_map(move |text: String| {
        all.iter().find(|(name, _)| *name == text).map(|(_, state)| *state).ok_or("not a status")
    })
}

impl Args {
    fn params(&self, json: bool) -> params::ListParams {
        let limit = match (json, self.all) {
            (true, false) => self.limit,
            (true, true) => self.limit.or(Some(MAX_PROCESSES)),
            // Counted here, after sorting.
            (false, _) => Some(MAX_PROCESSES),
        };
        params::ListParams {
            task_id: self.task.clone(),
            session_key: self.session.clone(),
            status: self.status.and_then(StatusFilter::status),
            reason: self.status.and_then(StatusFilter::reason),
            stopped: (self.status == Some(StatusFilter::Stopped)).then_some(true),
            label: self.label.clone(),
            name: self.name.clone(),
            ended_within_ms: (!json && self.recent()).then_some(RECENT_MS),
            failed: self.failed || self.status == Some(StatusFilter::Failed),
            usage: self.usage || !json && !self.quiet,
            limit,
            ..params::ListParams::default()
        }
    }

    /// Reports whether only recent processes are wanted.
    fn recent(&self) -> bool {
        !self.all && self.status.is_none() && !self.failed
    }

    /// Returns the rows to show, and the number of the others.
    fn arrange<'l>(
        &self,
        listed: &'l results::ListResult,
        percent: impl Fn(&Row<'_>) -> Option<u64>,
    ) -> (Vec<Row<'l>>, u64) {
        let with_percent = |row: Row<'l>| Row { percent: percent(&row), ..row };
        let mut rows: Vec<Row<'l>> = listed.processes.iter().map(Row::of).map(with_percent).collect();
        let all = listed.total + listed.older.unwrap_or(0);
        if self.recent() {
            sort::keep_recent(&mut rows, MAX_RECENT);
        }
        sort::sort(&mut rows, self.sort.unwrap_or_default());
        if self.reverse {
            rows.reverse();
        }
        rows.truncate(self.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
        let hidden = all.saturating_sub(rows.len() as u64);
        (rows, hidden)
    }

    /// Returns a note about the processes that are not shown.
    fn hidden(&self, hidden: u64) -> Option<String> {
        let how = match self.limit {
            Some(_) => "a larger -n shows more",
            None => "-a shows all",
        };
        (hidden > 0).then(|| format!("{hidden} more are not shown; {how}"))
    }

    /// Returns the message for an empty list. What is hidden then has ended long ago.
    fn none(hidden: u64) -> String {
        match hidden {
            0 => "no processes".into(),
            1 => "no processes in the last hour; 1 that ended before is not shown; -a shows it".into(),
            n => format!("no processes in the last hour; {n} that ended before are not shown; -a shows all"),
        }
    }
}

pub fn run(mut args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Selection { fields, view, .. } = std::mem::take(&mut args.fields).select(cx, &[]);
    if args.limit == Some(0) {
        return Err(CliError::Usage("-n must be at least 1".into()));
    }
    if cx.json {
        if args.watch || args.sort.is_some() || args.reverse || args.quiet {
            let why = "--json prints the daemon's answer as it is: sort it with jq, and watch with `toolctl events -f --json`";
            return Err(CliError::Usage(why.into()));
        }
        let params = params::ListParams { fields, view, ..args.params(true) };
        let raw = cx.connection.call_raw_with_retry::<api::List>(|_| params.clone())?;
        return cx.document(&raw).map(|()| DONE);
    }
    if args.watch {
        return watch::run(args, cx);
    }
    let listed = cx.connection.call_with_retry::<api::List>(&args.params(false))?;
    let (rows, hidden) = args.arrange(&listed, |_| None);
    if args.quiet {
        let ids: String = rows.iter().map(|row| format!("{}\n", row.process.id)).collect();
        return cx.console.print(&ids).map(|()| DONE);
    }
    // A heading over nothing is of no use to a person. A program that reads a pipe expects the line.
    if rows.is_empty() && cx.console.style.terminal() {
        cx.console.message(&Args::none(hidden));
        return Ok(DONE);
    }
    cx.console.print(&list(&rows, now_ms(), cx.console.style))?;
    if let Some(printed) = args.hidden(hidden) {
        cx.console.message(&printed);
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::{Value, json};

    fn answer(processes: Vec<Value>, older: u64) -> Reply {
        let listed: Vec<Value> = processes
            .into_iter()
            .map(|mut process| {
                process["preview"] = json!("");
                process
            })
            .collect();
        Reply::result(json!({"total": listed.len(), "processes": listed, "older": older}))
    }

    fn ended(number: u32) -> Value {
        process(json!({"id": format!("proc_{number:012x}"), "status": "exited", "reason": "exited", "exit_code": 0,
            "exited_at": format!("2026-11-16T03:{:02}:{:02}.000Z", number / 60, number % 60)}))
    }

    #[test]
    fn a_terminal_shows_running_and_recent_processes_and_a_note_about_the_rest() {
        let processes = (0..25).map(ended).chain([process(json!({"name": "web"}))]).collect();
        let fake = FakeDaemon::start(vec![vec![answer(processes, 7)]]);
        let (code, out, err) = test_run(&fake, &["list"]);
        assert_eq!((code, err.as_str()), (0, "toolctl: 12 more are not shown; -a shows all\n"));
        assert_eq!(out.lines().count(), 1 + 20 + 1, "{out}");
        assert!(
            out.contains("web") && !out.contains("proc_000000000004 ") && out.contains("proc_000000000005 "),
            "{out}"
        );
        assert_eq!(fake.next_request().1, json!({"ended_within_ms": 3600000, "usage": true, "limit": 1000000}));
    }

    #[test]
    fn nothing_is_printed_of_events_from_before() {
        let printed = [0, 1, 7].map(super::Args::none);
        assert_eq!(printed[0], "no processes");
        assert_eq!(printed[1], "no processes in the last hour; 1 that ended before is not shown; -a shows it");
        assert_eq!(printed[2], "no processes in the last hour; 7 that ended before are not shown; -a shows all");
        let fake = FakeDaemon::start(vec![vec![answer(vec![], 0)]]);
        let (code, out, err) = test_run(&fake, &["list"]);
        assert!(code == 0 && out.starts_with("ID ") && err.is_empty(), "a pipe has its heading: {out}{err}");
    }

    #[test]
    fn all_a_status_or_a_limit_is_as_it_was_asked_for() {
        for args in [&["list", "-a"][..], &["list", "--status", "exited"]] {
            let fake = FakeDaemon::start(vec![vec![answer((0..25).map(ended).collect(), 0)]]);
            let (_, out, err) = test_run(&fake, args);
            assert_eq!((out.lines().count(), err.as_str()), (26, ""));
            assert_eq!(fake.next_request().1.get("ended_within_ms"), None);
        }
        let fake = FakeDaemon::start(vec![vec![answer((0..25).map(ended).collect(), 0)]]);
        let (_, out, err) = test_run(&fake, &["list", "-n", "2", "-r"]);
        assert_eq!(
            (out.lines().count(), err.as_str()),
            (3, "toolctl: 23 more are not shown; a larger -n shows more\n")
        );
    }

    #[test]
    fn json_requests_no_more_than_the_options_and_neither_sorts_nor_watches() {
        let fake = FakeDaemon::start(vec![vec![Reply::result("{}"), Reply::result("{}")]]);
        assert_eq!(test_run(&fake, &["list", "--json"]).0, 0);
        assert_eq!(fake.next_request().1, json!({}));
        for args in [["--sort", "cpu"], ["--reverse", "--json"], ["--watch", "--json"], ["-n", "0"]] {
            assert_eq!(test_run(&fake, &[&["list", "--json"], &args[..1], &args[1..]].concat()).0, 2, "{args:?}");
        }
        let fake = FakeDaemon::start(vec![vec![Reply::result("{}")]]);
        assert_eq!(test_run(&fake, &["list", "--json", "--usage", "--name", "a*"]).0, 0);
        assert_eq!(fake.next_request().1, json!({"usage": true, "name": "a*"}));
    }
}
