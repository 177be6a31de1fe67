//! Events for a named consumer: pulled, printed, and only then acknowledged.

use super::{Facts, Filter, print};
use crate::blocking::parse;
use crate::cmd::Context;
use crate::error::{CliError, DONE, TIMED_OUT};
use crate::long_call::WhileWaiting;
use crate::render::event::SubjectColumn;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::EventsNext;

/// How long one pull waits for news with `-f`. Only a bound: it answers on the first event.
const WAIT_MS: u64 = 30_000;
/// Events pulled at once. They come again if we are killed before all of them are printed, so not
/// too many.
const BATCH: u64 = 100;

pub struct Plan {
    pub name: String,
    pub filter: Filter,
    pub until: Until,
    /// At most so many in all.
    pub most: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// What is there is told, after so long a wait for the first of it.
    Told { wait_ms: u64 },
    /// Somebody stops us.
    Stopped,
}

pub fn run(plan: Plan, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (mut printed, mut who) = (0, SubjectColumn::default());
    // What is newer than our first look is not "now" any more: without this we might never end.
    let mut newest = None;
    loop {
        let left = plan.most.map_or(BATCH, |most| most.saturating_sub(printed).min(BATCH));
        if left == 0 {
            return Ok(DONE);
        }
        let wait_ms = match plan.until {
            Until::Stopped => WAIT_MS,
            Until::Told { wait_ms } if printed == 0 => wait_ms,
            Until::Told { .. } => 0,
        };
        let pulled = pull(&plan, left, wait_ms, cx)?;
        say_losses(&pulled, cx);
        print(pulled.events.iter().map(|event| &*event.0), &mut who, cx)?;
        printed += pulled.events.len() as u64;
        let done = acknowledge(&plan.name, &pulled, cx)?;
        let newest = *newest.get_or_insert(pulled.last);
        match (plan.until, done) {
            (Until::Stopped, _) => {}
            (Until::Told { wait_ms }, None) if printed == 0 && wait_ms > 0 => return Ok(TIMED_OUT),
            (Until::Told { .. }, None) => return Ok(DONE),
            (Until::Told { .. }, Some(seq)) if seq >= newest => return Ok(DONE),
            (Until::Told { .. }, Some(_)) => {}
        }
    }
}

fn pull(plan: &Plan, limit: u64, wait_ms: u64, cx: &mut Context<'_>) -> Result<EventsNext, CliError> {
    let Filter { types, session_key, task_id, id } = plan.filter.clone();
    let consumer = plan.name.clone();
    let params = params::EventsNext {
        consumer,
        types,
        session_key,
        task_id,
        id,
        limit: Some(limit),
        wait_ms,
        from: params::ConsumerStart::default(),
    };
    let time = Duration::from_millis(wait_ms);
    let raw = cx.call_long::<api::EventsNext>(|_| params.clone(), time, &mut WhileWaiting::ExitOnHangup)?;
    Ok(parse::<api::EventsNext>(&raw)?)
}

/// Moves the consumer behind what was printed: where it is now. None when nothing was.
fn acknowledge(consumer: &str, pulled: &EventsNext, cx: &mut Context<'_>) -> Result<Option<u64>, CliError> {
    let numbers = pulled.events.iter().filter_map(|event| Facts::of(&event.0)?.seq());
    let Some(seq) = numbers.max() else { return Ok(None) };
    cx.connection.call_with_retry::<api::EventsAck>(&params::EventsAck { consumer: consumer.to_owned(), seq })?;
    Ok(Some(seq))
}

/// What the consumer will never see is told in any case, to a person and beside a stream of JSON.
fn say_losses(pulled: &EventsNext, cx: &mut Context<'_>) {
    if let Some(was) = &pulled.forgotten {
        let name = crate::render::text::escape_control(&pulled.consumer);
        let words = "was not used for long and forgotten; it begins with the oldest event that is kept";
        cx.console.message(&format!("{name} was at event {}, {words}", was.position));
    }
    if let Some(missing) = pulled.missing {
        cx.console.message(&format!("events {} to {} are not kept any more", missing.from, missing.to));
    }
}
