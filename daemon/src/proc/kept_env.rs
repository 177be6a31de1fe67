//! The environment that the shim of a process keeps for a restart, read in parts.

use super::control::Control;
use super::handle::{Command, NoReply, Proc};
use crate::store::shim_level;
use toold_format::frame::{MAX_WRITE_LEN, NO_ENV};

/// A part of the environment.
#[derive(Debug)]
pub struct EnvPart {
    /// The length of all.
    pub total: u64,
    pub data: Vec<u8>,
}

/// A part of the environment of the next run.
#[derive(Debug)]
pub struct GivenPart {
    pub offset: u64,
    /// The length of all.
    pub total: u64,
    pub data: Vec<u8>,
}

impl Proc {
    /// Returns the variables as `NAME=value`. None: no shim has them any more, or it is of an earlier version.
    pub async fn read_env(&self) -> Result<Option<Vec<Vec<u8>>>, NoReply> {
        if shim_level::keeps_env(self.spec.shim_level) { self.read_kept(false).await } else { Ok(None) }
    }

    /// Returns the variables that a call gave for the next run, as `read_env` does.
    pub async fn read_given_env(&self) -> Result<Option<Vec<Vec<u8>>>, NoReply> {
        if shim_level::keeps_given_env(self.spec.shim_level) { self.read_kept(true).await } else { Ok(None) }
    }

    /// Makes the shim stay after the end of the program, until `Control::Release`, with the variables of the next run.
    /// `given`: None if they are those of this one. Returns false if the shim cannot.
    pub async fn keep_env(&self, given: Option<&[Vec<u8>]>) -> Result<bool, NoReply> {
        if !shim_level::keeps_given_env(self.spec.shim_level) {
            return Ok(false);
        }
        let Some(given) = given else { return Ok(self.control(Control::KeepOwnEnv).await? == 0) };
        let mut all = Vec::with_capacity(given.iter().map(|variable| variable.len() + 1).sum());
        for variable in given {
            all.extend_from_slice(variable);
            all.push(0);
        }
        let total = all.len() as u64;
        let mut offset = 0;
        loop {
            let data = all[offset..].iter().take(MAX_WRITE_LEN).copied().collect::<Vec<u8>>();
            let len = data.len();
            let part = Box::new(GivenPart { offset: offset as u64, total, data });
            if self.request(0, |reply| Command::KeepEnv { part, reply }).await? != 0 {
                return Ok(false);
            }
            offset += len;
            if offset == all.len() {
                return Ok(true);
            }
        }
    }

    async fn read_kept(&self, given: bool) -> Result<Option<Vec<Vec<u8>>>, NoReply> {
        let mut all = Vec::new();
        loop {
            let offset = all.len() as u64;
            let part = match self.request(0, |reply| Command::ReadEnv { offset, given, reply }).await {
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
