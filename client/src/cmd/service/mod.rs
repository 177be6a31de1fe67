//! `service`: lets systemd run the daemon.

mod files;
mod install;
pub mod status;
pub mod systemd;

use super::Context;
use crate::autostart::{Backoff, program};
use crate::daemon_probe::{DaemonState, probe, unit_socket};
use crate::error::{CliError, DONE};
use serde::Serialize;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use systemd::{SERVICE, SOCKET, Systemd};
use toold_proto::{api, params};

/// The time that a stopping daemon may take: it gives its clients less.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a daemon may take to answer `daemon.info`.
pub const INFO_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install units, completions and manual pages; systemd then starts the daemon when it is needed
    #[command(after_help = "Examples:\n  toolctl service install\n  toolctl service install --units-only")]
    Install(InstallArgs),
    /// Remove what install made; processes keep running
    #[command(after_help = "Examples:\n  toolctl service uninstall\n  toolctl service uninstall --json")]
    Uninstall,
    /// Start the daemon, and let systemd start it when it is needed
    #[command(after_help = "Examples:\n  toolctl service start\n  toolctl service start && toolctl service status")]
    Start,
    /// Stop the daemon, and do not let systemd start it again; processes keep running
    #[command(after_help = "Examples:\n  toolctl service stop\n  toolctl service stop && toolctl service status")]
    Stop,
    /// Restart the daemon, as after an upgrade; processes keep running
    #[command(after_help = "Examples:\n  toolctl service restart\n  cargo install --path . && toolctl service restart")]
    Restart,
    /// Show the units, the daemon, the socket and whether the versions agree
    #[command(after_help = "Examples:\n  toolctl service status\n  toolctl service status --json | jq .service")]
    Status,
    /// Show the daemon's own log, from the journal
    #[command(after_help = "Examples:\n  toolctl service logs -f\n  toolctl service logs -n 50 -- --since today")]
    Logs(LogsArgs),
}

#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// Only the units: no completions, no manual pages
    #[arg(long)]
    pub units_only: bool,
}

#[derive(Debug, clap::Args)]
struct LogsArgs {
    /// Show what comes too, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u64>,
    /// More arguments for journalctl
    #[arg(last = true, value_name = "ARG")]
    more: Vec<String>,
}

/// The result of an action, for a document.
#[derive(Debug, Serialize)]
struct Done<'a> {
    did: &'a str,
    note: Option<&'a str>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match args.action {
        Action::Install(args) => install::install(&args, &Systemd::find()?, cx),
        Action::Uninstall => install::uninstall(&Systemd::find()?, cx),
        Action::Start => start(&Systemd::find()?, cx),
        Action::Stop => stop(&Systemd::find()?, cx),
        Action::Restart => restart(&Systemd::find()?, cx),
        Action::Status => status::run(cx),
        Action::Logs(args) => logs(args, &Systemd::find()?, cx),
    }
}

fn start(systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    installed(systemd)?;
    stop_unmanaged_daemon(systemd, cx)?;
    systemd.act(&["start", SOCKET, SERVICE])?;
    print_done("systemd listens, and the daemon runs", None, cx)
}

fn stop(systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    installed(systemd)?;
    systemd.act(&["stop", SOCKET, SERVICE])?;
    let note = "until `toolctl service start`, the next call starts a daemon of its own; --no-autostart does not";
    print_done("the daemon is stopped; its processes keep running", Some(note), cx)
}

fn restart(systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    installed(systemd)?;
    stop_unmanaged_daemon(systemd, cx)?;
    systemd.act(&["start", SOCKET])?;
    systemd.act(&["restart", SERVICE])?;
    print_done("the daemon was restarted; its processes kept running", None, cx)
}

fn logs(args: LogsArgs, systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    installed(systemd)?;
    let mut command = Command::new("journalctl");
    command.args(["--user", "--unit", SERVICE]);
    if let Some(lines) = args.lines {
        command.args(["--lines", &lines.to_string()]);
    }
    if args.follow {
        command.arg("--follow");
    }
    if cx.json {
        command.args(["--output", "json"]);
    }
    let status = command.args(args.more).status().map_err(|source| {
        CliError::Unavailable(format!(
            "the journal cannot be shown: journalctl: {source}; is systemd-journald installed?"
        ))
    })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::error::FAILED))
}

/// Prints the result: a sentence, or a document.
fn print_done(did: &str, note: Option<&str>, cx: &mut Context<'_>) -> Result<u8, CliError> {
    if cx.json {
        cx.print_json(&Done { did, note })?
    } else {
        cx.console.print(&format!("{did}\n"))?;
        note.into_iter().for_each(|note| cx.console.message(note));
    }
    Ok(DONE)
}

fn installed(systemd: &Systemd) -> Result<(), CliError> {
    if systemd.unit(SERVICE)?.loaded() {
        Ok(())
    } else {
        Err(CliError::Unavailable(format!("{SERVICE} is not installed; `toolctl service install` does it")))
    }
}

/// Stops a daemon that systemd did not start: it holds the state directory, and systemd's could not run beside it. Reports
/// that. Processes keep running.
fn stop_unmanaged_daemon(systemd: &Systemd, cx: &mut Context<'_>) -> Result<(), CliError> {
    let DaemonState::Running(mut client) = probe(cx.connection.socket(), INFO_TIMEOUT) else { return Ok(()) };
    let Ok(info) = client.call::<api::DaemonInfo>(&params::Empty::default()) else { return Ok(()) };
    // One with another socket and another state directory does not conflict.
    let other_socket = unit_socket().is_none_or(|own| own != *info.paths.socket)
        && std::env::var_os("TOOLD_STATE_DIR").is_some_and(|dir| !dir.is_empty());
    if other_socket || systemd.unit(SERVICE)?.main_pid() == Some(info.pid) {
        return Ok(());
    }
    client.call::<api::DaemonShutdown>(&params::ShutdownParams { kill: false })?;
    let mut wait = Backoff::until(Instant::now() + STOP_TIMEOUT);
    while is_running(info.pid) {
        if !wait.once() {
            let why =
                format!("the daemon with pid {} was asked to stop and is still running; `kill {}`", info.pid, info.pid);
            return Err(CliError::Unavailable(why));
        }
    }
    if !cx.json {
        cx.console.message(&format!(
            "stopped the daemon that ran without systemd (pid {}); its processes keep running",
            info.pid
        ));
    }
    Ok(())
}

/// Reports whether a process runs. A zombie holds nothing any more.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Returns the daemon that the unit runs: the one beside this program.
fn daemon_program() -> Result<PathBuf, CliError> {
    let program = program();
    if program.is_absolute() {
        return Ok(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(&program)).find(|path| path.is_file());
    found.filter(|path| path.is_absolute()).ok_or_else(|| {
        CliError::Unavailable("toold is neither beside toolctl nor in PATH: install both into one directory".into())
    })
}
