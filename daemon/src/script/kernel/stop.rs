//! `kernel.interrupt`, `kernel.reset` and `kernel.close`. An interrupt is SIGINT to the group of the interpreter, as Ctrl-C in a
//! terminal: its main thread gets it, and what the cell has started. A driver that may lose a signal, or die of one, has asked
//! for the interrupt before (`kernel.stopping`), and gets a moment for it.

use super::super::{LiveScript, Scripts};
use super::{Kernel, unwritable};
use crate::call_error::{already_exited, no_reply};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::control::Control;
use crate::proc::handle::{Kill, NoReply};
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::state::State;
use crate::tools::dispatcher::cancel_all;
use crate::tools::journal::{CallEntry, QueuedCell, StopCause};
use crate::tools::owner::retired;
use std::sync::Arc;
use std::time::Duration;
use toold_format::slots::Cause;
use toold_proto::kernel::{
    KernelCloseParams, KernelCloseResult, KernelInterruptParams, KernelInterruptResult, KernelResetParams,
    KernelResetResult,
};
use toold_proto::results::KillStatus;
use toold_proto::script::{Language, ScriptStatus};
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// The default time in which an interrupted cell ends.
pub(super) const INTERRUPT_GRACE_MS: u64 = 2000;
/// The time in which a driver reports that the code of a cell runs. A signal before that would be lost.
const EXECUTING_TIMEOUT: Duration = Duration::from_millis(250);
/// The time in which a driver that asked for the interrupt ends the cell by itself, before a signal is sent to it.
const ASKED_TIME: Duration = Duration::from_millis(200);
/// The time in which a driver fetches a cell that waits for it.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which a signal is sent again to an interpreter that can lose one.
const SIGNAL_AGAIN: Duration = Duration::from_millis(300);
/// The time in which a new interpreter starts.
const RESET_TIMEOUT: Duration = Duration::from_secs(20);

/// A client that ends something.
#[derive(Debug, Clone, Copy)]
pub struct Stopper {
    pub uid: u32,
    pub pid: i32,
}

impl Stopper {
    fn kill(self, cause: Cause) -> Kill {
        Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause, uid: self.uid, pid: self.pid }
    }
}

/// Counts a signal that is on its way until it is dropped: no cell begins meanwhile, which it would hit.
struct SignalOnItsWay<'a>(&'a Kernel);

impl<'a> SignalOnItsWay<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        kernel.update(|cells| cells.signals += 1);
        SignalOnItsWay(kernel)
    }
}

impl Drop for SignalOnItsWay<'_> {
    fn drop(&mut self) {
        self.0.update(|cells| cells.signals -= 1);
    }
}

impl Scripts {
    /// `kernel.interrupt`.
    pub async fn interrupt_kernel(
        &self,
        call: KernelInterruptParams,
        by: Stopper,
    ) -> Result<KernelInterruptResult, RpcError> {
        let proc = self.find_kernel(call.id.as_deref(), call.name.as_deref())?;
        let Some(live) = self.running_kernel(&proc) else { return Err(already_exited(&proc)) };
        let id = proc.spec.id;
        if let Some(kernel) = &live.kernel {
            let _ = tokio::time::timeout(BEGIN_TIMEOUT, fetched(kernel)).await;
        }
        let running = live.kernel.as_ref().and_then(|kernel| kernel.read(|cells| cells.running().cloned()));
        let Some(running) = running.filter(|running| !running.cell.is_reset) else {
            return Ok(KernelInterruptResult { id, cell: None, state_kept: true });
        };
        let cell = running.cell.number;
        let grace_ms = self.grace(call.grace_ms);
        let mut state_kept = self.stop_cell(&proc, &live, cell, StopCause::Client, grace_ms).await?;
        if !state_kept {
            self.kill_kernel(&proc, &live, by.kill(Cause::Client)).await;
        }
        state_kept &= !proc.published_state().has_ended();
        Ok(KernelInterruptResult { id, cell: Some(cell), state_kept })
    }

    /// `kernel.reset`: the driver replaces its interpreter in the same process, so id, log and channel stay.
    pub async fn reset_kernel(&self, call: KernelResetParams, by: Stopper) -> Result<KernelResetResult, RpcError> {
        let proc = self.find_kernel(call.id.as_deref(), call.name.as_deref())?;
        let Some(live) = self.running_kernel(&proc) else { return Err(already_exited(&proc)) };
        let Some(kernel) = &live.kernel else { return Err(already_exited(&proc)) };
        let (cell, dropped) = queue_reset(kernel, &live)?;
        hooks::at("cell.reset");
        self.drop_waiting(&proc, &live, &dropped, (ScriptStatus::Interrupted, "the kernel was reset before")).await;
        let running = kernel.read(|cells| cells.running().cloned()).filter(|running| !running.cell.is_reset);
        let interrupted = running.map(|running| running.cell.number);
        if let Some(running) = interrupted {
            let grace_ms = self.grace(call.grace_ms);
            if !self.stop_cell(&proc, &live, running, StopCause::Reset, grace_ms).await? {
                // A driver replaces its interpreter then, in whatever it runs. One that cannot ends by the signal.
                let _signal = SignalOnItsWay::new(kernel);
                signal(&proc, libc::SIGHUP).await?;
            }
        }
        tokio::select! {
            () = kernel.ended(cell) => {}
            _ = ended(&proc) => {}
            () = tokio::time::sleep(RESET_TIMEOUT) => self.kill_kernel(&proc, &live, by.kill(Cause::Client)).await,
        }
        if proc.published_state().has_ended() {
            let message =
                format!("the interpreter of {} could not be replaced and has ended; open another kernel", proc.spec.id);
            return Err(RpcError::new(ErrorKind::Unavailable, message).with("id", proc.spec.id.to_string()));
        }
        Ok(KernelResetResult { id: proc.spec.id, cell, interrupted, dropped })
    }

    /// `kernel.close`: ends the authority, then the calls, then the tree.
    pub async fn close_kernel(&self, call: KernelCloseParams, by: Stopper) -> Result<KernelCloseResult, RpcError> {
        let proc = self.find_kernel(call.id.as_deref(), call.name.as_deref())?;
        let live = self.live(proc.spec.id);
        if let Some(live) = &live {
            cancel_all(live.owner.retire(), &retired()).await;
        }
        let grace_ms = call.grace_ms.unwrap_or(GRACE_MS).min(self.approvals.registry.config.max_wait_ms);
        let killed = kill_all(vec![proc.clone()], Kill { grace_ms, ..by.kill(Cause::Client) }).await;
        if let Some(live) = live.filter(|_| proc.published_state().has_ended()) {
            let _ = live.ended.subscribe().wait_for(|ended| *ended).await;
        }
        let status = killed.iter().map(|killed| killed.status).max().unwrap_or(KillStatus::AlreadyExited);
        let survivors = killed.iter().flat_map(|killed| killed.survivors.iter().map(|member| member.pid)).collect();
        Ok(KernelCloseResult { id: proc.spec.id, status, survivors })
    }

    fn running_kernel(&self, proc: &Proc) -> Option<Arc<LiveScript>> {
        self.live(proc.spec.id).filter(|live| live.kernel.is_some() && !proc.published_state().has_ended())
    }

    fn grace(&self, grace_ms: Option<u64>) -> Duration {
        let max = self.approvals.registry.config.max_wait_ms;
        Duration::from_millis(grace_ms.unwrap_or(INTERRUPT_GRACE_MS).min(max))
    }

    /// Interrupts a cell. Returns true if it has ended in time.
    pub(super) async fn stop_cell(
        &self,
        proc: &Arc<Proc>,
        live: &LiveScript,
        cell: u64,
        cause: StopCause,
        grace: Duration,
    ) -> Result<bool, RpcError> {
        let Some(kernel) = &live.kernel else { return Ok(true) };
        let _ = tokio::time::timeout(EXECUTING_TIMEOUT, executing(kernel, cell)).await;
        let signal_on_its_way = SignalOnItsWay::new(kernel);
        let entry = CallEntry::CellStopped { cell, cause, at: wall_ms() };
        let stopped: Result<bool, RpcError> = kernel.update(|cells| {
            if cells.running().is_none_or(|running| running.cell.number != cell) {
                return Ok(false);
            }
            live.owner.record(&entry).map_err(|e| unwritable(&e))?;
            cells.stop(cell, cause);
            Ok(true)
        });
        if !stopped? {
            return Ok(true);
        }
        hooks::at("cell.stopped");
        let loses_signals = loses_signals(proc);
        if loses_signals {
            // What the cell has started gets the signal in any case.
            let _ = tokio::time::timeout(ASKED_TIME.min(grace), kernel.ended(cell)).await;
        }
        signal(proc, libc::SIGINT).await?;
        let stop = async {
            tokio::select! {
                () = kernel.ended(cell) => {}
                _ = ended(proc) => {}
            }
        };
        let stop = tokio::time::timeout(grace, stop);
        tokio::pin!(stop);
        if loses_signals {
            // No other cell begins before the last signal was sent: it would be hit.
            while tokio::time::timeout(SIGNAL_AGAIN, &mut stop).await.is_err() {
                signal(proc, libc::SIGINT).await?;
            }
            drop(signal_on_its_way);
        } else {
            drop(signal_on_its_way);
            let _ = stop.await;
        }
        Ok(kernel.read(|cells| cells.has_ended(cell)))
    }

    /// Kills a kernel, and waits until its end was dealt with.
    pub(super) async fn kill_kernel(&self, proc: &Arc<Proc>, live: &LiveScript, kill: Kill) {
        kill_all(vec![proc.clone()], kill).await;
        if proc.published_state().has_ended() {
            let _ = live.ended.subscribe().wait_for(|ended| *ended).await;
        }
    }
}

/// Returns true if an interpreter can lose a signal: node does where a cell reaches its first `await`.
fn loses_signals(proc: &Proc) -> bool {
    proc.spec.script.as_ref().is_some_and(|script| script.language == Some(Language::Javascript))
}

async fn ended(proc: &Proc) {
    let _ = proc.subscribe().wait_for(State::has_ended).await;
}

/// Waits until a cell that was accepted runs, if none does: an interpreter that starts has not fetched its first one.
async fn fetched(kernel: &Kernel) {
    let mut changes = kernel.changed.subscribe();
    while kernel.read(|cells| cells.running().is_none() && !cells.waiting().is_empty()) {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the driver has reported that the code of a cell runs, or the cell has ended.
async fn executing(kernel: &Kernel, cell: u64) {
    let mut changes = kernel.changed.subscribe();
    let is_waiting = |cells: &super::Cells| {
        cells.running().is_some_and(|running| running.cell.number == cell && !running.is_executing)
    };
    while kernel.read(is_waiting) {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Sends a signal to the group of the interpreter. One that has ended needs none.
async fn signal(proc: &Proc, signal: i32) -> Result<(), RpcError> {
    let mut sent = proc.control(Control::Signal(signal)).await;
    if matches!(sent, Err(NoReply::Gone)) && !proc.published_state().has_ended() {
        // The connection broke: the request waits for the next one. A second signal does no harm.
        sent = proc.control(Control::Signal(signal)).await;
    }
    match sent {
        Ok(0 | libc::ESRCH) => Ok(()),
        Err(NoReply::Gone) if proc.published_state().has_ended() => Ok(()),
        Err(e) => Err(no_reply(proc, e)),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(RpcError::new(ErrorKind::Internal, format!("signal {}: {why}", proc.spec.id)))
        }
    }
}

/// Queues a reset behind the cell that runs. Returns its number, and the cells that wait before it. A reset that is under way is
/// the same one.
fn queue_reset(kernel: &Kernel, live: &LiveScript) -> Result<(u64, Vec<u64>), RpcError> {
    kernel.update(|cells| {
        if let Some(reset) = cells.reset() {
            return Ok((reset, Vec::new()));
        }
        let waiting = cells.waiting();
        let cell = cells.next_number();
        let queued = QueuedCell { cell, code: None, request_id: None, timeout_ms: None, max_calls: 0, at: wall_ms() };
        let place = live.owner.record(&CallEntry::Cell(queued.clone())).map_err(|e| unwritable(&e))?;
        cells.queue(&queued, place);
        Ok((cell, waiting))
    })
}
