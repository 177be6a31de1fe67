//! The `needs_input` event and field: the program waits for input, according to the kernel. The check runs a moment after
//! the program printed or was written to, then less and less often, and never while nothing happens.

use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::input_wait::{InputWait, ShimInput, WaitId, detect, prompt};
use super::state::State;
use crate::log::Log;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use toold_proto::event::NeedsInput;

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

/// Notes every wait for input in the process, and publishes the event for a new one, until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let mut state_changes = proc.subscribe();
    let activity = || Activity { end: proc.state().progress.counts.end, writes: *proc.input.borrow() };
    // A wait that an earlier daemon published is not published again while nothing has changed.
    let mut reported: Option<(Activity, Option<WaitId>)> =
        (proc.checkpoint().input_wait_end == activity().end + 1).then(|| (activity(), None));
    let (mut pause, mut pace) = (MIN_WAIT, EventPace::new());
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
            if timeout(until, wait_for_activity(&proc, now)).await.is_ok() {
                last_wait = None;
            }
            pause = MIN_WAIT;
            continue;
        }
        if timeout(pause, async { state_changes.wait_for(State::has_ended).await.is_ok() }).await.is_ok() {
            break;
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
        if reported.is_some_and(|(at, same)| same == Some(wait) || (same.is_none() && at == after)) {
            proc.set_input_wait(Some(wait));
            reported = Some((after, Some(wait)));
            noted = Some(after);
            continue;
        }
        // Quiet all the time, or asleep in the same read as before: the wait has lasted in both cases.
        if after != now && last_wait != Some(wait) {
            last_wait = Some(wait);
            pause = MIN_WAIT;
            continue;
        }
        proc.set_input_wait(Some(wait));
        noted = Some(after);
        pause = MIN_WAIT;
        if pace.pause(after.writes, Instant::now()).is_some() {
            continue;
        }
        if let Err(e) = publish(&proc, &state, pid, echo) {
            tracing::error!(id = %proc.spec.id, %e, "failed to store an event; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        }
        pace.published(after.writes, Instant::now());
        reported = Some((after, Some(wait)));
    }
    proc.set_input_wait(None);
}

impl Proc {
    /// Notes that the program waits for input, or does not.
    fn set_input_wait(&self, wait: Option<WaitId>) {
        if let Ok(mut known) = self.input_wait.lock() {
            *known = wait.map(Box::new);
        }
    }

    /// Returns true if the program was seen waiting for input and still sleeps in that wait. Costs nothing without such a
    /// wait, and else a read of one file.
    pub fn is_waiting_for_input(&self, state: &State) -> bool {
        let known = self.input_wait.lock().ok().and_then(|wait| wait.as_deref().copied());
        known.is_some_and(|wait| !state.has_ended() && wait.lasts())
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

/// Waits until the program printed, was written to, or ended.
async fn wait_for_activity(proc: &Proc, since: Activity) {
    let (mut state_changes, mut input) = (proc.subscribe(), proc.input.subscribe());
    proc.notify_past(since.end);
    let printed = async {
        state_changes.wait_for(|state| state.progress.counts.end > since.end || state.has_ended()).await.is_ok()
    };
    let written = async { input.wait_for(|count| *count != since.writes).await.is_ok() };
    tokio::select! {
        _ = printed => {}
        _ = written => {}
    }
}

fn publish(proc: &Proc, state: &State, pid: i32, echo: Option<bool>) -> std::io::Result<()> {
    let end = state.progress.counts.end;
    let prompt = prompt(&Log::open(&proc.dir, end)?)?;
    let needs_input = NeedsInput { name: proc.spec.name.clone(), pid, echo, prompt, cursor: end };
    proc.publish_event(&needs_input, |checkpoint| checkpoint.input_wait_end = end + 1)?;
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
