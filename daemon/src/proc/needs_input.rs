//! The `needs_input` event: the program waits for somebody to type, as the kernel tells. It is looked at a moment after
//! it printed or was written to, and less and less often; never while nothing happens.

use super::event_sink::AGAIN;
use super::handle::Proc;
use super::input_wait::{Asks, Wait, asks, prompt};
use super::state::State;
use crate::log::Log;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use toold_proto::event::EventType;

/// How long a wait must last before it is told: a program that reads what is on its way does not count.
const QUIET: Duration = Duration::from_millis(250);
/// The longest pause between two looks at a program that goes on printing.
const BUSY: Duration = Duration::from_secs(4);
/// After this long without a change, only output or input makes us look again: nothing may tick in an idle daemon.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two events. A terminal program waits again after every key.
const BETWEEN: Duration = Duration::from_secs(2);
/// One that waits again and again though nobody typed, as `top` does, is told more and more seldom.
const SELDOM: Duration = Duration::from_secs(3600);

/// What may change while a program is looked at: how much it printed, how often it was written to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    end: u64,
    typed: u64,
}

/// Until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let mut news = proc.subscribe();
    let mark = || Mark { end: proc.state().progress.counts.end, typed: *proc.input.borrow() };
    // What an earlier daemon told stays told as long as nothing has changed.
    let mut told: Option<(Mark, Option<Wait>)> = (proc.told().asked == mark().end + 1).then(|| (mark(), None));
    let (mut pause, mut between) = (QUIET, BETWEEN);
    let mut before: Option<Wait> = None;
    while !proc.peek().ended() {
        let now = mark();
        if pause > PATIENCE || told.is_some_and(|(at, _)| at == now) {
            changed(&proc, now).await;
            (pause, before) = (QUIET, None);
            continue;
        }
        if timeout(pause, async { news.wait_for(State::ended).await.is_ok() }).await.is_ok() {
            return;
        }
        let (after, state) = (mark(), proc.state());
        let (pid, echo, wait) = match asks(state.shim_pid, state.pid, proc.spec.pty.is_some()) {
            Asks::Yes { pid, echo, wait } => (pid, echo, wait),
            Asks::No | Asks::Unknown => {
                pause = if after == now { pause * 2 } else { (pause * 2).min(BUSY) };
                continue;
            }
        };
        if told.is_some_and(|(_, same)| same == Some(wait)) {
            // The same wait, and others printed meanwhile.
            told = Some((after, Some(wait)));
            continue;
        }
        // Quiet all the time, or asleep in the same read as before: either way it has lasted.
        if after != now && before != Some(wait) {
            (before, pause) = (Some(wait), QUIET);
            continue;
        }
        if let Err(e) = tell(&proc, &state, pid, echo) {
            tracing::error!(id = %proc.spec.id, %e, "an event could not be stored; it is tried again");
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        let typed = told.is_none_or(|(at, _)| at.typed != after.typed);
        between = if typed { BETWEEN } else { (between * 2).min(SELDOM) };
        (told, pause) = (Some((after, Some(wait))), QUIET);
        rest(&proc, between, after.typed).await;
    }
}

/// Comes back when it printed, was written to, or ended.
async fn changed(proc: &Proc, since: Mark) {
    let (mut news, mut input) = (proc.subscribe(), proc.input.subscribe());
    proc.want_beyond(since.end);
    let printed = async { news.wait_for(|state| state.progress.counts.end > since.end || state.ended()).await.is_ok() };
    let written = async { input.wait_for(|count| *count != since.typed).await.is_ok() };
    tokio::select! {
        _ = printed => {}
        _ = written => {}
    }
}

/// The pause after an event. Who types cuts it short: what follows is a new wait.
async fn rest(proc: &Proc, between: Duration, typed: u64) {
    let (mut news, mut input) = (proc.subscribe(), proc.input.subscribe());
    let ended = async { news.wait_for(State::ended).await.is_ok() };
    if timeout(BETWEEN, ended).await.is_ok() {
        return;
    }
    let ended = async { news.wait_for(State::ended).await.is_ok() };
    let written = async { input.wait_for(|count| *count != typed).await.is_ok() };
    let either = async {
        tokio::select! { _ = ended => {}, _ = written => {} }
    };
    let _ = timeout(between.saturating_sub(BETWEEN), either).await;
}

fn tell(proc: &Proc, state: &State, pid: i32, echo: Option<bool>) -> std::io::Result<()> {
    let end = state.progress.counts.end;
    let prompt = prompt(&Log::open(&proc.dir, end)?)?;
    let facts = json!({ "name": proc.spec.name, "pid": pid, "echo": echo, "prompt": prompt, "cursor": end });
    proc.tell(EventType::NeedsInput, &facts, |told| told.asked = end + 1)?;
    Ok(())
}
