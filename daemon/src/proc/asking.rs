//! The `needs_input` event: the program waits for somebody to type, as the kernel tells. It is looked at when it has
//! been quiet for a moment, and less and less often; never in the midst of output.

use super::asks::{Asks, asks, prompt};
use super::handle::Proc;
use super::state::State;
use super::voice::AGAIN;
use crate::log::Log;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use toold_proto::event::EventType;

/// How long it must have printed and read nothing before it is looked at.
const QUIET: Duration = Duration::from_millis(250);
/// After this long without a change, only output or input makes us look again: nothing may tick in an idle daemon.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two events. A terminal program waits again after every key.
const BETWEEN: Duration = Duration::from_secs(2);
/// One that prints and waits again though nobody typed, as `top` does, is told more and more seldom.
const SELDOM: Duration = Duration::from_secs(3600);

/// Until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let (mut news, mut input) = (proc.subscribe(), proc.input.subscribe());
    let mut pause = QUIET;
    let (mut typed, mut told_typed, mut between) = (*input.borrow(), 0, BETWEEN / 2);
    loop {
        news.mark_unchanged();
        let state = proc.state();
        if state.ended() {
            return;
        }
        let end = state.progress.counts.end;
        let told = proc.told().asked == end + 1 && told_typed == typed;
        if told || pause > PATIENCE {
            // Nothing to look for before it prints or is written to.
            proc.want_beyond(end);
            tokio::select! {
                _ = news.changed() => {}
                _ = input.changed() => {}
            }
            (pause, typed) = (QUIET, *input.borrow_and_update());
            continue;
        }
        if timeout(pause, news.wait_for(State::ended)).await.is_ok() {
            return;
        }
        let now = proc.state();
        if now.progress.counts.end != end || *input.borrow() != typed {
            // It is busy: looked at less often while that lasts.
            typed = *input.borrow_and_update();
            pause = (pause * 2).min(Duration::from_secs(4));
            continue;
        }
        match asks(now.shim_pid, now.pid, proc.spec.pty.is_some()) {
            Asks::Yes { pid, echo } => {
                if let Err(e) = tell(&proc, &now, pid, echo) {
                    tracing::error!(id = %proc.spec.id, %e, "an event could not be stored; it is tried again");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                between = if typed == told_typed { (between * 2).min(SELDOM) } else { BETWEEN };
                (told_typed, pause) = (typed, QUIET);
                // Whoever types makes it a new wait.
                let _ = timeout(BETWEEN, async { news.wait_for(State::ended).await.is_ok() }).await;
                let ended = async { news.wait_for(State::ended).await.is_ok() };
                let written = async { input.wait_for(|count| *count != typed).await.is_ok() };
                let rest = between.saturating_sub(BETWEEN);
                let _ = timeout(rest, async {
                    tokio::select! { _ = ended => {}, _ = written => {} }
                })
                .await;
            }
            Asks::No | Asks::Unknown => pause *= 2,
        }
    }
}

fn tell(proc: &Proc, state: &State, pid: i32, echo: Option<bool>) -> std::io::Result<()> {
    let end = state.progress.counts.end;
    let prompt = prompt(&Log::open(&proc.dir, end)?)?;
    let facts = json!({ "pid": pid, "echo": echo, "prompt": prompt, "cursor": end });
    proc.tell(EventType::NeedsInput, &facts, |told| told.asked = end + 1)?;
    Ok(())
}
