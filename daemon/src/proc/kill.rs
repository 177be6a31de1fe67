//! Kills whole trees, and proves that they are empty: also a tree whose shim cannot act.

use super::handle::{Kill, KillResult, NoReply};
use super::state::State;
use super::{Proc, tree, view};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::results::{KillStatus, Killed};

/// Default time between SIGTERM and SIGKILL.
pub const GRACE_MS: u64 = 5000;
/// Number of tries to kill a tree without its shim, and the delay between them.
const KILL_TRIES: usize = 50;
const KILL_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Time to wait for the next connection to a shim.
const RECONNECT_WAIT: Duration = Duration::from_millis(50);

/// Kills trees concurrently. Returns when each is known to be empty, or to have survivors.
pub async fn kill_all(procs: Vec<Arc<Proc>>, kill: Kill) -> Vec<Killed> {
    join_all(procs.into_iter().map(|proc| async move { kill_one(&proc, kill).await })).await
}

async fn kill_one(proc: &Proc, kill: Kill) -> Killed {
    let mut state_changes = proc.subscribe();
    let mut proven = true;
    let result = loop {
        match proc.kill(kill).await {
            Ok(result) => break result,
            Err(_) if proc.published_state().is_final() => break KillResult::default(),
            // The connection to its shim broke: try again on the next one.
            Err(NoReply::Gone) => {
                let _ = tokio::time::timeout(RECONNECT_WAIT, state_changes.changed()).await;
            }
            Err(NoReply::Unresponsive) => {
                // A shim that cannot act is not waited for. The exit is reported when it can.
                proven = false;
                break KillResult { signals: 1 << libc::SIGKILL, survivors: kill_without_shim(proc).await };
            }
        }
    };
    if proven && result.survivors.is_empty() {
        // The shim reports the exit before the end of the kill, so this returns at once.
        let _ = state_changes.wait_for(State::has_ended).await;
    }
    let survivors: Vec<_> =
        result.survivors.iter().filter_map(|pid| tree::member(*pid)).filter(|m| m.state != "Z").collect();
    let status = match (survivors.is_empty(), result.signals) {
        (false, _) => KillStatus::Survivors,
        (true, 0) => KillStatus::AlreadyExited,
        (true, _) => KillStatus::Killed,
    };
    let signals_sent = (1..64).filter(|n| result.signals & (1 << n) != 0).collect::<Vec<i32>>();
    let outcome = view::outcome(&proc.spec, &proc.published_state());
    Killed {
        id: proc.spec.id,
        status,
        signals_sent: in_order(&signals_sent, kill.signal),
        survivors,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        reason: outcome.reason,
    }
}

/// Kills a tree whose shim is frozen, repeatedly until it is empty or that does not help. This is a poll: the kernel
/// has no event for the end of a tree.
async fn kill_without_shim(proc: &Proc) -> Vec<i32> {
    let mut alive = Vec::new();
    for _ in 0..KILL_TRIES {
        alive = tree::kill_below(proc.published_state().shim_pid);
        if alive.is_empty() {
            break;
        }
        tokio::time::sleep(KILL_RETRY_DELAY).await;
    }
    alive
}

/// Names the first signal first: a report has bits without an order, a kill has an order.
fn in_order(sent: &[i32], first: i32) -> Vec<String> {
    let (mut early, late): (Vec<i32>, Vec<i32>) = sent.iter().partition(|s| **s == first);
    early.extend(late);
    early.into_iter().map(view::signal_name).collect()
}
