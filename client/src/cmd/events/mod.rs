//! `events`: shows past events, and with `-f` new ones.

mod carrier;
mod consumer;
mod journal;
#[cfg(test)]
mod tests;

pub use consumer::create as create_consumer;

use super::Context;
use crate::args;
use crate::error::CliError;
use crate::render::{self, time};
use crate::sys;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toold_proto::event::EventType;
use toold_proto::params::ConsumerStart;

const NOTES: &str = "With --consumer the daemon stores the position of that consumer, also across restarts. A new consumer \
begins now; --from oldest begins with the oldest event kept. Events are \
acknowledged only after they are printed: if toolctl is killed before, they come again. --json prints each \
event as it came, one per line. A person is not shown `closed`, except by --type closed. With --wait the exit code is 124 if no \
event came.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Show what comes too, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only what this consumer has not seen; what is printed counts as seen
    #[arg(long, value_name = "NAME", conflicts_with_all = ["after", "output"])]
    consumer: Option<String>,
    #[arg(long = "type", value_name = "TYPE", hide_possible_values = true, value_delimiter = ',', value_parser = args::enum_value::<EventType>(),
        help = args::with_values::<EventType>("Only events of these types, separated by commas or given again"))]
    types: Vec<EventType>,
    /// Only of processes of this session; empty for all [default: the agent's, unless --task or --id is given]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only of processes of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only of this process
    #[arg(long)]
    pub id: Option<String>,
    /// Only the last N; with --consumer at most N [default: 20; all with --consumer or --after]
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u64>,
    /// Only what came after the event with this number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// With a new --consumer: begin with the next event (now) or with the oldest one kept [default: now]
    #[arg(long, value_name = "WHERE", requires = "consumer", hide_possible_values = true, value_parser = args::enum_value::<ConsumerStart>())]
    from: Option<ConsumerStart>,
    /// With --consumer: wait up to this long for the first
    #[arg(long, value_name = "TIME", requires = "consumer", conflicts_with = "follow", value_parser = args::duration_ms)]
    wait: Option<u64>,
    /// With -f: also the output of the processes as it comes
    #[arg(long, requires = "follow")]
    output: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let no_types = args.types.is_empty();
    // A task or a process that is named is wanted, also if another session owns it.
    let is_named = args.session.is_none() && (args.task.is_some() || args.id.is_some());
    let session_key = if is_named { None } else { cx.session_or_agents(args.session) };
    let filter = Filter {
        types: (!args.types.is_empty()).then_some(args.types),
        session_key,
        task_id: args.task,
        id: args.id,
        without_closed: !cx.json && args.consumer.is_none() && no_types,
    };
    match args.consumer {
        Some(name) => {
            let until = match (args.follow, args.wait) {
                (true, _) => consumer::Until::Stopped,
                (false, wait) => consumer::Until::CaughtUp { wait_ms: wait.unwrap_or(0) },
            };
            let session = carrier::session(&name, &filter, args.lines).filter(|_| !cx.json);
            let from = args.from.unwrap_or(consumer::START);
            let options = consumer::ConsumerOptions { name, filter, until, limit: args.lines, from };
            match session {
                Some(session) => carrier::run(options, &session, cx),
                None => consumer::run(options, cx),
            }
        }
        None => {
            let limit = args.lines.or(args.after.is_none().then_some(journal::DEFAULT_EVENTS));
            let options =
                journal::JournalOptions { filter, limit, after: args.after, follow: args.follow, output: args.output };
            journal::run(options, cx)
        }
    }
}

/// The events that are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Filter {
    types: Option<Vec<EventType>>,
    session_key: Option<String>,
    task_id: Option<String>,
    id: Option<String>,
    /// Leave out `closed`, which adds little to `exited`.
    without_closed: bool,
}

/// The fields of an event. None is sure to have the type we know: later versions add event types with fields of their
/// own.
struct Facts(Map<String, Value>);

impl Facts {
    /// Returns None for a value that is not an event.
    fn of(event: &RawValue) -> Option<Facts> {
        serde_json::from_str(event.get()).ok().map(Facts)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.as_u64()
    }

    /// Returns its number. Only durable events have one.
    fn seq(&self) -> Option<u64> {
        self.number("seq")
    }

    /// Returns the range of events that were not pushed because we were too slow.
    fn missed(&self) -> Option<(u64, u64)> {
        let lagged = self.text("type") == Some("lagged") && self.text("of") == Some("events");
        lagged.then_some((self.number("from")?, self.number("to")?))
    }
}

impl Filter {
    fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// Reports whether an event is not shown although the daemon sends it.
    fn is_left_out(&self, facts: &Facts) -> bool {
        self.without_closed && facts.text("type") == Some(EventType::Closed.name())
    }

    /// Applies the filter as the daemon would, to events that were requested without it. The id is a full
    /// one here.
    fn wants(&self, facts: &Facts) -> bool {
        let same =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        let kind = |types: &Vec<EventType>| types.iter().any(|kind| facts.text("type") == Some(kind.name()));
        !self.is_left_out(facts)
            && self.types.as_ref().is_none_or(kind)
            && same(&self.id, facts.text("id"))
            && same(&self.session_key, facts.text("session_key"))
            && same(&self.task_id, facts.text("task_id"))
    }
}

/// Prints events completely: as they came, or as lines for a person.
fn print<'e>(
    events: impl Iterator<Item = &'e RawValue>,
    who: &mut render::event::SubjectColumn,
    cx: &mut Context<'_>,
) -> Result<(), CliError> {
    let style = cx.console.style;
    let all: Vec<(&RawValue, Option<Facts>)> = events.map(|event| (event, Facts::of(event))).collect();
    all.iter().filter_map(|(_, facts)| facts.as_ref()).for_each(|facts| who.widen(&facts.0, style));
    let mut text = String::new();
    for (event, facts) in all {
        match (cx.json, facts) {
            (false, Some(facts)) => {
                text.push_str(&render::event::event(&facts.0, &local_time(&facts), *who, style));
            }
            // A value that is not an object is printed as it came.
            (true, _) | (false, None) => {
                text.push_str(event.get());
                text.push('\n');
            }
        }
    }
    if text.is_empty() { Ok(()) } else { cx.console.print(&text) }
}

/// Returns the local time of day of an event, or nothing.
fn local_time(event: &Facts) -> String {
    let at = event.text("at").and_then(time::unix_ms).and_then(sys::local_time_of_day);
    at.map(|(hour, minute, second)| format!("{hour:02}:{minute:02}:{second:02}")).unwrap_or_default()
}
