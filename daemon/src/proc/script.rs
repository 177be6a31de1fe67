//! The part of a process that only a script has: what its calls show in its description.

use super::Proc;
use crate::call_clock::Questions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use toold_proto::approval::ApprovalId;
use toold_proto::kernel::ProcessKernel;
use toold_proto::script::ProcessScript;

/// The calls of a script so far.
#[derive(Clone, Default)]
pub struct ScriptCalls {
    /// Number of calls that were accepted.
    pub made: Arc<AtomicU64>,
    /// The questions that calls wait for.
    pub asking: Questions,
    /// Number of cells of a kernel that have started.
    pub cells: Arc<AtomicU64>,
    /// A cell of a kernel runs or waits.
    pub busy: Arc<AtomicBool>,
}

impl Proc {
    /// Shows the calls of its script from now on.
    pub fn show_calls(&self, calls: ScriptCalls) {
        if let Some(place) = &self.script {
            let _ = place.set(calls);
        }
    }

    pub(super) fn script_view(&self) -> Option<ProcessScript> {
        let (spec, calls) = (self.spec.script.as_ref()?, self.script.as_ref()?.get());
        Some(ProcessScript {
            language: spec.language,
            tools: spec.tools.clone(),
            calls: calls.map_or(0, |calls| calls.made.load(Relaxed)),
            max_calls: spec.max_calls,
        })
    }

    pub(super) fn kernel_view(&self) -> Option<ProcessKernel> {
        let (spec, calls) = (self.spec.script.as_ref()?, self.script.as_ref()?.get());
        spec.kernel.as_ref()?;
        Some(ProcessKernel {
            cells: calls.map_or(0, |calls| calls.cells.load(Relaxed)),
            busy: calls.is_some_and(|calls| calls.busy.load(Relaxed)) && !self.published_state().has_ended(),
            language: spec.language,
        })
    }

    /// Returns the approval that a call of this script waits for.
    pub(super) fn call_approval(&self) -> Option<ApprovalId> {
        self.script.as_ref()?.get()?.asking.borrow().first().copied()
    }
}
