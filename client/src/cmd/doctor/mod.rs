//! `doctor`: checks the installation and suggests fixes. It starts nothing, but for one job that tries the way to an agent's hook
//! if one is installed and a daemon runs.

mod checks;
mod integrations;
mod kernel;
mod start;

use super::Context;
use super::integrate::UserDirs;
use super::service::status;
use super::service::systemd::{Linger, SERVICE, SOCKET, Systemd, Unit, uid};
use crate::autostart::program;
use crate::blocking::CallError;
use crate::error::{CliError, DONE, FAILED};
use crate::render::text::escape_control;
use crate::render::wrap::hanging_indent;
use crate::render::{Style, Tint};
use crate::{daemon_probe, sys};
use serde::Serialize;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use toold_proto::paths;
use toold_proto::results::DaemonInfoResult;

/// The indent of a fix, below the text that it belongs to.
const FIX_INDENT: usize = 23;
/// The same on a narrow terminal, where the text stands below its name.
const NARROW_FIX_INDENT: usize = 6;
const NARROW_WIDTH: usize = 48;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Ok,
    Warning,
    Problem,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub severity: Severity,
    pub text: String,
    /// The command that fixes it.
    pub fix: Option<String>,
}

/// A file or directory as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathState {
    pub path: PathBuf,
    pub kind: PathKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    Missing,
    /// It cannot be read.
    Hidden,
    Dir {
        uid: u32,
        mode: u32,
    },
    Socket {
        uid: u32,
        mode: u32,
    },
    Other,
}

/// All facts, gathered before any check.
pub struct Facts {
    pub uid: Option<u32>,
    pub daemon: Result<Option<Box<DaemonInfoResult>>, CallError>,
    /// The daemon that the lock of the state directory names, and the socket that it stored if that is not ours.
    pub holder: Option<(u32, Option<PathBuf>)>,
    pub socket: PathState,
    pub socket_dir: PathState,
    pub state: Option<PathState>,
    pub free: Option<u64>,
    /// systemd runs for this user.
    pub manager: bool,
    pub units: Result<(Unit, Unit), String>,
    pub linger: Linger,
    pub group: Option<checks::Group>,
    pub program: Option<PathBuf>,
    /// The config file that the next start reads, as the daemon reads it. None: there is no daemon to read it.
    pub config: Option<start::Config>,
    /// The error of writing where the daemon keeps its state.
    pub state_error: Option<String>,
    /// The same where it puts its socket.
    pub socket_error: Option<String>,
}

/// The report of `--json`. `verdict` and `mend` are the older names of `severity` and `fix`, and stay for programs that read them.
#[derive(Debug, Serialize)]
struct Report<'a> {
    verdict: Severity,
    checks: Vec<ReportCheck<'a>>,
    severity: Severity,
}

#[derive(Debug, Serialize)]
struct ReportCheck<'a> {
    name: &'a str,
    verdict: Severity,
    text: &'a str,
    mend: Option<&'a str>,
    severity: Severity,
    fix: Option<&'a str>,
}

fn report(severity: Severity, checks: &[Check]) -> Report<'_> {
    let checks = checks.iter().map(|check| ReportCheck {
        name: check.name,
        verdict: check.severity,
        text: &check.text,
        mend: check.fix.as_deref(),
        severity: check.severity,
        fix: check.fix.as_deref(),
    });
    Report { verdict: severity, checks: checks.collect(), severity }
}

pub fn run(cx: &mut Context<'_>) -> Result<u8, CliError> {
    let facts = gather(cx.connection.socket(), cx.connection.config());
    let mut checks = checks::all(&facts);
    let dirs = UserDirs::from_env(|name| std::env::var_os(name));
    let daemon = matches!(facts.daemon, Ok(Some(_))).then(|| cx.connection.socket());
    checks.extend(integrations::checks(dirs.as_ref(), daemon));
    let worst = checks.iter().map(|check| check.severity).max().unwrap_or(Severity::Ok);
    if cx.json {
        cx.print_json(&report(worst, &checks))?;
    } else {
        cx.console.print(&format_report(&checks, cx.console.style))?;
    }
    Ok(if worst == Severity::Problem { FAILED } else { DONE })
}

fn gather(socket: &Path, config: Option<&Path>) -> Facts {
    let units = Systemd::find().and_then(|systemd| Ok((systemd.unit(SERVICE)?, systemd.unit(SOCKET)?)));
    let units = units.map_err(|failure| failure.to_string());
    let daemon = status::daemon(socket, units.as_ref().ok().map(|(service, _)| service));
    let info = daemon.as_ref().ok().and_then(Option::as_deref);
    let state = info.map(|info| info.paths.state_dir.clone().into()).or_else(paths::state_dir);
    let program = daemon_program();
    let config = start::Config::check(program.as_deref(), config, info.and_then(|info| info.paths.config.as_deref()));
    let group = info.and_then(|info| checks::Group::of(info.pid));
    Facts {
        uid: uid(),
        holder: daemon_probe::daemon_pid().map(|pid| (pid, daemon_probe::other_socket(socket))),
        socket: path_state(socket),
        socket_dir: path_state(socket.parent().unwrap_or(Path::new("/"))),
        free: state.as_deref().and_then(free),
        state: state.as_deref().map(path_state),
        manager: daemon_probe::has_user_manager(),
        linger: Linger::read(),
        state_error: state.as_deref().and_then(|dir| start::write_error(dir, start::Parents::Made)),
        socket_error: socket.parent().and_then(|dir| start::write_error(dir, start::Parents::Needed)),
        config,
        program,
        units,
        group,
        daemon,
    }
}

fn path_state(path: &Path) -> PathState {
    let kind = match path.symlink_metadata() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => PathKind::Missing,
        Err(_) => PathKind::Hidden,
        Ok(meta) if meta.is_dir() => PathKind::Dir { uid: meta.uid(), mode: meta.mode() & 0o7777 },
        Ok(meta) if meta.file_type().is_socket() => PathKind::Socket { uid: meta.uid(), mode: meta.mode() & 0o7777 },
        Ok(_) => PathKind::Other,
    };
    PathState { path: path.into(), kind }
}

/// Returns the free bytes where a directory is, or will be.
fn free(dir: &Path) -> Option<u64> {
    dir.ancestors().find(|dir| dir.exists()).and_then(sys::free_bytes)
}

fn daemon_program() -> Option<PathBuf> {
    let program = program();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = || std::env::split_paths(&path).map(|dir| dir.join(&program)).find(|path| path.is_file());
    if program.is_absolute() { Some(program) } else { found() }
}

/// Returns a command in lines that can be copied: a shell joins lines that end with a backslash. Not within quotes or comments.
fn command(text: &str, style: Style) -> Vec<(String, String)> {
    let start =
        " ".repeat(if style.width.is_some_and(|width| width < NARROW_WIDTH) { NARROW_FIX_INDENT } else { FIX_INDENT });
    let mut lines = hanging_indent(&start, text, style.width);
    if lines.len() > 1 && !text.contains(['\'', '"', '#']) {
        let end = " \\";
        lines = hanging_indent(&start, text, style.width.map(|width| width.saturating_sub(end.len())));
        let last = lines.len() - 1;
        lines[..last].iter_mut().for_each(|(_, line)| line.push_str(end));
    }
    lines
}

fn format_report(checks: &[Check], style: Style) -> String {
    let mut out = String::new();
    for check in checks {
        let (label, tint) = match check.severity {
            Severity::Ok => ("ok", Tint::Good),
            Severity::Warning => ("warning", Tint::Busy),
            Severity::Problem => ("problem", Tint::Bad),
        };
        let start = format!("{label:<7}  {:<11} ", check.name);
        for (n, (start, text)) in hanging_indent(&start, &escape_control(&check.text), style.width).iter().enumerate() {
            let (label, name) = if n == 0 { start.split_at(label.len()) } else { ("", start.as_str()) };
            out.push_str(format!("{}{name}{text}", tint.paint(label, style)).trim_end());
            out.push('\n');
        }
        for (start, line) in check.fix.iter().flat_map(|fix| command(&escape_control(fix), style)) {
            out.push_str(&format!("{start}{}\n", Tint::Heading.paint(&line, style)));
        }
    }
    let counted = |n: usize, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let count = |severity| checks.iter().filter(|check| check.severity == severity).count();
    let (problems, warnings) = (count(Severity::Problem), count(Severity::Warning));
    out + &match (problems, warnings) {
        (0, 0) => "nothing is wrong\n".to_owned(),
        _ => format!("{}, {}\n", counted(problems, "problem"), counted(warnings, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::columns;

    #[test]
    fn a_report_fits_the_terminal_and_breaks_at_blanks_and_a_command_can_be_copied() {
        let text = "none: systemd does not run for this user; toolctl starts the daemon by itself, and needs none";
        let fix = "systemctl --user enable --now toold.service toold.socket && loginctl enable-linger";
        let all = [checks::ok("version", "toolctl 0.1.0"), checks::warning("unit", text, fix)];
        for width in [30, 40, 80] {
            let shown = format_report(&all, Style { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
            let printed: Vec<&str> = shown.split_whitespace().filter(|token| *token != "\\").collect();
            assert!(printed.join(" ").contains(&format!("{text} {fix}")), "lines break at blanks at {width}: {shown}");
            let copied = shown.replace("\\\n", " ");
            let copied: Vec<String> =
                copied.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            assert!(copied.iter().any(|line| line == fix), "{width}: {shown}");
        }
        let shown = format_report(&all, Style { width: Some(80), colour: false });
        let begin = "ok       version     toolctl 0.1.0\n\
                     warning  unit        none: systemd does not run for this user; toolctl starts\n\
                     \x20                    the daemon by itself, and needs none\n\
                     \x20                      systemctl --user enable --now toold.service \\\n";
        assert!(shown.starts_with(begin), "{shown}");
        let shown = format_report(&all, Style { width: None, colour: true });
        assert!(shown.starts_with("\x1b[32mok\x1b[0m       version     toolctl 0.1.0\n"), "{shown:?}");
        assert!(shown.contains(&format!("unit        {text}\n")), "{shown}");
    }

    #[test]
    fn a_json_report_has_the_new_names_beside_the_old_ones() {
        let checks = [checks::warning("unit", "none", "toolctl service install")];
        let printed = serde_json::to_string(&report(Severity::Warning, &checks)).expect("a report prints");
        assert_eq!(
            printed,
            r#"{"verdict":"warning","checks":[{"name":"unit","verdict":"warning","text":"none","mend":"toolctl service install","severity":"warning","fix":"toolctl service install"}],"severity":"warning"}"#
        );
    }
}
