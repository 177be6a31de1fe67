//! Events for the consumer of an agent's session: what is news, a phrase a line, as `toolctl mcp` and `toolctl hook` report it. A
//! monitor of an agent runs this. What one of these carriers has reported, the others do not report again.

use super::Filter;
use super::consumer::{ConsumerOptions, Until, pull};
use crate::agent_events::{self, AGENT_EVENTS, DeliveryLock, Unseen, consumer_name};
use crate::blocking::Client;
use crate::cmd::Context;
use crate::error::{CliError, DONE, TIMED_OUT};
use crate::local_time::now_ms;
use crate::render::text::cut;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{ConsumerStart, EventsAckParams};

/// The time that another carrier may take to deliver.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// The time that the daemon may take for an answer, before the wait begins again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time before events are reported. A command or a tool that reports an end to the agent itself acknowledges it meanwhile.
const SETTLE_TIME: Duration = Duration::from_millis(700);
/// The longest line, in columns: each one becomes part of a model's context.
const MAX_LINE_WIDTH: usize = 300;

/// Returns the session whose carrier these options ask for: its consumer, without types or with some that can be news. All of its
/// news is reported then: an event that is acknowledged with others and not reported would be lost for every carrier.
pub fn session(consumer: &str, filter: &Filter, limit: Option<u64>) -> Option<String> {
    let Filter { types, session_key, task_id, id, .. } = filter;
    let session = session_key.as_ref().filter(|key| consumer_name(key) == consumer)?;
    let is_news = types.iter().flatten().all(|kind| AGENT_EVENTS.contains(kind));
    // With -f, `-n 0` means that nothing of the past is wanted, and what was reported is past.
    let is_unlimited = limit.is_none_or(|limit| limit == 0);
    (is_news && task_id.is_none() && id.is_none() && is_unlimited).then(|| session.clone())
}

/// Prints the news of the session as it comes.
pub fn run(mut options: ConsumerOptions, session: &str, cx: &mut Context<'_>) -> Result<u8, CliError> {
    options.filter.types = Some(AGENT_EVENTS.to_vec());
    // What ended before the first look is news too: the events are those of this session alone.
    options.from = ConsumerStart::Oldest;
    let mut has_printed = false;
    loop {
        let wait_ms = match options.until {
            Until::Stopped => super::consumer::PULL_WAIT_MS,
            Until::CaughtUp { wait_ms } if !has_printed => wait_ms,
            Until::CaughtUp { .. } => 0,
        };
        let is_empty = pull(&options, 1, wait_ms, cx)?.events.is_empty();
        match options.until {
            Until::CaughtUp { wait_ms } if is_empty => {
                return Ok(if has_printed || wait_ms == 0 { DONE } else { TIMED_OUT });
            }
            Until::Stopped if is_empty => {}
            Until::CaughtUp { .. } | Until::Stopped => has_printed |= deliver(session, cx)?,
        }
    }
}

/// Prints what no carrier has reported yet, then acknowledges it. Returns whether anything was printed.
fn deliver(session: &str, cx: &mut Context<'_>) -> Result<bool, CliError> {
    std::thread::sleep(SETTLE_TIME);
    let socket = cx.connection.socket().to_owned();
    // Another carrier delivers it, or the daemon restarts: the next wait finds out.
    let Some(_lock) = DeliveryLock::acquire(&socket, session, LOCK_PATIENCE) else { return Ok(false) };
    let Some(unseen) = read(&socket, session) else { return Ok(false) };
    let now = now_ms();
    let lines: String = unseen.events.iter().map(|event| cut(&event.phrase(now), MAX_LINE_WIDTH) + "\n").collect();
    if !lines.is_empty() {
        cx.console.print(&lines)?;
    }
    if let Some(seq) = unseen.last_seq {
        let params = EventsAckParams { consumer: consumer_name(session), seq };
        cx.connection.call_with_retry::<api::EventsAck>(&params)?;
    }
    Ok(!lines.is_empty())
}

fn read(socket: &std::path::Path, session: &str) -> Option<Unseen> {
    let mut client = Client::connect(socket).ok()?;
    client.set_timeout(ANSWER_TIMEOUT).ok()?;
    agent_events::pull(&mut client, session).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::event::EventType;

    #[test]
    fn only_the_consumer_of_the_session_is_a_carrier() {
        let filter = |types: &[EventType], session: &str| Filter {
            types: Some(types.to_vec()),
            session_key: Some(session.into()),
            ..Filter::default()
        };
        assert_eq!(session("agent:s", &filter(AGENT_EVENTS, "s"), None).as_deref(), Some("s"));
        let ends = [EventType::Completion];
        assert_eq!(session("agent:s", &filter(&ends, "s"), Some(0)).as_deref(), Some("s"));
        let untyped = Filter { types: None, ..filter(&[], "s") };
        assert_eq!(session("agent:s", &untyped, None).as_deref(), Some("s"));
        assert_eq!(session("agent:s", &filter(&ends, "t"), None), None);
        assert_eq!(session("me", &filter(&ends, "me"), None), None);
        assert_eq!(session("agent:s", &filter(&[EventType::Completion, EventType::Started], "s"), None), None);
        assert_eq!(session("agent:s", &filter(&ends, "s"), Some(3)), None);
    }
}
