//! What a process can be waited for, and the waiting. `wait` and `exec` with `ready` wait here. Only a port is looked
//! for again and again, as the kernel has no event for it, and only while somebody waits.

use crate::clock::wall_ms;
use crate::proc::search::{self, Search};
use crate::proc::state::{Phase, State};
use crate::proc::{Proc, listening_port};
use crate::spec::InvalidParam;
use crate::watch::Patterns;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::{Instant, sleep, timeout};
use toold_proto::params;
use toold_proto::results::{Listener, Ready};
use toold_proto::until::Until;

/// How long an `exec` waits for readiness when nobody says.
const DEFAULT_READY_TIMEOUT_MS: i64 = 60_000;
/// How long a program may live on after its output before a wait for the close does without its exit.
const EXIT_AFTER_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Between two looks for a listener: at first, and after every output.
const MIN_PORT_INTERVAL: Duration = Duration::from_millis(5);
/// Between two looks for a listener that does not come.
const MAX_PORT_INTERVAL: Duration = Duration::from_millis(100);
/// The time of a file may be as old as the kernel's last tick.
const FILE_TIME_TICK_MS: u64 = 10;

/// What is waited for, checked.
#[derive(Clone)]
pub enum Condition {
    Exit,
    Closed,
    Match(Arc<Patterns>),
    Port(u16),
    Quiet(u64),
}

impl Condition {
    /// `param` is what the caller named it.
    pub fn new(param: &str, until: &Until) -> Result<Condition, InvalidParam> {
        match until {
            Until::Exit => Ok(Condition::Exit),
            Until::Closed => Ok(Condition::Closed),
            Until::Match(pattern) => Ok(Condition::Match(search::compile(&format!("{param}.match"), pattern)?)),
            Until::Port(0) => Err(InvalidParam::new(format!("{param}.port"), "must be 1 to 65535, not 0")),
            Until::Port(port) => Ok(Condition::Port(*port)),
            Until::Quiet(0) => Err(InvalidParam::too_small(format!("{param}.quiet_ms"), 1, 0)),
            Until::Quiet(ms) => Ok(Condition::Quiet(*ms)),
        }
    }
}

/// How the waiting ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reached {
    /// The process ended, or closed where that was waited for.
    Exit,
    /// This line matched.
    Match(String),
    Port(Listener),
    Quiet,
}

/// What an `exec` waits for before it answers, checked.
pub struct Readiness {
    condition: Condition,
    timeout: Duration,
}

impl Readiness {
    /// None: the call does not ask for it.
    pub fn from_call(call: &params::Exec, max_wait_ms: u64) -> Result<Option<Readiness>, InvalidParam> {
        let asked = call.ready_timeout_ms.unwrap_or(DEFAULT_READY_TIMEOUT_MS);
        if asked <= 0 {
            return Err(InvalidParam::too_small("ready_timeout_ms", 1, asked));
        }
        let condition = match &call.ready {
            None if call.ready_timeout_ms.is_some() => {
                return Err(InvalidParam::new("ready_timeout_ms", "is for `ready`, which is not given"));
            }
            None => return Ok(None),
            Some(Until::Exit | Until::Closed) => {
                return Err(InvalidParam::new(
                    "ready",
                    "must be {match}, {port} or {quiet_ms}; yield_ms waits for an exit",
                ));
            }
            Some(until @ (Until::Match(_) | Until::Port(_) | Until::Quiet(_))) => Condition::new("ready", until)?,
        };
        let yielded = if call.yield_ms > 0 { call.yield_ms } else { u64::MAX };
        let timeout = Duration::from_millis((asked as u64).min(yielded).min(max_wait_ms));
        Ok(Some(Readiness { condition, timeout }))
    }

    pub async fn wait(self, proc: &Arc<Proc>) -> io::Result<Ready> {
        match timeout(self.timeout, wait_for(proc.clone(), self.condition)).await {
            Err(_) => Ok(Ready::Timeout),
            Ok(end) => Ok(if end? == Reached::Exit { Ready::Exited } else { Ready::Ready }),
        }
    }
}

/// Waits for one process to reach its condition, or its end.
pub async fn wait_for(proc: Arc<Proc>, condition: Condition) -> io::Result<Reached> {
    match condition {
        Condition::Exit => {
            // A sender lives in the process, so this ends only with the state it waits for.
            let _ = proc.subscribe().wait_for(State::has_ended).await;
            Ok(Reached::Exit)
        }
        Condition::Closed => Ok(wait_closed(&proc).await),
        Condition::Match(patterns) => wait_match(&proc, patterns).await,
        Condition::Port(port) => Ok(wait_port(&proc, port).await),
        Condition::Quiet(ms) => Ok(wait_quiet(&proc, ms).await),
    }
}

async fn wait_closed(proc: &Proc) -> Reached {
    let mut updates = proc.subscribe();
    let _ = updates.wait_for(|state| state.closed).await;
    if !proc.published_state().has_ended() {
        // Nearly always the output ends because the program does, and the exit is on its way.
        let _ = timeout(EXIT_AFTER_CLOSE_TIMEOUT, updates.wait_for(State::has_ended)).await;
    }
    Reached::Exit
}

async fn wait_match(proc: &Proc, patterns: Arc<Patterns>) -> io::Result<Reached> {
    let mut updates = proc.subscribe();
    let mut search = Search::new(patterns);
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        if let Some(line) = search.scan_to(proc, &state)? {
            return Ok(Reached::Match(line));
        }
        if state.has_ended() {
            return Ok(search.last_line().map_or(Reached::Exit, Reached::Match));
        }
        proc.notify_past(state.progress.counts.end);
        if updates.changed().await.is_err() {
            return Ok(Reached::Exit);
        }
    }
}

async fn wait_port(proc: &Proc, port: u16) -> Reached {
    let mut updates = proc.subscribe();
    let mut pause = MIN_PORT_INTERVAL;
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        let looked = Instant::now();
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
                // Who prints is busy, and may listen next. A flood is not followed by a flood of looks.
                pause = MIN_PORT_INTERVAL;
                let _ = timeout(MIN_PORT_INTERVAL.saturating_sub(looked.elapsed()), updates.wait_for(State::has_ended)).await;
            }
        }
    }
}

/// Looks at /proc, which may take a while for a large tree, beside the threads that others wait for.
async fn find_listener(shim: i32, port: u16) -> Option<Listener> {
    tokio::task::spawn_blocking(move || listening_port::listener(shim, port)).await.ok().flatten()
}

/// One timer, for when it would have been quiet long enough. What was printed meanwhile sets it anew, and only then:
/// a flood costs no more than silence.
async fn wait_quiet(proc: &Proc, ms: u64) -> Reached {
    let mut updates = proc.subscribe();
    let _ = updates.wait_for(|state| state.phase != Phase::Starting).await;
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

/// When the process printed last, or else when it was started, in milliseconds since 1970.
fn last_output_ms(proc: &Proc, state: &State) -> u64 {
    let counts = state.progress.counts;
    if counts.end == 0 {
        return proc.spec.created_ms;
    }
    // Bytes that the disk refused are in no log, but they are counted in the record.
    let prefix = if counts.unstored > 0 { "record" } else { "log" };
    let entries = std::fs::read_dir(&proc.dir).into_iter().flatten().flatten();
    let files = entries.filter(|e| e.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    let times = files.filter_map(|e| e.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let newest = times.map(|time| time.as_millis() as u64 + FILE_TIME_TICK_MS).max();
    newest.unwrap_or(proc.spec.created_ms)
}
