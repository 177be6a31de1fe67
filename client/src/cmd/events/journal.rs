//! The last events of the journal, and with `-f` new ones as they are pushed.
//!
//! After a lost connection `-f` continues behind the last event it knows, so no event is lost and none comes
//! twice.

use super::{Facts, Filter, print};
use crate::blocking::{CallError, Push, parse};
use crate::cmd::Context;
use crate::error::{CliError, DONE};
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::render::event::SubjectColumn;
use crate::sys::Interest;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use toold_proto::api::{self, Method};
use toold_proto::id::ProcId;
use toold_proto::params;
use toold_proto::results::Journal;

/// The number of events that are shown without `-n`.
pub const DEFAULT_EVENTS: u64 = 20;
/// With a filter, the number of events that are searched first, and the factor of growth when too few match.
const FIRST_WINDOW: u64 = 1000;
const WINDOW_GROWTH: u64 = 8;

pub struct JournalOptions {
    pub filter: Filter,
    /// The largest number of stored events. None: all.
    pub limit: Option<u64>,
    pub after: Option<u64>,
    pub follow: bool,
    pub output: bool,
}

pub fn run(options: JournalOptions, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let journal = journal(cx)?;
    let mut reader = Reader { cx, events: EventLoop::new(), subscription: None, who: SubjectColumn::default() };
    let position = match (options.follow, options.after, options.limit) {
        // All stored events after it and all new ones are one replay.
        (true, Some(after), None) => after,
        (_, after, limit) => {
            let kept = reader.kept(&options.filter, after.unwrap_or(0), limit, &journal)?;
            print(kept.iter().map(|event| &**event), &mut reader.who, reader.cx)?;
            journal.last.max(after.unwrap_or(0))
        }
    };
    if options.follow { follow(&options, position, &mut reader) } else { Ok(DONE) }
}

fn journal(cx: &mut Context<'_>) -> Result<Journal, CliError> {
    Ok(cx.connection.call_with_retry::<api::DaemonInfo>(&params::Empty::default())?.events)
}

/// Prints what is pushed, until a signal ends us.
fn follow(options: &JournalOptions, mut position: u64, reader: &mut Reader<'_, '_>) -> Result<u8, CliError> {
    // A gap that comes again after a new subscription cannot be filled.
    let mut tried = None;
    reader.subscribe(&options.filter, position, options.output)?;
    loop {
        let event = match reader.next()? {
            Ok(event) => event,
            Err(lost) => {
                position = reader.resume(lost, position)?;
                reader.subscribe(&options.filter, position, options.output)?;
                continue;
            }
        };
        let facts = Facts::of(&event);
        if let Some((from, to)) = facts.as_ref().and_then(Facts::missed)
            && tried.replace(from) != Some(from)
            && to > position
        {
            reader.unsubscribe()?;
            reader.subscribe(&options.filter, position, options.output)?;
            continue;
        }
        let is_left_out = facts.as_ref().is_some_and(|facts| options.filter.is_left_out(facts));
        let seq = facts.and_then(|facts| facts.missed().map(|(_, to)| to).or(facts.seq()));
        // A replay brings events again that were printed before. Output has no number, and comes once.
        if seq.is_none_or(|seq| seq > position) {
            if !is_left_out {
                print(std::iter::once(&*event), &mut reader.who, reader.cx)?;
            }
            position = seq.unwrap_or(position);
        }
    }
}

/// A connection with at most one subscription.
struct Reader<'a, 'c> {
    cx: &'a mut Context<'c>,
    /// The one call that may be pending is the subscription.
    events: EventLoop<()>,
    subscription: Option<Subscription>,
    /// The column of the events' subjects.
    who: SubjectColumn,
}

/// A subscription. Its number is known once the call is answered.
struct Subscription {
    number: Option<u64>,
    /// Pushes that came before the answer.
    early: VecDeque<Push>,
}

/// The next event, or the end of the connection.
type Next = Result<Box<RawValue>, CallError>;

impl Reader<'_, '_> {
    /// Returns the last events that match, up to the journal's end.
    fn kept(
        &mut self,
        filter: &Filter,
        after: u64,
        limit: Option<u64>,
        journal: &Journal,
    ) -> Result<VecDeque<Box<RawValue>>, CliError> {
        let filter = self.resolved(filter)?;
        let first = after.max(journal.oldest.saturating_sub(1));
        let mut window = match limit {
            Some(limit) if filter.is_empty() => limit,
            Some(_) => FIRST_WINDOW,
            None => u64::MAX,
        };
        loop {
            let begin = first.max(journal.last.saturating_sub(window));
            let kept = self.replay(&filter, begin, journal.last, limit)?;
            if begin == first || limit.is_some_and(|limit| kept.len() as u64 >= limit) || filter.is_empty() {
                return Ok(kept);
            }
            window = window.saturating_mul(WINDOW_GROWTH);
        }
    }

    /// Returns the filter with a full id: the daemon resolves a name or the start of an id.
    fn resolved(&mut self, filter: &Filter) -> Result<Filter, CliError> {
        let id = match &filter.id {
            Some(id) if id.parse::<ProcId>().is_err() => {
                let poll = params::PollParams { id: id.clone(), ..Default::default() };
                Some(self.cx.connection.call_with_retry::<api::Poll>(&poll)?.process.id.to_string())
            }
            whole => whole.clone(),
        };
        Ok(Filter { id, ..filter.clone() })
    }

    /// Returns the events after `begin` up to `last` that match, and of these the last `most`. The subscription has no
    /// filter: only then is event `last` sure to come, which marks the end.
    fn replay(
        &mut self,
        filter: &Filter,
        begin: u64,
        last: u64,
        limit: Option<u64>,
    ) -> Result<VecDeque<Box<RawValue>>, CliError> {
        let mut kept = VecDeque::new();
        let mut reached = begin;
        if begin >= last || limit == Some(0) {
            return Ok(kept);
        }
        self.subscribe(&Filter::default(), begin, false)?;
        while reached < last {
            let event = match self.next_within(self.cx.connection.timeout(Duration::ZERO))? {
                Ok(event) => event,
                Err(lost) => {
                    self.cx.connection.recover(lost)?;
                    self.subscribe(&Filter::default(), reached, false)?;
                    continue;
                }
            };
            let Some(facts) = Facts::of(&event) else { continue };
            let missed = facts.missed();
            let Some(seq) = missed.map(|(_, to)| to).or(facts.seq()).filter(|seq| *seq > reached) else { continue };
            reached = seq;
            if seq <= last && (missed.is_some() || filter.wants(&facts)) {
                kept.push_back(event);
                if limit.is_some_and(|limit| kept.len() as u64 > limit) {
                    kept.pop_front();
                }
            }
        }
        self.unsubscribe()?;
        Ok(kept)
    }

    fn subscribe(&mut self, filter: &Filter, after: u64, output: bool) -> Result<(), CliError> {
        let Filter { types, session_key, task_id, id, .. } = filter.clone();
        let params = params::EventsSubscribeParams {
            types,
            session_key,
            task_id,
            id,
            after: Some(after),
            output,
            ansi: params::Ansi::Strip,
        };
        self.subscription = Some(Subscription { number: None, early: VecDeque::new() });
        self.events.cancel(());
        self.events.send::<api::EventsSubscribe>(&mut self.cx.connection, (), &params, Duration::ZERO)
    }

    /// Ends the subscription. Its answer and pushes that are still under way are skipped.
    fn unsubscribe(&mut self) -> Result<(), CliError> {
        if let Some(Subscription { number: Some(subscription), .. }) = self.subscription.take() {
            self.cx.connection.send(api::EventsUnsubscribe::NAME, &params::EventsUnsubscribeParams { subscription })?;
        }
        Ok(())
    }

    /// Returns the next event, without a timeout.
    fn next(&mut self) -> Result<Next, CliError> {
        self.next_within(Duration::MAX)
    }

    /// Returns the next event. The answer to a subscription has the daemon's usual timeout.
    fn next_within(&mut self, time: Duration) -> Result<Next, CliError> {
        let begin = Instant::now();
        loop {
            if let Some(event) = self.arrived()? {
                return Ok(Ok(event));
            }
            let stdout = std::io::stdout();
            let output = self.cx.console.is_real.then(|| (stdout.as_fd(), Interest::HungUp));
            let sources = Sources { output, ..Default::default() };
            let wake = self.events.wait(&mut self.cx.connection, sources, begin.checked_add(time))?;
            if wake.output {
                return Err(CliError::OutputClosed);
            }
            if let Some(notice) = &wake.notice {
                self.cx.console.message(notice);
            }
            if wake.is_timeout() {
                return Err(self.cx.connection.timed_out(time));
            }
            if let Some(lost) = wake.lost {
                return Ok(Err(lost));
            }
        }
    }

    /// Returns the next event that has already been read.
    fn arrived(&mut self) -> Result<Option<Box<RawValue>>, CliError> {
        loop {
            let Some(subscription) = &mut self.subscription else { return Ok(None) };
            let push = match subscription.number {
                Some(_) => subscription.early.pop_front(),
                None => None,
            };
            let push = match push {
                Some(push) => push,
                None => match self.events.next(&mut self.cx.connection)? {
                    None => return Ok(None),
                    Some(Incoming::Push(push)) if subscription.number.is_some() => push,
                    Some(Incoming::Push(push)) => {
                        subscription.early.push_back(push);
                        continue;
                    }
                    Some(Incoming::Answer((), outcome)) => {
                        let raw = outcome.map_err(CallError::Rpc)?;
                        subscription.number = Some(parse::<api::EventsSubscribe>(&raw)?);
                        continue;
                    }
                },
            };
            if Some(push.subscription) == subscription.number {
                let ended =
                    |why: Box<RawValue>| CallError::Protocol(format!("the daemon ended the subscription: {why}"));
                return Ok(Some(push.outcome.map_err(ended)?));
            }
        }
    }

    /// Reconnects after a lost connection. Returns the position to continue from.
    fn resume(&mut self, lost: CallError, position: u64) -> Result<u64, CliError> {
        self.subscription = None;
        self.cx.connection.recover(lost)?;
        let journal = journal(self.cx)?;
        let console = &mut self.cx.console;
        if journal.last < position {
            console.message(&format!("the journal starts again from the beginning; it was at event {position} before"));
            return Ok(0);
        }
        if journal.oldest > position + 1 {
            console.message(&format!("events {} to {} are no longer stored", position + 1, journal.oldest - 1));
        } else if console.err_style.terminal() {
            console.message(&format!("reconnected to the daemon; continuing after event {position}"));
        }
        Ok(position)
    }
}
