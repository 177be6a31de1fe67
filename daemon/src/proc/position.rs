//! The exact end of the output, on demand.

use super::handle::{Command, NoReply, Proc};
use crate::store::shim_level;

/// Connections on which the shim is asked. The first may break because the daemon was slow, or the shim of a daemon before.
const MAX_TRIES: u32 = 2;

impl Proc {
    /// Returns the end of the output after everything that was in the program's pipes when the shim got the request. What
    /// is before it can be read from the log. A shim of an earlier version is not asked: then it is the end of what was counted.
    pub async fn position(&self) -> Result<u64, NoReply> {
        let counted = || self.state().progress.counts.end;
        if !shim_level::reports_position(self.spec.shim_level) {
            return Ok(counted());
        }
        let mut left = MAX_TRIES;
        loop {
            left -= 1;
            match self.request(0, Command::Position).await {
                Ok(end) => return Ok(end),
                Err(NoReply::Gone) if self.published_state().is_final() => return Ok(counted()),
                // The connection broke: the request waits for the next one.
                Err(NoReply::Gone) if left > 0 => {}
                Err(e) => return Err(e),
            }
        }
    }
}
