//! The call of a tool that a task runs: its time, which stands still while a person is asked, and the script that makes it.

use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use toold_proto::ProcId;
use toold_proto::approval::ApprovalId;

tokio::task_local! {
    /// The clock of the call that this task runs.
    static CLOCK: Arc<CallClock>;
}

/// The clock of one call.
pub struct CallClock {
    /// Number of questions that are open.
    waiting: watch::Sender<usize>,
    /// The questions of all calls of one owner.
    owner: Option<Questions>,
    script: Option<ScriptCall>,
}

/// A call that a script makes. A person may allow its tool for the rest of the script.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    pub script: ProcId,
    /// Unique for ever. The same call has the same one after a restart.
    pub call: Arc<str>,
    /// The full name of the tool.
    pub tool: String,
    pub args: Value,
}

/// The questions that the calls of one owner wait for.
pub type Questions = watch::Sender<Vec<ApprovalId>>;

impl CallClock {
    /// Makes the clock of a call. `owner` has the questions of all calls of one owner.
    pub fn new(owner: Option<Questions>, script: Option<ScriptCall>) -> Arc<CallClock> {
        Arc::new(CallClock { waiting: watch::Sender::new(0), owner, script })
    }

    /// Runs a call with this clock.
    pub async fn scope<F: Future>(self: Arc<Self>, call: F) -> F::Output {
        CLOCK.scope(self, call).await
    }

    /// Returns when the call has run for `limit`, without the time in which it waited for a person.
    pub async fn expired(&self, limit: Duration) {
        let (mut left, mut waiting) = (limit, self.waiting.subscribe());
        loop {
            let _ = waiting.wait_for(|count| *count == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = waiting.wait_for(|count| *count > 0) => left = left.saturating_sub(began.elapsed()),
            }
        }
    }
}

/// Returns the call of a script that this task runs. None: it runs none.
pub fn script_call() -> Option<ScriptCall> {
    CLOCK.try_with(|clock| clock.script.clone()).ok().flatten()
}

/// Stops the clock of the call that this task runs until it is dropped. Does nothing outside a call.
pub struct Paused(Option<Arc<CallClock>>, ApprovalId);

/// Stops the clock of the call that this task runs, if there is one, while a person is asked.
pub fn pause(approval: ApprovalId) -> Paused {
    let clock = CLOCK.try_with(Arc::clone).ok();
    if let Some(clock) = &clock {
        clock.waiting.send_modify(|count| *count += 1);
        if let Some(owner) = &clock.owner {
            owner.send_modify(|open| open.push(approval));
        }
    }
    Paused(clock, approval)
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some(clock) = &self.0 {
            clock.waiting.send_modify(|count| *count -= 1);
            if let Some(owner) = &clock.owner {
                owner.send_modify(|open| {
                    if let Some(at) = open.iter().position(|approval| *approval == self.1) {
                        open.remove(at);
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn the_time_of_a_question_is_not_counted() {
        let clock = CallClock::new(None, None);
        let approval = "appr_0123456789ab".parse().expect("an id");
        let expired = clock.expired(Duration::from_millis(1));
        tokio::pin!(expired);
        // Stopped before the first look: the time that is left does not begin.
        let paused = clock.clone().scope(async { pause(approval) }).await;
        let is_over = (&mut expired).now_or_never().is_some();
        std::thread::park_timeout(Duration::from_millis(5));
        assert!(!is_over && (&mut expired).now_or_never().is_none());
        drop(paused);
        expired.await;
    }
}
