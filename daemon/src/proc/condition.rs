//! Conditions that a caller can wait for: exit, close, a match in the output, a listening port, silence, a wait for input. Only a port is
//! polled, because the kernel has no event for it, and only while a caller waits.

use crate::clock::wall_ms;
use crate::disk::on_disk;
use crate::proc::output::{OutputError, unreadable};
use crate::proc::search::{self, Search, SearchError};
use crate::proc::state::{Phase, State};
use crate::proc::{Proc, listening_port};
use crate::spec::InvalidParam;
use crate::sys;
use crate::watch::Patterns;
use futures_util::future::{FutureExt, join_all, select_all};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::{Instant, sleep, timeout};
use toold_proto::params::{self, WaitMode};
use toold_proto::results::{Listener, Ready};
use toold_proto::until::Until;

/// The timeout of `ready` if the call has none.
const DEFAULT_READY_TIMEOUT_MS: i64 = 60_000;
/// The wait for an exit after the output is closed. A program that runs on longer counts as closed without it.
const EXIT_AFTER_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// The time between two searches for a listener: at first, and after every output.
const MIN_PORT_INTERVAL: Duration = Duration::from_millis(5);
/// The longest time between two searches for a listener.
const MAX_PORT_INTERVAL: Duration = Duration::from_millis(100);
/// The granularity of file times: a time may be as old as the kernel's last tick.
const FILE_TIME_TICK_MS: u64 = 10;

/// A checked condition.
#[derive(Clone)]
pub enum Condition {
    Exit,
    Closed,
    Match(Arc<Patterns>),
    Port(u16),
    /// Milliseconds without output.
    Quiet(u64),
    Input,
}

impl Condition {
    /// Checks a condition. Errors name the parameter as `param`.
    pub fn new(param: &str, until: &Until) -> Result<Condition, InvalidParam> {
        match until {
            Until::Exit => Ok(Condition::Exit),
            Until::Closed => Ok(Condition::Closed),
            Until::Match(pattern) => Ok(Condition::Match(search::compile(&format!("{param}.match"), pattern)?)),
            Until::Port(0) => Err(InvalidParam::new(format!("{param}.port"), "must be 1 to 65535, not 0")),
            Until::Port(port) => Ok(Condition::Port(*port)),
            Until::Quiet(0) => Err(InvalidParam::too_small(format!("{param}.quiet_ms"), 1, 0)),
            Until::Quiet(ms) => Ok(Condition::Quiet(*ms)),
            Until::Input => Ok(Condition::Input),
        }
    }
}

/// The way in which a wait ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reached {
    /// The process exited before the condition was met, or the condition was an exit or a close.
    Exit,
    /// This line matched.
    Match(String),
    Port(Listener),
    Quiet,
    /// The program waits for input.
    Input,
}

/// The condition that an `exec` waits for before it answers, with its timeout.
pub struct Readiness {
    condition: Condition,
    timeout: Duration,
}

impl Readiness {
    /// Checks `ready` and `ready_timeout_ms`. None: the call has no `ready`.
    pub fn from_call(call: &params::ExecParams, max_wait_ms: u64) -> Result<Option<Readiness>, InvalidParam> {
        let timeout_ms = call.ready_timeout_ms.unwrap_or(DEFAULT_READY_TIMEOUT_MS);
        if timeout_ms <= 0 {
            return Err(InvalidParam::too_small("ready_timeout_ms", 1, timeout_ms));
        }
        let condition = match &call.ready {
            None if call.ready_timeout_ms.is_some() => {
                return Err(InvalidParam::new("ready_timeout_ms", "is for `ready`, which is not given"));
            }
            None => return Ok(None),
            Some(Until::Exit | Until::Closed | Until::Input) => {
                return Err(InvalidParam::new(
                    "ready",
                    "must be {match}, {port} or {quiet_ms}; yield_ms waits for an exit",
                ));
            }
            Some(until @ (Until::Match(_) | Until::Port(_) | Until::Quiet(_))) => Condition::new("ready", until)?,
        };
        let yield_ms = if call.yield_ms > 0 { call.yield_ms } else { u64::MAX };
        let timeout = Duration::from_millis((timeout_ms as u64).min(yield_ms).min(max_wait_ms));
        Ok(Some(Readiness { condition, timeout }))
    }

    pub async fn wait(self, proc: &Arc<Proc>) -> Result<Ready, OutputError> {
        match timeout(self.timeout, wait_for(proc.clone(), self.condition)).await {
            Err(_) => Ok(Ready::Timeout),
            Ok(reached) => Ok(if reached? == Reached::Exit { Ready::Exited } else { Ready::Ready }),
        }
    }
}

/// Waits until all processes, or the first one, meet the condition or exit; with `or_input` also until one of them waits for
/// input. Returns one entry per process, `Exit` for those that were not waited for to the end. None: timed out.
pub async fn wait_for_many(
    procs: &[Arc<Proc>],
    condition: &Condition,
    mode: WaitMode,
    or_input: bool,
    max: Duration,
) -> Result<Option<Vec<Reached>>, OutputError> {
    let waits = procs.iter().map(|proc| wait_for(proc.clone(), condition.clone()).boxed());
    let wait = async {
        match mode {
            WaitMode::All => join_all(waits).await.into_iter().collect(),
            WaitMode::Any => {
                let (first, at, _) = select_all(waits).await;
                let mut reached = vec![Reached::Exit; procs.len()];
                reached[at] = first?;
                Ok(reached)
            }
        }
    };
    let wait = async {
        tokio::select! {
            biased;
            reached = wait => reached,
            at = first_to_ask(procs), if or_input => {
                let mut reached = vec![Reached::Exit; procs.len()];
                reached[at] = Reached::Input;
                Ok(reached)
            }
        }
    };
    if procs.iter().all(|proc| !proc.published_state().asking) {
        return timeout(max, wait).await.ok().transpose();
    }
    tokio::select! {
        biased;
        reached = wait => reached.map(Some),
        () = expire(procs, max) => Ok(None),
    }
}

/// Returns the number of the first process that waits for input. Never returns if all of them end.
async fn first_to_ask(procs: &[Arc<Proc>]) -> usize {
    let waits = procs.iter().map(|proc| {
        async {
            if !proc.wait_input().await {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    });
    select_all(waits).await.1
}

/// Returns when this time has passed, without the time in which every process that has not ended waits for an approval.
async fn expire(procs: &[Arc<Proc>], mut left: Duration) {
    let part = |state: &State| (state.has_ended(), state.asking);
    loop {
        let mut counts = false;
        let changes = procs.iter().map(|proc| {
            let before = part(&proc.published_state());
            counts |= before == (false, false);
            let proc = proc.clone();
            async move { drop(proc.subscribe().wait_for(|state| part(state) != before).await) }.boxed()
        });
        let (changed, began) = (select_all(changes.collect::<Vec<_>>()), Instant::now());
        if !counts {
            changed.await;
        } else if timeout(left, changed).await.is_err() {
            return;
        } else {
            left = left.saturating_sub(began.elapsed());
        }
    }
}

/// Waits until one process meets the condition, or exits.
pub async fn wait_for(proc: Arc<Proc>, condition: Condition) -> Result<Reached, OutputError> {
    match condition {
        Condition::Exit => {
            // The process holds a sender, so this ends only with the awaited state.
            let _ = proc.subscribe().wait_for(State::has_ended).await;
            Ok(Reached::Exit)
        }
        Condition::Closed => Ok(wait_closed(&proc).await),
        Condition::Match(patterns) => match on_disk(wait_match(&proc, patterns)).await {
            Err(SearchError::Read(e)) if !sys::is_transient(&e) => {
                // No line can match, but the process can still exit.
                proc.set_unreadable(Some(unreadable(&e)));
                let _ = proc.subscribe().wait_for(State::has_ended).await;
                Ok(Reached::Exit)
            }
            Err(SearchError::Read(e)) => Err(OutputError::of(&proc)(e)),
            Err(SearchError::TooSlow(message)) => Err(OutputError::TooSlow(message)),
            Ok(reached) => Ok(reached),
        },
        Condition::Port(port) => Ok(wait_port(&proc, port).await),
        Condition::Quiet(ms) => Ok(on_disk(wait_quiet(&proc, ms)).await),
        Condition::Input => Ok(if proc.wait_input().await { Reached::Input } else { Reached::Exit }),
    }
}

async fn wait_closed(proc: &Proc) -> Reached {
    let mut updates = proc.subscribe();
    let _ = updates.wait_for(|state| state.closed).await;
    if !proc.published_state().has_ended() {
        // Nearly always the output ends because the program does, and the exit follows.
        let _ = timeout(EXIT_AFTER_CLOSE_TIMEOUT, updates.wait_for(State::has_ended)).await;
    }
    Reached::Exit
}

async fn wait_match(proc: &Arc<Proc>, patterns: Arc<Patterns>) -> Result<Reached, SearchError> {
    let mut updates = proc.subscribe();
    let mut search = Search::new(patterns, proc.sink.searches.meter());
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        let found;
        (search, found) = search.run(proc, &state).await?;
        if let Some(line) = found {
            return Ok(Reached::Match(line));
        }
        if state.has_ended() {
            return Ok(Reached::Exit);
        }
        proc.notify_past(state.progress.counts.end);
        if updates.changed().await.is_err() {
            return Ok(Reached::Exit);
        }
    }
}

async fn wait_port(proc: &Proc, port: u16) -> Reached {
    let mut updates = proc.subscribe();
    // Without a shim there is nothing to search.
    let _ = updates.wait_for(|state| state.phase != Phase::Pending).await;
    let mut pause = MIN_PORT_INTERVAL;
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        let searched = Instant::now();
        if let Some(listener) = find_listener(state.shim_pid, port).await {
            return Reached::Port(listener);
        }
        if state.has_ended() {
            return Reached::Exit;
        }
        proc.notify_past(state.progress.counts.end);
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(MAX_PORT_INTERVAL),
            changed = updates.changed() => {
                if changed.is_err() {
                    return Reached::Exit;
                }
                // A program that prints is busy and may listen next. A flood of output does not cause a flood of searches.
                pause = MIN_PORT_INTERVAL;
                let _ = timeout(MIN_PORT_INTERVAL.saturating_sub(searched.elapsed()), updates.wait_for(State::has_ended)).await;
            }
        }
    }
}

/// Searches /proc on a blocking thread: it takes long for a large tree.
async fn find_listener(shim: i32, port: u16) -> Option<Listener> {
    tokio::task::spawn_blocking(move || listening_port::listener(shim, port)).await.ok().flatten()
}

/// Waits with one timer, for the moment at which the silence would have lasted. Output in the meantime is noticed only
/// then, and the timer is set again: a flood costs no more than silence.
async fn wait_quiet(proc: &Proc, ms: u64) -> Reached {
    let mut updates = proc.subscribe();
    let _ = updates.wait_for(|state| !matches!(state.phase, Phase::Pending | Phase::Starting)).await;
    loop {
        let state = proc.state();
        if state.has_ended() {
            return Reached::Exit;
        }
        let silent = wall_ms().saturating_sub(last_output_ms(proc, &state));
        let Some(left) = ms.checked_sub(silent).filter(|left| *left > 0) else { return Reached::Quiet };
        tokio::select! {
            () = sleep(Duration::from_millis(left)) => {}
            _ = updates.wait_for(State::has_ended) => {}
        }
    }
}

/// Returns the time of the last output, or else of the start, in milliseconds since 1970.
fn last_output_ms(proc: &Proc, state: &State) -> u64 {
    let counts = state.progress.counts;
    if counts.end == 0 {
        return proc.started_ms();
    }
    // Bytes that could not be written are not in the log, but they are counted in the record.
    let prefix = if counts.unstored > 0 { "record" } else { "log" };
    let entries = std::fs::read_dir(&proc.dir).into_iter().flatten().flatten();
    let files = entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    let times = files.filter_map(|e| e.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let newest = times.map(|time| time.as_millis() as u64 + FILE_TIME_TICK_MS).max();
    newest.unwrap_or(proc.started_ms())
}
