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
const READY_TIMEOUT_MS: i64 = 60_000;
/// How long a program may live on after its output before a wait for the close does without its exit.
const EXIT_FOLLOWS: Duration = Duration::from_millis(500);
/// Between two looks for a listener: at first, and after every output.
const LOOK_SOON: Duration = Duration::from_millis(5);
/// Between two looks for a listener that does not come.
const LOOK_LATE: Duration = Duration::from_millis(100);
/// The time of a file may be as old as the kernel's last tick.
const TICK_MS: u64 = 10;

/// What is waited for, checked.
#[derive(Clone)]
pub enum Goal {
    Exit,
    Closed,
    Match(Arc<Patterns>),
    Port(u16),
    Quiet(u64),
}

impl Goal {
    /// `param` is what the caller named it.
    pub fn new(param: &str, until: &Until) -> Result<Goal, InvalidParam> {
        match until {
            Until::Exit => Ok(Goal::Exit),
            Until::Closed => Ok(Goal::Closed),
            Until::Match(pattern) => Ok(Goal::Match(search::pattern(&format!("{param}.match"), pattern)?)),
            Until::Port(0) => Err(InvalidParam::new(format!("{param}.port"), "must be 1 to 65535, not 0")),
            Until::Port(port) => Ok(Goal::Port(*port)),
            Until::Quiet(0) => Err(InvalidParam::too_small(format!("{param}.quiet_ms"), 1, 0)),
            Until::Quiet(ms) => Ok(Goal::Quiet(*ms)),
        }
    }
}

/// How the waiting ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The process ended, or closed where that was waited for.
    Over,
    /// This line matched.
    Line(String),
    Listens(Listener),
    Quiet,
}

/// What an `exec` waits for before it answers, checked.
pub struct Readiness {
    goal: Goal,
    patience: Duration,
}

impl Readiness {
    /// None: the call does not ask for it.
    pub fn of(call: &params::Exec, max_wait_ms: u64) -> Result<Option<Readiness>, InvalidParam> {
        let asked = call.ready_timeout_ms.unwrap_or(READY_TIMEOUT_MS);
        if asked <= 0 {
            return Err(InvalidParam::too_small("ready_timeout_ms", 1, asked));
        }
        let goal = match &call.ready {
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
            Some(until @ (Until::Match(_) | Until::Port(_) | Until::Quiet(_))) => Goal::new("ready", until)?,
        };
        let yielded = if call.yield_ms > 0 { call.yield_ms } else { u64::MAX };
        let patience = Duration::from_millis((asked as u64).min(yielded).min(max_wait_ms));
        Ok(Some(Readiness { goal, patience }))
    }

    pub async fn reached(self, proc: &Arc<Proc>) -> io::Result<Ready> {
        match timeout(self.patience, reached(proc.clone(), self.goal)).await {
            Err(_) => Ok(Ready::Timeout),
            Ok(end) => Ok(if end? == End::Over { Ready::Exited } else { Ready::Ready }),
        }
    }
}

/// Waits for one process to reach its goal, or its end.
pub async fn reached(proc: Arc<Proc>, goal: Goal) -> io::Result<End> {
    match goal {
        Goal::Exit => {
            // A sender lives in the process, so this ends only with the state it waits for.
            let _ = proc.subscribe().wait_for(State::has_ended).await;
            Ok(End::Over)
        }
        Goal::Closed => Ok(closed(&proc).await),
        Goal::Match(patterns) => matched(&proc, patterns).await,
        Goal::Port(port) => Ok(listens(&proc, port).await),
        Goal::Quiet(ms) => Ok(quiet(&proc, ms).await),
    }
}

async fn closed(proc: &Proc) -> End {
    let mut news = proc.subscribe();
    let _ = news.wait_for(|state| state.closed).await;
    if !proc.published_state().has_ended() {
        // Nearly always the output ends because the program does, and the exit is on its way.
        let _ = timeout(EXIT_FOLLOWS, news.wait_for(State::has_ended)).await;
    }
    End::Over
}

async fn matched(proc: &Proc, patterns: Arc<Patterns>) -> io::Result<End> {
    let mut news = proc.subscribe();
    let mut search = Search::new(patterns);
    loop {
        news.mark_unchanged();
        let state = proc.state();
        if let Some(line) = search.look(proc, &state)? {
            return Ok(End::Line(line));
        }
        if state.has_ended() {
            return Ok(search.last_line().map_or(End::Over, End::Line));
        }
        proc.notify_past(state.progress.counts.end);
        if news.changed().await.is_err() {
            return Ok(End::Over);
        }
    }
}

async fn listens(proc: &Proc, port: u16) -> End {
    let mut news = proc.subscribe();
    let mut pause = LOOK_SOON;
    loop {
        news.mark_unchanged();
        let state = proc.state();
        let looked = Instant::now();
        if let Some(listener) = look(state.shim_pid, port).await {
            return End::Listens(listener);
        }
        if state.has_ended() {
            return End::Over;
        }
        proc.notify_past(state.progress.counts.end);
        tokio::select! {
            () = sleep(pause) => pause = (pause * 2).min(LOOK_LATE),
            changed = news.changed() => {
                if changed.is_err() {
                    return End::Over;
                }
                // Who prints is busy, and may listen next. A flood is not followed by a flood of looks.
                pause = LOOK_SOON;
                let _ = timeout(LOOK_SOON.saturating_sub(looked.elapsed()), news.wait_for(State::has_ended)).await;
            }
        }
    }
}

/// Looks at /proc, which may take a while for a large tree, beside the threads that others wait for.
async fn look(shim: i32, port: u16) -> Option<Listener> {
    tokio::task::spawn_blocking(move || listening_port::listener(shim, port)).await.ok().flatten()
}

/// One timer, for when it would have been quiet long enough. What was printed meanwhile sets it anew, and only then:
/// a flood costs no more than silence.
async fn quiet(proc: &Proc, ms: u64) -> End {
    let mut news = proc.subscribe();
    let _ = news.wait_for(|state| state.phase != Phase::Starting).await;
    loop {
        let state = proc.state();
        if state.has_ended() {
            return End::Over;
        }
        let silent = wall_ms().saturating_sub(last_output_ms(proc, &state));
        let Some(left) = ms.checked_sub(silent).filter(|left| *left > 0) else { return End::Quiet };
        tokio::select! {
            () = sleep(Duration::from_millis(left)) => {}
            _ = news.wait_for(State::has_ended) => {}
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
    let newest = times.map(|time| time.as_millis() as u64 + TICK_MS).max();
    newest.unwrap_or(proc.spec.created_ms)
}
