//! Hands a recorded process to a shim: the launch block, and the confinement beside it.

use super::spawn::{Created, RunningGuard, SpawnError};
use super::{Registry, RunningSlot};
use crate::backend::LaunchFrame;
use crate::config::Config;
use crate::proc::Proc;
use crate::proc::task::{Task, TaskStart};
use crate::sandbox::wall::{PRIVATE_TMP, Prepared};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use toold_format::launch::{LaunchBlock, LaunchOptions, StringListBuf};
use toold_format::step;
use toold_shim::hooks;

impl Registry {
    /// Hands a recorded process to a shim, and starts its task. `program`: the file to execute, if it is not that of the spec.
    pub(super) async fn launch(
        self: &Arc<Self>,
        mut created: Created,
        program: Option<&str>,
        env: Vec<Vec<u8>>,
        slot: RunningSlot,
    ) -> Result<Arc<Proc>, SpawnError> {
        if created.proc.spec.sandbox.is_some() && created.confinement.is_none() {
            // Never weaker than its record.
            return self.fail(&created.proc, Some(&created.record), step::SANDBOX, libc::ENOTSUP).await;
        }
        if let Err(errno) = give_stage(&mut created).await {
            return self.fail(&created.proc, Some(&created.record), step::OVERLAY, errno).await;
        }
        let mut env = env;
        if let Some(prepared) = created.confinement.as_ref().filter(|_| created.proc.spec.sandbox.is_some()) {
            set_tmpdir(&mut env, &prepared.tmpdir, &created.proc);
        }
        created.proc.keep_secrets(&env);
        let block = encode(&created.proc, program, env, created.oom_file.as_deref(), &self.config);
        let (frame, guard): (_, RunningGuard) = match created.confinement {
            None => (LaunchFrame::launch(&block), Box::new(slot)),
            Some(wall) => {
                let Prepared { block: sandbox, fds, lease, .. } = *wall;
                (LaunchFrame::launch_sandboxed(&sandbox, &block, fds), Box::new((slot, lease)))
            }
        };
        match self.launcher.start(&frame).await {
            Ok(stream) => {
                let Created { proc, record, nonce, inbox, .. } = created;
                let task = Task::new(proc.clone(), inbox, self.launcher.clone(), record, nonce);
                self.run_task(task, TaskStart::Launched { stream, frame }, proc.clone(), Some(guard));
                Ok(proc)
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                self.fail(&created.proc, Some(&created.record), step::FORK, errno).await
            }
        }
    }
}

/// Gives a confined program its private directory for temporary files, unless it names one that it can write to.
fn set_tmpdir(env: &mut Vec<Vec<u8>>, tmpdir: &Path, proc: &Proc) {
    let named = env.iter().find_map(|variable| variable.strip_prefix(b"TMPDIR="));
    let named = named.map(|path| Path::new(std::ffi::OsStr::from_bytes(path)));
    let roots = proc.spec.sandbox.iter().flat_map(|spec| &spec.roots);
    let is_usable = match named {
        Some(path) => roots.into_iter().any(|root| path.starts_with(&root.path)),
        // Programs take `/tmp` by themselves.
        None => tmpdir == Path::new(PRIVATE_TMP),
    };
    if !is_usable {
        env.retain(|variable| !variable.starts_with(b"TMPDIR="));
        env.push([b"TMPDIR=", tmpdir.as_os_str().as_bytes()].concat());
    }
}

/// Moves the stage to the directory of its process, and waits until a change below it can be distinguished from one before.
async fn give_stage(created: &mut Created) -> Result<(), i32> {
    let fresh = created.confinement.as_mut().and_then(|confinement| confinement.stage.take());
    let start = match (fresh, &created.proc.spec.stage) {
        (Some(fresh), Some(_)) => {
            fresh.give_to(&created.proc.dir).map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))?
        }
        (None, None) => return Ok(()),
        // Never without its stage.
        (Some(_), None) | (None, Some(_)) => return Err(libc::ENOTSUP),
    };
    hooks::at("stage.given");
    while let Some(wait) = start.until_distinct() {
        tokio::time::sleep(wait).await;
    }
    Ok(())
}

pub(super) fn encode(
    proc: &Proc,
    program: Option<&str>,
    env: Vec<Vec<u8>>,
    oom_file: Option<&Path>,
    config: &Config,
) -> Vec<u8> {
    let spec = &proc.spec;
    let options = LaunchOptions {
        pty: spec.pty.is_some(),
        stdin_pipe: spec.stdin_pipe,
        merge: spec.merge,
        keep: proc.keeps_shim(),
        sync: config.survive_power_cut,
        rows: spec.pty.map_or(0, |s| s.rows as u16),
        cols: spec.pty.map_or(0, |s| s.cols as u16),
        log_max_bytes: spec.log_max_bytes,
        timeout_ms: spec.timeout_ms.unwrap_or(0),
        idle_ms: spec.idle_ms.unwrap_or(0),
        grace_ms: spec.timeout_grace_ms,
        hold_ms: if spec.hold { u32::try_from(config.hold_timeout_ms).unwrap_or(u32::MAX) } else { 0 },
    };
    // `spec` refused NUL in every string. One that has it all the same becomes empty, and the start fails.
    let c_string = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
    let dir = c_string(proc.dir.as_os_str().as_bytes());
    let (cwd, program) = (c_string(spec.cwd.as_bytes()), c_string(program.unwrap_or(&spec.program).as_bytes()));
    let oom_file = c_string(oom_file.map_or(b"", |p| p.as_os_str().as_bytes()));
    let (mut cgroups, mut argv, mut variables) =
        (StringListBuf::default(), StringListBuf::default(), StringListBuf::default());
    spec.cgroups.iter().for_each(|dir| cgroups.push(dir.join("cgroup.procs").as_os_str().as_bytes()));
    spec.argv.iter().for_each(|arg| argv.push(arg.as_bytes()));
    env.iter().for_each(|variable| variables.push(variable));
    let block = LaunchBlock {
        options,
        dir: &dir,
        cwd: &cwd,
        program: &program,
        oom_file: &oom_file,
        cgroups: cgroups.as_list(),
        argv: argv.as_list(),
        env: variables.as_list(),
    };
    block.encode()
}
