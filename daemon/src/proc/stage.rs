//! The stage of a process, as its description shows it.

use super::handle::Proc;
use super::state::State;
use crate::store::stage::StageEnd;
use toold_proto::stage::{ProcessStage, StageState};

impl Proc {
    /// Returns the state of its stage. A process without one has a stage that ended with it.
    pub fn stage_state(&self) -> StageState {
        self.stage_view(&self.published_state()).map_or(StageState::Discarded, |stage| stage.state)
    }

    pub(super) fn stage_view(&self, state: &State) -> Option<ProcessStage> {
        let stage = self.spec.stage.as_deref()?;
        let state = match stage.end.get() {
            Some(StageEnd::Committed) => StageState::Committed,
            Some(StageEnd::Discarded) => StageState::Discarded,
            None if state.is_final() => StageState::Ready,
            None => StageState::Running,
        };
        Some(ProcessStage { state, roots: stage.shown_roots() })
    }
}
