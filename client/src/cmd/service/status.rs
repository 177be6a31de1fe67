//! `service status`: shows the units, the daemon, the socket, and whether the versions agree.

use super::INFO_TIMEOUT;
use super::systemd::{Linger, SERVICE, SOCKET, Systemd, Unit};
use crate::blocking::{CallError, Client};
use crate::cmd::Context;
use crate::daemon_probe::{self, DaemonState};
use crate::error::{CliError, DONE, FAILED};
use crate::render::table::facts;
use crate::render::time::duration;
use serde::Serialize;
use std::path::{Path, PathBuf};
use toold_proto::results::DaemonInfoResult;
use toold_proto::{api, params};

/// Our own version, which the daemon should have too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Serialize)]
struct Status {
    service: Seen,
    socket: Seen,
    daemon: Option<Running>,
    /// The socket that toolctl uses.
    path: PathBuf,
    toolctl: &'static str,
    versions_agree: Option<bool>,
    linger: Linger,
}

/// A unit, in short.
#[derive(Debug, Serialize)]
struct Seen {
    installed: bool,
    state: String,
    file: String,
    restarts: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Running {
    version: String,
    pid: u32,
    uptime_ms: u64,
    /// It is the one that systemd started.
    by_systemd: bool,
}

impl Seen {
    fn new(unit: &Unit) -> Seen {
        Seen {
            installed: unit.loaded(),
            state: unit.describe(),
            file: unit.get("FragmentPath").into(),
            restarts: unit.get("NRestarts").parse().ok(),
        }
    }
}

/// Returns the daemon, if one runs. Never starts one.
pub fn daemon(path: &Path, service: Option<&Unit>) -> Result<Option<Box<DaemonInfoResult>>, CallError> {
    let mut client = match daemon_probe::probe(path, INFO_TIMEOUT) {
        DaemonState::Running(client) => client,
        // systemd runs one whose state directory is another.
        DaemonState::SocketActivated if service.is_some_and(|unit| unit.main_pid().is_some()) => Client::connect(path)?,
        DaemonState::SocketActivated => return Ok(None),
        DaemonState::Unreachable(error) => return Err(error),
    };
    client.set_timeout(INFO_TIMEOUT)?;
    client.call::<api::DaemonInfo>(&params::Empty::default()).map(|info| Some(Box::new(info)))
}

pub fn run(cx: &mut Context<'_>) -> Result<u8, CliError> {
    let systemd = Systemd::find()?;
    let (service, socket) = (systemd.unit(SERVICE)?, systemd.unit(SOCKET)?);
    let path = cx.connection.socket().to_path_buf();
    let info = daemon(&path, Some(&service)).ok().flatten();
    let status = Status {
        daemon: info.as_ref().map(|info| Running {
            version: info.version.clone(),
            pid: info.pid,
            uptime_ms: info.uptime_ms,
            by_systemd: service.main_pid() == Some(info.pid),
        }),
        versions_agree: info.as_ref().map(|info| info.version == VERSION),
        service: Seen::new(&service),
        socket: Seen::new(&socket),
        path,
        toolctl: VERSION,
        linger: Linger::read(),
    };
    if cx.json {
        cx.print_json(&status)?
    } else {
        cx.console.print(&facts(&lines(&status), cx.console.style))?
    }
    if !status.service.installed && !cx.json {
        cx.console.message("`toolctl service install` sets it up");
    }
    // As systemctl does: a missing unit is a failure.
    Ok(if status.service.installed && status.socket.state.starts_with("active") { DONE } else { FAILED })
}

fn lines(status: &Status) -> Vec<(&'static str, String)> {
    let mut lines = vec![("service", status.service.state.clone())];
    if let Some(restarts) = status.service.restarts.filter(|n| *n > 0) {
        lines.push(("", format!("restarted {restarts} times by systemd")));
    }
    if !status.service.file.is_empty() {
        lines.push(("", status.service.file.clone()));
    }
    lines.push(("socket", status.socket.state.clone()));
    lines.push(("", status.path.display().to_string()));
    match &status.daemon {
        None => lines.push(("daemon", "none runs; the next call starts it".into())),
        Some(daemon) => {
            let by =
                if daemon.by_systemd { "by systemd" } else { "without systemd: `toolctl service start` changes that" };
            lines.push(("daemon", format!("pid {} for {}, started {by}", daemon.pid, duration(daemon.uptime_ms))));
        }
    }
    let version = match &status.daemon {
        None => format!("toolctl {VERSION}"),
        Some(daemon) if daemon.version == VERSION => format!("toolctl and toold {VERSION}"),
        Some(daemon) => format!("toolctl {VERSION}, but toold {}: {}", daemon.version, SKEW_FIX),
    };
    lines.push(("version", version));
    let linger = match status.linger {
        Linger::On => "on: processes outlive your last logout".into(),
        other => other.advice().unwrap_or_default().to_owned(),
    };
    lines.push(("lingering", linger));
    lines
}

/// Returns the command that replaces an old daemon by the new one.
pub const SKEW_FIX: &str = "`toolctl service restart`, or `toolctl shutdown` without systemd, starts the new one";
