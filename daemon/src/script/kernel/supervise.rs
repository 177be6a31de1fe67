//! The clocks of a kernel: the time of the cell that runs, and the time without a cell. A daemon that takes over counts on from
//! the journal. Nothing wakes up but at the end of one of them.

use super::super::{LiveScript, Scripts};
use super::Kernel;
use super::stop::INTERRUPT_GRACE_MS;
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::GRACE_MS;
use crate::tools::journal::StopCause;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use toold_format::slots::Cause;

/// The longest time that a timer is set to.
const MAX_TIMER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The delay before something is ended again that did not end.
const EXPIRE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The clock that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// Of this cell.
    Cell(u64),
    /// Since this time there was no cell, in milliseconds since 1970.
    Idle(u64),
}

/// Returns the clock that runs now, and the time that is left of it.
fn clock(kernel: &Kernel, idle_ms: u64, since_ms: u64, now: u64) -> Option<(Clock, Duration)> {
    let left = |limit_ms: u64, from_ms: u64| {
        Duration::from_millis(limit_ms.saturating_sub(now.saturating_sub(from_ms))).min(MAX_TIMER)
    };
    kernel.read(|cells| match cells.running() {
        Some(running) => {
            // One that is interrupted already has its own grace, but not with a daemon that was killed meanwhile.
            let limit = running.cell.timeout_ms?;
            Some((Clock::Cell(running.cell.number), left(limit, running.started_ms)))
        }
        None if cells.is_busy() || idle_ms == 0 => None,
        None => {
            let from = cells.active_ms.max(since_ms);
            Some((Clock::Idle(from), left(idle_ms, from)))
        }
    })
}

impl Scripts {
    /// Ends cells and kernels whose time is over. Never returns.
    pub(in super::super) async fn supervise(&self, proc: &Arc<Proc>, live: &LiveScript) {
        let (Some(kernel), Some(spec)) = (&live.kernel, &live.spec.kernel) else { return std::future::pending().await };
        let since_ms = proc.started_ms();
        let (mut changes, mut asking) = (kernel.changed.subscribe(), live.owner.asking.subscribe());
        let mut due: Option<(Clock, Instant)> = None;
        loop {
            changes.mark_unchanged();
            let runs = clock(kernel, spec.idle_ms, since_ms, wall_ms());
            // Once per clock: the wall clock may jump while it runs.
            if due.map(|(clock, _)| clock) != runs.map(|(clock, _)| clock) {
                due = runs.map(|(clock, left)| (clock, Instant::now() + left));
            }
            let at = due.map_or_else(|| Instant::now() + MAX_TIMER, |(_, at)| at);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                }
                () = waited_for_person(&mut asking) => {
                    let began = Instant::now();
                    let _ = asking.wait_for(|open| open.is_empty()).await;
                    // The time of a question is not counted.
                    due = due.map(|(clock, at)| (clock, at + began.elapsed()));
                }
                () = sleep_until(at), if due.is_some() => {
                    if let Some((clock, _)) = due {
                        self.expire(proc, live, kernel, clock).await;
                        // For a tree that could not be killed.
                        due = Some((clock, Instant::now() + EXPIRE_RETRY_DELAY));
                    }
                }
            }
        }
    }

    /// Ends what a clock is about, if it still is so.
    async fn expire(&self, proc: &Arc<Proc>, live: &LiveScript, kernel: &Kernel, clock: Clock) {
        let own = |cause| Kill {
            signal: libc::SIGTERM,
            grace_ms: GRACE_MS,
            cause,
            uid: nix::unistd::getuid().as_raw(),
            pid: std::process::id() as i32,
        };
        match clock {
            Clock::Cell(cell) => {
                tracing::info!(id = %proc.spec.id, cell, "the time of a cell is over");
                let grace = Duration::from_millis(INTERRUPT_GRACE_MS);
                match self.stop_cell(proc, live, cell, StopCause::Timeout, grace).await {
                    Ok(true) => {}
                    Ok(false) | Err(_) => self.kill_expired(proc, own(Cause::Timeout)).await,
                }
            }
            Clock::Idle(_) => {
                let is_idle = kernel.update(|cells| {
                    let is_idle = !cells.is_busy();
                    if is_idle {
                        cells.close("it was idle for its `idle_ms`");
                    }
                    is_idle
                });
                if is_idle {
                    tracing::info!(id = %proc.spec.id, "a kernel was idle for too long");
                    self.kill_expired(proc, own(Cause::Idle)).await;
                }
            }
        }
    }

    async fn kill_expired(&self, proc: &Arc<Proc>, kill: Kill) {
        crate::proc::kill::kill_all(vec![proc.clone()], kill).await;
    }
}

/// Waits until a call of the kernel waits for a person.
async fn waited_for_person(asking: &mut tokio::sync::watch::Receiver<Vec<toold_proto::approval::ApprovalId>>) {
    if asking.wait_for(|open| !open.is_empty()).await.is_err() {
        std::future::pending().await
    }
}
