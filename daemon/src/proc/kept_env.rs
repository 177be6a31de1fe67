//! The environment that the shim of a process keeps for a restart, read in parts.

use super::handle::{Command, NoReply, Proc};
use crate::store::shim_level;
use toold_format::frame::NO_ENV;

/// A part of the environment.
#[derive(Debug)]
pub struct EnvPart {
    /// The length of all.
    pub total: u64,
    pub data: Vec<u8>,
}

impl Proc {
    /// Returns the variables as `NAME=value`. None: no shim has them any more, or it is of an earlier version.
    pub async fn read_env(&self) -> Result<Option<Vec<Vec<u8>>>, NoReply> {
        if !shim_level::keeps_env(self.spec.shim_level) {
            return Ok(None);
        }
        let mut all = Vec::new();
        loop {
            let offset = all.len() as u64;
            let part = match self.request(0, |reply| Command::ReadEnv { offset, reply }).await {
                Ok(part) => part,
                Err(NoReply::Gone) if self.published_state().is_final() => return Ok(None),
                Err(e) => return Err(e),
            };
            if part.total == NO_ENV {
                return Ok(None);
            }
            all.extend_from_slice(&part.data);
            if all.len() as u64 >= part.total || part.data.is_empty() {
                break;
            }
        }
        let strings = all.strip_suffix(b"\0").map(|all| all.split(|byte| *byte == 0));
        Ok(Some(strings.into_iter().flatten().map(<[u8]>::to_vec).collect()))
    }
}
