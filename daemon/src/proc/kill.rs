//! Kills whole trees, and proves that they are empty: also a tree whose shim cannot act.

use super::handle::{Kill, KillResult, NoReply};
use super::pending::{PendingEnd, PendingLaunch};
use super::state::{Phase, State, never_ran};
use super::{Proc, reach, tree, view};
use crate::clock::wall_ms;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use toold_format::slots::{Cause, Exit};
use toold_proto::results::{KillStatus, Killed};

/// Default time between SIGTERM and SIGKILL.
pub const GRACE_MS: u64 = 5000;
/// Number of tries to kill a tree without its shim, and the delay between them.
const KILL_TRIES: usize = 50;
const KILL_RETRY_DELAY: Duration = Duration::from_millis(20);
/// Time to wait for the next connection to a shim.
const RECONNECT_WAIT: Duration = Duration::from_millis(50);

/// Time in which the end of a process whose shim cannot be reached is found in its record.
const RECORD_WAIT: Duration = Duration::from_secs(3);

/// Stands for survivors that cannot be listed.
const UNKNOWN_SURVIVOR: i32 = 0;
const UNKNOWN_NOTE: &str =
    "processes of the tree are left, and /proc does not show them; the group of the program was killed";

const ORPHANS_NOTE: &str = "the shim died, and no zygote or daemon above it was left to find the rest of its tree: processes that left the session of the program may be alive";

/// Kills trees that a client does not want any more: their restart policies end first. Returns as `kill_trees` does.
pub async fn kill_all(procs: Vec<Arc<Proc>>, kill: Kill) -> Vec<Killed> {
    procs.iter().for_each(|proc| proc.end_policy());
    kill_trees(procs, kill).await
}

/// Kills trees concurrently. Returns when each is known to be empty, or to have survivors.
pub async fn kill_trees(procs: Vec<Arc<Proc>>, kill: Kill) -> Vec<Killed> {
    // Before anything of them ends: one that waits could get the slot of another that is killed.
    let claims: Vec<_> = procs.iter().map(|proc| proc.claim_pending()).collect();
    let kills = procs.into_iter().zip(claims).map(|(proc, claim)| async move {
        match claim {
            Some(launch) => kill_pending(&proc, launch, kill).await,
            None => kill_one(&proc, kill).await,
        }
    });
    join_all(kills).await
}

/// Ends a process that waits for its turn: nothing has to be signalled.
async fn kill_pending(proc: &Arc<Proc>, launch: Box<PendingLaunch>, kill: Kill) -> Killed {
    // Who ends one that waits for an approval withdraws that.
    let cause = if proc.published_state().asking { Cause::Denied } else { kill.cause };
    let exit = Exit { by_uid: kill.uid, by_pid: kill.pid, ..never_ran(cause, wall_ms()) };
    proc.end_pending(launch, PendingEnd::Canceled(exit)).await;
    let outcome = view::outcome(&proc.spec, &proc.published_state());
    Killed {
        id: proc.spec.id,
        status: KillStatus::Killed,
        signals_sent: Vec::new(),
        survivors: Vec::new(),
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        reason: outcome.reason,
        note: None,
    }
}

async fn kill_one(proc: &Arc<Proc>, kill: Kill) -> Killed {
    let mut state_changes = proc.subscribe();
    let was_final = proc.published_state().is_final();
    let mut proven = true;
    let mut is_stuck = false;
    let result = loop {
        match proc.kill(kill).await {
            Ok(result) => break result,
            Err(_) if proc.published_state().is_final() => break unanswered(proc, &kill, was_final),
            // Its record is being written, or another caller starts or ends it.
            Err(NoReply::Pending) => {
                if let Some(launch) = proc.claim_pending() {
                    return kill_pending(proc, launch, kill).await;
                }
                let _ = tokio::time::timeout(RECONNECT_WAIT, state_changes.changed()).await;
            }
            // The connection to its shim broke: try again on the next one.
            Err(NoReply::Gone) => {
                let _ = tokio::time::timeout(RECONNECT_WAIT, state_changes.changed()).await;
            }
            Err(why @ (NoReply::Unresponsive | NoReply::Unreachable)) => {
                // A shim that cannot act is not waited for. The exit is reported when it can.
                proven = false;
                is_stuck = proc.published_state().phase == Phase::Starting;
                let result = kill_without_shim(proc, is_stuck).await;
                if why == NoReply::Unreachable && result.survivors.is_empty() {
                    // This shim can act, and records the exit.
                    let _ = tokio::time::timeout(RECORD_WAIT, state_changes.wait_for(State::has_ended)).await;
                }
                break result;
            }
        }
    };
    if proven && result.survivors.is_empty() {
        // The shim reports the exit before the end of the kill, so this returns at once.
        let _ = state_changes.wait_for(State::has_ended).await;
    }
    let survivors: Vec<_> =
        result.survivors.iter().filter_map(|pid| tree::member(*pid)).filter(|m| m.state != "Z").collect();
    let has_unknown = result.survivors.contains(&UNKNOWN_SURVIVOR);
    let state = proc.published_state();
    let note = proc.unreachable().or_else(|| has_unknown.then(|| UNKNOWN_NOTE.to_string()));
    let note = note.or_else(|| state.tree_unknown.then(|| ORPHANS_NOTE.to_string()));
    let status = match (survivors.is_empty() && !has_unknown, result.signals) {
        (false, _) => KillStatus::Survivors,
        (true, 0) if is_stuck && state.phase == Phase::Starting => KillStatus::Starting,
        (true, 0) if !was_final && state.is_canceled() => KillStatus::Killed,
        (true, 0) => KillStatus::AlreadyExited,
        (true, _) => KillStatus::Killed,
    };
    let signals_sent = (1..=64).filter(|n| result.signals & signal_bit(*n) != 0).collect::<Vec<i32>>();
    let outcome = view::outcome(&proc.spec, &proc.published_state());
    Killed {
        id: proc.spec.id,
        status,
        signals_sent: in_order(&signals_sent, kill.signal),
        survivors,
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        reason: outcome.reason,
        note,
    }
}

/// Returns the result of a kill whose answer was lost with its connection, from the exit: it names the caller that it is
/// attributed to.
fn unanswered(proc: &Proc, kill: &Kill, was_final: bool) -> KillResult {
    let Phase::Exited { exit, .. } = proc.published_state().phase else { return KillResult::default() };
    if was_final || (exit.cause, exit.by_uid, exit.by_pid) != (kill.cause, kill.uid, kill.pid) {
        return KillResult::default();
    }
    let by_sigkill = libc::WIFSIGNALED(exit.wait_status) && libc::WTERMSIG(exit.wait_status) == libc::SIGKILL;
    let last = if by_sigkill { signal_bit(libc::SIGKILL) } else { 0 };
    KillResult { signals: signal_bit(kill.signal) | last, survivors: Vec::new() }
}

/// Kills a tree whose shim is frozen, repeatedly until it is empty or that does not help. This is a poll: the kernel
/// has no event for the end of a tree.
async fn kill_without_shim(proc: &Proc, is_starting: bool) -> KillResult {
    let mut result = KillResult::default();
    let mut shim_pid = proc.published_state().shim_pid;
    if is_starting {
        match proc.cancel_start() {
            Ok(pid) => shim_pid = pid,
            Err(e) => tracing::warn!(id = %proc.spec.id, %e, "failed to record a canceled start"),
        }
    }
    // In another pid namespace the pid of the shim is that of another process here.
    if !tree::has_proc() || !reach::shares_pids(&proc.spec) {
        return KillResult { survivors: vec![UNKNOWN_SURVIVOR], ..result };
    }
    for _ in 0..KILL_TRIES {
        let below = tree::kill_below(shim_pid);
        result.signals |= if below.sent { signal_bit(libc::SIGKILL) } else { 0 };
        result.survivors = below.alive;
        if result.survivors.is_empty() {
            break;
        }
        tokio::time::sleep(KILL_RETRY_DELAY).await;
    }
    result
}

/// Returns the bit of a signal in a shim's report. Signal 64 has bit 0, which no other signal has.
fn signal_bit(signal: i32) -> u64 {
    1 << (signal & 63)
}

/// Names the first signal first: a report has bits without an order, a kill has an order.
fn in_order(sent: &[i32], first: i32) -> Vec<String> {
    let (mut early, late): (Vec<i32>, Vec<i32>) = sent.iter().partition(|s| **s == first);
    early.extend(late);
    early.into_iter().map(view::signal_name).collect()
}
