//! Checks a request that replaces a running process, before anything is killed.

use super::Registry;
use super::spawn::SpawnError;
use crate::backend::cgroup;
use crate::proc::view;
use crate::spec::SpawnRequest;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::path::Path;
use toold_format::step;
use toold_proto::ProcId;

impl Registry {
    /// Refuses limits that cannot be enforced while the process that would be replaced still runs.
    pub(super) fn check_limits(&self, request: &SpawnRequest) -> Result<(), SpawnError> {
        if !request.wanted.required {
            return Ok(());
        }
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(SpawnError::Random)?;
        let id = ProcId::from_bits(u64::from_be_bytes(random));
        let tried = request.wanted.enforce(id, cgroup::GroupOwner::new(&self.procs_dir), request.spec.log_max_bytes);
        match request.wanted.refuse(&tried) {
            Some(limits) => Err(SpawnError::Unenforced(limits)),
            None => {
                cgroup::remove(&tried.dirs);
                Ok(())
            }
        }
    }
}

/// Refuses a program that cannot be executed, or a directory that is gone, while the process that it would replace still
/// runs.
pub(super) fn check_program(request: &SpawnRequest) -> Result<(), SpawnError> {
    let spec = &request.spec;
    let no_dir = match std::fs::metadata(&spec.cwd) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(libc::ENOTDIR),
        Err(e) => Some(e.raw_os_error().unwrap_or(libc::EIO)),
    };
    if let Some(errno) = no_dir {
        return Err(SpawnError::NotExecutable(view::failure(spec, step::CHDIR, errno)));
    }
    let path = Path::new(&spec.cwd).join(&spec.program);
    let access = accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS).map_err(|e| e.raw_os_error());
    let errno = request.unresolved.map_or(access, Err);
    errno.map_err(|errno| SpawnError::NotExecutable(view::failure(spec, step::EXEC, errno)))
}
