//! The `needs_input` event and field, and the wait for it: the program waits for input, according to the kernel. The check runs
//! a moment after the program printed or was written to, then less and less often, and never while nothing happens, unless a
//! caller waits for it.

use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::input_wait::{InputWait, ShimInput, WaitId, detect, prompt};
use super::state::State;
use crate::clock::wall_ms;
use crate::log::Log;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use toold_proto::event::NeedsInput;
use toold_proto::process;
use toold_proto::time::rfc3339;

/// Time that a wait must last before it is published: a program that reads input which is on its way does not count.
const MIN_WAIT: Duration = Duration::from_millis(250);
/// Maximum time between two checks of a program that keeps printing.
const MAX_BACKOFF: Duration = Duration::from_secs(4);
/// After this time without a change, only output or input causes another check: an idle daemon has no timers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum time between two events. A terminal program waits again after every key.
const MIN_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time between two events of a program that waits again and again without input, as `top` does.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// The times after which a caller that waits for a wait for input has the program checked: the first, and the longest.
const FIRST_REQUEST_DELAY: Duration = Duration::from_secs(5);
const MAX_REQUEST_DELAY: Duration = Duration::from_secs(30);

/// The activity between two checks: the end of the output, and the number of writes to stdin.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Activity {
    end: u64,
    writes: u64,
}

/// The times at which an event may be published. Pure: time is an argument.
struct EventPace {
    /// The last event: its time, and the number of writes by then.
    last: Option<(Instant, u64)>,
    interval: Duration,
}

impl EventPace {
    fn new() -> EventPace {
        EventPace { last: None, interval: MIN_INTERVAL }
    }

    /// Returns the time from which on an event may be published, if that is after `now`.
    fn pause(&self, writes: u64, now: Instant) -> Option<Duration> {
        let (at, written) = self.last?;
        // After a write the next wait for input is a new one.
        let interval = if writes == written { self.interval } else { MIN_INTERVAL };
        (at + interval).checked_duration_since(now).filter(|pause| !pause.is_zero())
    }

    fn published(&mut self, writes: u64, now: Instant) {
        let is_answered = self.last.is_none_or(|(_, written)| written != writes);
        self.interval = if is_answered { MIN_INTERVAL } else { (self.interval * 2).min(MAX_INTERVAL) };
        self.last = Some((now, writes));
    }
}

/// The wait for input that was last seen. It may be over.
#[derive(Default)]
pub struct InputWaitCell(Mutex<Option<Box<KnownWait>>>);

/// The numbers of writes to stdin, and of checks that callers asked for.
#[derive(Clone, Copy, Default)]
pub struct InputCounts {
    pub writes: u64,
    checks: u64,
}

/// A wait for input that was seen.
#[derive(Clone)]
struct KnownWait {
    wait: WaitId,
    /// The process that is blocked.
    pid: i32,
    since_ms: u64,
    echo: Option<bool>,
    prompt: String,
    /// The number of writes to stdin when it was last seen.
    writes: u64,
}

/// Notes every wait for input in the process, and publishes the event for a new one, until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let mut state_changes = proc.subscribe();
    let activity = || Activity { end: proc.state().progress.counts.end, writes: proc.input.borrow().writes };
    // A wait that an earlier daemon published is not published again while nothing has changed.
    let mut reported: Option<(Activity, Option<WaitId>)> =
        (proc.checkpoint().input_wait_end == activity().end + 1).then(|| (activity(), None));
    let (mut pause, mut pace) = (MIN_WAIT, EventPace::new());
    let (mut requests, mut checks) = (proc.input.subscribe(), 0);
    let mut last_wait: Option<WaitId> = None;
    // The activity up to which a wait is noted.
    let mut noted: Option<Activity> = None;
    while !proc.published_state().has_ended() {
        let now = activity();
        let is_reported = reported.is_some_and(|(at, _)| at == now);
        let event_pause = pace.pause(now.writes, Instant::now());
        if pause > IDLE_TIMEOUT || (noted == Some(now) && (is_reported || event_pause.is_some())) {
            let until = event_pause.filter(|_| noted == Some(now) && !is_reported).unwrap_or(Duration::MAX);
            // Over the pause nothing has changed: the event is due.
            match timeout(until, wait_for_activity(&proc, now, checks)).await {
                Ok(Woken::Activity) => last_wait = None,
                // The wait that is noted may be over, and the program in the next one.
                Ok(Woken::Caller) => {
                    noted = None;
                    checks = proc.input.borrow().checks;
                }
                Err(_) => {}
            }
            pause = MIN_WAIT;
            continue;
        }
        let ended = async { state_changes.wait_for(State::has_ended).await.is_ok() };
        let is_new = |counts: &InputCounts| counts.checks != checks;
        let request = async { requests.wait_for(is_new).await.map_or(checks, |counts| counts.checks) };
        tokio::select! {
            biased;
            _ = ended => break,
            () = tokio::time::sleep(pause) => {}
            // The next check comes soon, and not at once: a wait must have lasted.
            asked = request, if pause > MIN_WAIT => {
                (pause, checks) = (MIN_WAIT, asked);
                continue;
            }
        }
        let (after, state) = (activity(), proc.state());
        let (pid, echo, wait) = match detect(state.shim_pid, state.pid, proc.shim_input(&state)) {
            InputWait::Waiting { pid, echo, wait } => (pid, echo, wait),
            InputWait::NotWaiting | InputWait::Unknown => {
                proc.set_input_wait(None);
                pause = if after == now { pause * 2 } else { (pause * 2).min(MAX_BACKOFF) };
                continue;
            }
        };
        // The same wait, while other processes of the tree printed; or that of an earlier daemon.
        let is_known = reported.is_some_and(|(at, same)| same == Some(wait) || (same.is_none() && at == after));
        // Quiet all the time, or asleep in the same read as before: the wait has lasted in both cases.
        if !is_known && after != now && last_wait != Some(wait) {
            last_wait = Some(wait);
            pause = MIN_WAIT;
            continue;
        }
        let known = match known_wait(&proc, &state, is_known, KnownWait::new(wait, pid, echo, after.writes)) {
            Ok(known) => known,
            Err(e) => {
                tracing::error!(id = %proc.spec.id, %e, "failed to read a prompt; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        proc.set_input_wait(Some(known.clone()));
        noted = Some(after);
        if is_known {
            reported = Some((after, Some(wait)));
            continue;
        }
        pause = MIN_WAIT;
        if pace.pause(after.writes, Instant::now()).is_some() {
            continue;
        }
        if let Err(e) = publish(&proc, &state, known) {
            tracing::error!(id = %proc.spec.id, %e, "failed to store an event; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        }
        pace.published(after.writes, Instant::now());
        reported = Some((after, Some(wait)));
    }
    proc.set_input_wait(None);
}

impl KnownWait {
    /// Returns a wait that is first seen now, without its prompt.
    fn new(wait: WaitId, pid: i32, echo: Option<bool>, writes: u64) -> KnownWait {
        KnownWait { wait, pid, since_ms: wall_ms(), echo, prompt: String::new(), writes }
    }
}

/// Adds the prompt to a wait, and the time at which it was first seen. `is_published`: its event was published, perhaps by an
/// earlier daemon.
fn known_wait(proc: &Proc, state: &State, is_published: bool, seen: KnownWait) -> io::Result<KnownWait> {
    let prompt = prompt(&Log::open(&proc.dir, state.progress.counts.end)?)?;
    let before = proc.input_wait.known().filter(|known| known.wait == seen.wait).map(|known| known.since_ms);
    let published = Some(proc.checkpoint().input_wait_since_ms).filter(|since_ms| is_published && *since_ms != 0);
    let since_ms = before.or(published).unwrap_or(seen.since_ms);
    Ok(KnownWait { since_ms, prompt, ..seen })
}

impl InputWaitCell {
    fn known(&self) -> Option<KnownWait> {
        self.0.lock().ok()?.as_deref().cloned()
    }

    /// Returns the known wait if the program still sleeps in it. Costs nothing without one, and else a read of one file.
    fn lasting(&self) -> Option<KnownWait> {
        self.known().filter(|known| known.wait.lasts())
    }
}

impl Proc {
    /// Notes that the program waits for input, or does not.
    fn set_input_wait(&self, wait: Option<KnownWait>) {
        let is_waiting = wait.is_some();
        if let Ok(mut known) = self.input_wait.0.lock() {
            *known = wait.map(Box::new);
        }
        if is_waiting {
            // The state is as it was. Those that wait for a change of it look at the wait too.
            self.state.send_modify(|_| {});
        }
    }

    /// Returns the wait for input in which the program was seen, if it still sleeps in it.
    pub fn input_wait(&self, state: &State) -> Option<process::InputWait> {
        let KnownWait { since_ms, prompt, echo, .. } = self.input_wait.lasting().filter(|_| !state.has_ended())?;
        Some(process::InputWait { since: rfc3339(since_ms), prompt, echo })
    }

    /// Returns true if the program waits for input that was not sent yet. A wait that was answered a moment ago may not be
    /// over: it counts again when it has lasted.
    fn asks_for_input(&self) -> bool {
        let written = || self.input.borrow().writes;
        self.input_wait.lasting().is_some_and(|known| known.writes == written()) && !self.published_state().has_ended()
    }

    /// Returns when the program waits for input, with true, or has ended.
    pub async fn wait_input(&self) -> bool {
        let mut updates = self.subscribe();
        let mut pause = FIRST_REQUEST_DELAY;
        loop {
            updates.mark_unchanged();
            if self.asks_for_input() {
                return true;
            }
            if self.published_state().has_ended() {
                return false;
            }
            match timeout(pause, updates.changed()).await {
                Ok(Ok(())) => {}
                // The process holds a sender, so this does not come before its end.
                Ok(Err(_)) => return false,
                // A program that reads long after its last output, and prints nothing before, is checked only on request.
                Err(_) => {
                    self.input.send_modify(|counts| counts.checks += 1);
                    pause = (pause * 2).min(MAX_REQUEST_DELAY);
                }
            }
        }
    }

    /// Returns the input that the shim gave the program, and whether it can still write to it.
    fn shim_input(&self, state: &State) -> ShimInput {
        match self.stdin_inode() {
            _ if self.spec.pty.is_some() => ShimInput::Terminal,
            _ if state.progress.stdin_closed => ShimInput::Closed,
            Some(inode) => ShimInput::Pipe { inode },
            None => ShimInput::UnknownPipe,
        }
    }
}

/// The cause of the next check.
enum Woken {
    /// The program printed, was written to, or ended.
    Activity,
    /// A caller waits for the wait for input.
    Caller,
}

/// Waits until the program printed, was written to or ended, or a caller wants a check.
async fn wait_for_activity(proc: &Proc, since: Activity, checks: u64) -> Woken {
    let (mut state_changes, mut input) = (proc.subscribe(), proc.input.subscribe());
    proc.notify_past(since.end);
    let printed = async {
        state_changes.wait_for(|state| state.progress.counts.end > since.end || state.has_ended()).await.is_ok()
    };
    let asked = |counts: &InputCounts| counts.writes != since.writes || counts.checks != checks;
    let asked = async { input.wait_for(asked).await.map_or(since.writes, |counts| counts.writes) };
    tokio::select! {
        _ = printed => Woken::Activity,
        writes = asked => if writes == since.writes { Woken::Caller } else { Woken::Activity },
    }
}

fn publish(proc: &Proc, state: &State, known: KnownWait) -> io::Result<()> {
    let end = state.progress.counts.end;
    let KnownWait { pid, since_ms, echo, prompt, .. } = known;
    let needs_input = NeedsInput { name: proc.spec.name.clone(), pid, echo, prompt, cursor: end };
    proc.publish_event(&needs_input, |checkpoint| {
        checkpoint.input_wait_end = end + 1;
        checkpoint.input_wait_since_ms = since_ms;
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_less_and_less_often_until_something_is_written() {
        let start = Instant::now();
        let at = |secs: u64| start + Duration::from_secs(secs);
        let secs = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
        let mut pace = EventPace::new();
        assert_eq!(pace.pause(0, at(0)), None, "the first one at once");
        pace.published(0, at(0));
        assert_eq!((secs(pace.pause(0, at(0))), pace.pause(0, at(2))), (Some(2), None));
        pace.published(0, at(2));
        assert_eq!((secs(pace.pause(0, at(2))), secs(pace.pause(1, at(2)))), (Some(4), Some(2)));
        pace.published(0, at(6));
        assert_eq!((secs(pace.pause(0, at(6))), pace.pause(1, at(8))), (Some(8), None));
        pace.published(1, at(8));
        assert_eq!(secs(pace.pause(1, at(8))), Some(2));
    }
}
