//! Events for a named consumer: pulled, printed, and only then acknowledged.

use super::{Facts, Filter, print};
use crate::blocking::parse;
use crate::cmd::Context;
use crate::error::{CliError, DONE, TIMED_OUT};
use crate::long_call::WhileWaiting;
use crate::render::event::SubjectColumn;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, ConsumerStart};
use toold_proto::results::EventsNextResult;

/// The time that one pull waits with `-f`. Only a bound: it answers on the first event.
pub const PULL_WAIT_MS: u64 = 30_000;
/// The number of events in one pull. They come again if we are killed before all of them are printed, so it is
/// small.
const PULL_LIMIT: u64 = 100;

/// The first event of a consumer that the command line creates: old ones would only be noise.
pub const START: ConsumerStart = ConsumerStart::Now;

/// Creates the consumer that a call names, if it is new, so that it begins now. The call alone would begin at the oldest event.
pub fn create(name: &str, cx: &mut Context<'_>) -> Result<(), CliError> {
    // That of an agent's session must not miss what ended before: its carriers read only the events of the session.
    let from = if name.starts_with(crate::agent_events::CONSUMER_PREFIX) { ConsumerStart::Oldest } else { START };
    let params = params::EventsNextParams { consumer: name.into(), limit: Some(1), from, ..Default::default() };
    cx.connection.call_raw_with_retry::<api::EventsNext>(|_| params.clone()).map(drop)
}

pub struct ConsumerOptions {
    pub name: String,
    pub filter: Filter,
    pub until: Until,
    /// The largest number in all.
    pub limit: Option<u64>,
    /// The first event, if the consumer is new.
    pub from: ConsumerStart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until the events of now are printed, after waiting this long for the first.
    CaughtUp { wait_ms: u64 },
    /// Until a signal ends us.
    Stopped,
}

pub fn run(options: ConsumerOptions, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (mut printed, mut who) = (0, SubjectColumn::default());
    // Events newer than the first pull do not count as "now" any more: without this limit it might never end.
    let mut newest = None;
    loop {
        let left = options.limit.map_or(PULL_LIMIT, |limit| limit.saturating_sub(printed).min(PULL_LIMIT));
        if left == 0 {
            return Ok(DONE);
        }
        let wait_ms = match options.until {
            Until::Stopped => PULL_WAIT_MS,
            Until::CaughtUp { wait_ms } if printed == 0 => wait_ms,
            Until::CaughtUp { .. } => 0,
        };
        let pulled = pull(&options, left, wait_ms, cx)?;
        report_losses(&pulled, cx);
        print(pulled.events.iter().map(|event| &*event.0), &mut who, cx)?;
        printed += pulled.events.len() as u64;
        let done = acknowledge(&options.name, &pulled, cx)?;
        let newest = *newest.get_or_insert(pulled.last);
        match (options.until, done) {
            (Until::Stopped, _) => {}
            (Until::CaughtUp { wait_ms }, None) if printed == 0 && wait_ms > 0 => return Ok(TIMED_OUT),
            (Until::CaughtUp { .. }, None) => return Ok(DONE),
            (Until::CaughtUp { .. }, Some(seq)) if seq >= newest => return Ok(DONE),
            (Until::CaughtUp { .. }, Some(_)) => {}
        }
    }
}

pub fn pull(
    options: &ConsumerOptions,
    limit: u64,
    wait_ms: u64,
    cx: &mut Context<'_>,
) -> Result<EventsNextResult, CliError> {
    let Filter { types, session_key, task_id, id, .. } = options.filter.clone();
    let consumer = options.name.clone();
    let params = params::EventsNextParams {
        consumer,
        types,
        session_key,
        task_id,
        id,
        limit: Some(limit),
        wait_ms,
        from: options.from,
    };
    let time = Duration::from_millis(wait_ms);
    let raw = cx.call_long::<api::EventsNext>(|_| params.clone(), time, &mut WhileWaiting::ExitOnHangup)?;
    Ok(parse::<api::EventsNext>(&raw)?)
}

/// Acknowledges what was printed. Returns the new position; None if nothing was printed.
fn acknowledge(consumer: &str, pulled: &EventsNextResult, cx: &mut Context<'_>) -> Result<Option<u64>, CliError> {
    let numbers = pulled.events.iter().filter_map(|event| Facts::of(&event.0)?.seq());
    // Without an event, the position itself: the report of its damage is acknowledged with it.
    let seq = numbers.max().or_else(|| pulled.damaged.is_some().then_some(pulled.position));
    let Some(seq) = seq else { return Ok(None) };
    cx.connection.call_with_retry::<api::EventsAck>(&params::EventsAckParams { consumer: consumer.to_owned(), seq })?;
    Ok(Some(seq))
}

/// Reports the events that the consumer will never see, also beside a stream of JSON.
fn report_losses(pulled: &EventsNextResult, cx: &mut Context<'_>) {
    if let Some(was) = &pulled.forgotten {
        let name = crate::render::text::escape_control(&pulled.consumer);
        let expired = "expired because it was not used; it starts again at the oldest stored event";
        cx.console.message(&format!("{name} was at event {} and {expired}", was.position));
    }
    if pulled.damaged.is_some() {
        let name = crate::render::text::escape_control(&pulled.consumer);
        let position = pulled.position;
        cx.console
            .message(&format!("the stored position of {name} was damaged; events after {position} may come again"));
    }
    if let Some(missing) = pulled.missing {
        cx.console.message(&format!("events {} to {} are no longer stored", missing.from, missing.to));
    }
}
