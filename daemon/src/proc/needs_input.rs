//! The `needs_input` event: the program waits for input, according to the kernel. The check runs a moment after the
//! program printed or was written to, then less and less often, and never while nothing happens.

use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::input_wait::{InputWait, ShimInput, WaitId, detect, prompt};
use super::state::State;
use crate::log::Log;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
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

/// Publishes the event for every new wait, until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let mut state_changes = proc.subscribe();
    let activity = || Activity { end: proc.state().progress.counts.end, writes: *proc.input.borrow() };
    // A wait that an earlier daemon published is not published again while nothing has changed.
    let mut reported: Option<(Activity, Option<WaitId>)> =
        (proc.checkpoint().input_wait_end == activity().end + 1).then(|| (activity(), None));
    let (mut pause, mut interval) = (MIN_WAIT, MIN_INTERVAL);
    let mut last_wait: Option<WaitId> = None;
    while !proc.published_state().has_ended() {
        let now = activity();
        if pause > IDLE_TIMEOUT || reported.is_some_and(|(at, _)| at == now) {
            wait_for_activity(&proc, now).await;
            pause = MIN_WAIT;
            last_wait = None;
            continue;
        }
        if timeout(pause, async { state_changes.wait_for(State::has_ended).await.is_ok() }).await.is_ok() {
            return;
        }
        let (after, state) = (activity(), proc.state());
        let (pid, echo, wait) = match detect(state.shim_pid, state.pid, proc.shim_input(&state)) {
            InputWait::Waiting { pid, echo, wait } => (pid, echo, wait),
            InputWait::NotWaiting | InputWait::Unknown => {
                pause = if after == now { pause * 2 } else { (pause * 2).min(MAX_BACKOFF) };
                continue;
            }
        };
        if reported.is_some_and(|(_, same)| same == Some(wait)) {
            // The same wait, while other processes of the tree printed.
            reported = Some((after, Some(wait)));
            continue;
        }
        // Quiet all the time, or asleep in the same read as before: the wait has lasted in both cases.
        if after != now && last_wait != Some(wait) {
            last_wait = Some(wait);
            pause = MIN_WAIT;
            continue;
        }
        if let Err(e) = publish(&proc, &state, pid, echo) {
            tracing::error!(id = %proc.spec.id, %e, "failed to store an event; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        }
        let written = reported.is_none_or(|(at, _)| at.writes != after.writes);
        interval = if written { MIN_INTERVAL } else { (interval * 2).min(MAX_INTERVAL) };
        reported = Some((after, Some(wait)));
        pause = MIN_WAIT;
        cool_down(&proc, interval, after.writes).await;
    }
}

impl Proc {
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

/// Waits after an event. A write ends the wait early: the next wait for input is a new one.
async fn cool_down(proc: &Proc, interval: Duration, writes: u64) {
    let (mut state_changes, mut input) = (proc.subscribe(), proc.input.subscribe());
    let ended = async { state_changes.wait_for(State::has_ended).await.is_ok() };
    if timeout(MIN_INTERVAL, ended).await.is_ok() {
        return;
    }
    let ended = async { state_changes.wait_for(State::has_ended).await.is_ok() };
    let written = async { input.wait_for(|count| *count != writes).await.is_ok() };
    let either = async {
        tokio::select! { _ = ended => {}, _ = written => {} }
    };
    let _ = timeout(interval.saturating_sub(MIN_INTERVAL), either).await;
}

fn publish(proc: &Proc, state: &State, pid: i32, echo: Option<bool>) -> std::io::Result<()> {
    let end = state.progress.counts.end;
    let prompt = prompt(&Log::open(&proc.dir, end)?)?;
    let needs_input = NeedsInput { name: proc.spec.name.clone(), pid, echo, prompt, cursor: end };
    proc.publish_event(&needs_input, |checkpoint| checkpoint.input_wait_end = end + 1)?;
    Ok(())
}
