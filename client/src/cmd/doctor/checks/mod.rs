//! The checks: each turns facts into a severity, a text and a fix. Pure.

use super::{Check, Facts, PathKind, PathState, Severity, kernel};
use crate::autostart::is_not_listening;
use crate::blocking::CallError;
use crate::cmd::service::status::VERSION;
use crate::cmd::service::systemd::{Linger, Unit};
use crate::render::text::bytes;
use crate::render::time::duration;
use std::path::{Path, PathBuf};
use toold_proto::results::DaemonInfoResult;
use toold_proto::sandbox_probe::SandboxProbeResult;

/// Free bytes below which output will soon not be stored.
const LOW_FREE_BYTES: u64 = 1 << 30;
/// Free bytes below which output may already not be stored.
const MIN_FREE_BYTES: u64 = 64 << 20;

/// The control group (version 2) that the daemon runs in.
pub struct Group {
    pub path: PathBuf,
    pub owner: Option<u32>,
}

impl Group {
    pub fn of(pid: u32) -> Option<Group> {
        use std::os::unix::fs::MetadataExt;
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].into_iter();
        let root = root.map(Path::new).find(|root| root.join("cgroup.controllers").exists())?;
        let dir = root.join(path.trim_start_matches('/'));
        Some(Group { owner: dir.metadata().ok().map(|meta| meta.uid()), path: path.into() })
    }
}

pub fn ok(name: &'static str, text: impl Into<String>) -> Check {
    Check { name, severity: Severity::Ok, text: text.into(), fix: None }
}

pub fn warning(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, severity: Severity::Warning, text: text.into(), fix: Some(fix.into()) }
}

pub fn problem(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, severity: Severity::Problem, text: text.into(), fix: Some(fix.into()) }
}

/// Runs every check, in the order in which a person would check.
pub fn all(facts: &Facts) -> Vec<Check> {
    let info = facts.daemon.as_ref().ok().and_then(Option::as_deref);
    let mut checks = vec![daemon(facts), version(info)];
    checks.extend(config(facts));
    let socket_fix = "mkdir -m 700 -p DIR   # or: unset XDG_RUNTIME_DIR";
    checks.push(writable(place("directory", &facts.socket_dir, 0o700, facts.uid), &facts.socket_error, socket_fix));
    checks.push(place("socket", &facts.socket, 0o600, facts.uid));
    match &facts.state {
        Some(state) => {
            let found = place("state", state, 0o700, facts.uid);
            checks.push(writable(
                found,
                &facts.state_error,
                "export TOOLD_STATE_DIR=DIR   # a directory that you can write to",
            ));
        }
        None => checks.push(problem("state", "there is no home directory for it", "export TOOLD_STATE_DIR=DIR")),
    }
    // Removing processes would not help where nothing can be written.
    if facts.state_error.is_none() {
        checks.push(disk(facts));
    }
    if let Some(info) = info {
        checks.extend(kernel::checks(&info.features));
        checks.extend(
            info.damaged.iter().map(|what| {
                warning("damage", format!("{what} was damaged and set aside at the start"), "toolctl info")
            }),
        );
        checks.extend(info.sandbox.as_ref().map(sandbox));
        checks.push(delegation(facts, info));
    }
    checks.extend(unit(facts));
    checks.extend(linger(facts));
    checks.push(autostart(facts));
    checks
}

/// Reports the config as the next start will read it, also while a daemon with an older one runs.
fn config(facts: &Facts) -> Option<Check> {
    let found = facts.config.as_ref()?;
    let path = found.path.as_deref();
    let shown = path.map(|path| path.display().to_string()).unwrap_or_default();
    Some(match (&found.error, path) {
        (Some(error), _) => {
            let text = format!("the daemon cannot start with it: {error}");
            problem("config", text, format!("toold --check-config --config {shown}   # when it is corrected"))
        }
        (None, Some(path)) if path.exists() => ok("config", format!("{shown}, checked")),
        (None, _) => ok("config", "no file; the defaults"),
    })
}

/// Returns the check of a place, or the error of writing there.
fn writable(found: Check, error: &Option<String>, fix: &str) -> Check {
    match error {
        Some(error) if found.severity == Severity::Ok => problem(found.name, error.clone(), fix),
        Some(_) | None => found,
    }
}

fn daemon(facts: &Facts) -> Check {
    match &facts.daemon {
        Ok(Some(info)) => ok("daemon", format!("runs, pid {}, for {}", info.pid, duration(info.uptime_ms))),
        Ok(None) if facts.units.as_ref().is_ok_and(|(_, socket)| socket.active()) => {
            ok("daemon", "none runs; systemd starts it at the first call")
        }
        Ok(None) => ok("daemon", "none runs; the first call starts one"),
        Err(error) if is_not_listening(error) => match &facts.holder {
            None => ok("daemon", "none runs; the first call starts one"),
            Some((pid, there)) => unreachable_holder(*pid, there.as_deref(), &facts.socket.path),
        },
        Err(error @ CallError::Untrusted { .. }) => {
            problem("daemon", error.to_string(), "export TOOLD_SOCKET=\"$HOME/.toold/toold.sock\"")
        }
        Err(error @ CallError::TimedOut { peer, .. }) => {
            let fix = peer.continue_command().unwrap_or_else(|| "toolctl service restart".into());
            problem("daemon", error.to_string(), fix)
        }
        Err(error) => problem("daemon", error.to_string(), "toolctl service restart"),
    }
}

/// Reports a daemon that has the state directory, and so keeps others from starting, and does not listen where it should.
fn unreachable_holder(pid: u32, there: Option<&Path>, socket: &Path) -> Check {
    let socket = socket.display();
    match there {
        Some(there) => {
            let there = there.display();
            let text = format!("the one of this state directory (pid {pid}) listens at {there}, not at {socket}");
            problem("daemon", text, format!("export TOOLD_SOCKET={there}"))
        }
        None => problem(
            "daemon",
            format!(
                "one runs on this state directory (pid {pid}), but nothing listens at {socket}: it is starting, or stuck"
            ),
            format!("kill {pid}   # its processes keep running, and the next call starts another"),
        ),
    }
}

fn version(info: Option<&DaemonInfoResult>) -> Check {
    match info {
        None => ok("version", format!("toolctl {VERSION}")),
        Some(info) if info.version == VERSION => ok("version", format!("toolctl and toold {VERSION}")),
        Some(info) => warning(
            "version",
            format!("toolctl is {VERSION}, but the daemon that runs is {}", info.version),
            "toolctl service restart || toolctl shutdown",
        ),
    }
}

/// Checks a path that only its owner may access.
fn place(name: &'static str, found: &PathState, wanted: u32, own: Option<u32>) -> Check {
    let path = found.path.display();
    let (uid, mode) = match (found.kind, wanted) {
        (PathKind::Missing, _) => return ok(name, format!("{path} is made when the daemon starts")),
        (PathKind::Hidden, _) => {
            return problem(name, format!("{path} cannot be read"), format!("ls -ld {path}"));
        }
        (PathKind::Dir { uid, mode }, 0o700) | (PathKind::Socket { uid, mode }, 0o600) => (uid, mode),
        (PathKind::Dir { .. } | PathKind::Socket { .. } | PathKind::Other, _) => {
            return problem(name, format!("{path} exists and is something else"), format!("mv {path} {path}.away"));
        }
    };
    if own.is_some_and(|own| own != uid) {
        return problem(name, format!("{path} belongs to uid {uid}"), format!("sudo chown $(id -u) {path}"));
    }
    match mode {
        mode if mode == wanted => ok(name, format!("{path}, {wanted:04o}, yours alone")),
        mode => {
            problem(name, format!("{path} has mode {mode:04o}, not {wanted:04o}"), format!("chmod {wanted:o} {path}"))
        }
    }
}

fn disk(facts: &Facts) -> Check {
    let fix = "toolctl forget --older-than 1h";
    match facts.free {
        None => warning("disk", "the free space for the state directory is unknown", "df -h ~"),
        Some(free) if free < MIN_FREE_BYTES => {
            problem("disk", format!("{} free: output may not be stored", bytes(free)), fix)
        }
        Some(free) if free < LOW_FREE_BYTES => warning("disk", format!("{} free for output", bytes(free)), fix),
        Some(free) => ok("disk", format!("{} free for output", bytes(free))),
    }
}

/// Reports the check that the daemon made of its sandbox.
fn sandbox(probe: &SandboxProbeResult) -> Check {
    let fix = "toolctl sandbox";
    if !probe.gaps.is_empty() {
        let acts: Vec<String> = probe.gaps.iter().map(|gap| format!("{} ({})", gap.act, gap.mechanism)).collect();
        return problem("sandbox", format!("a confined process could do it: {}", acts.join(", ")), fix);
    }
    let missing = probe.acts.iter().filter(|act| act.mechanism == "auto" && act.expected != "refused");
    let missing: Vec<&str> = missing.map(|act| act.measure.as_str()).collect();
    match probe.mechanisms.iter().find(|tried| tried.mechanism == "auto") {
        Some(tried) if !tried.available => {
            warning("sandbox", format!("none: {}", tried.why.as_deref().unwrap_or("no reason")), fix)
        }
        _ if missing.is_empty() => ok("sandbox", "all forbidden acts were refused"),
        _ => warning("sandbox", format!("not enforced here: {}", missing.join(", ")), fix),
    }
}

/// Checks whether limits of single processes can be groups below the daemon's.
fn delegation(facts: &Facts, info: &DaemonInfoResult) -> Check {
    let own = |group: &&Group| group.owner.is_some() && (group.owner == facts.uid || facts.uid == Some(0));
    let by_v1 = info.features.get("cgroup").is_some_and(|groups| groups.to_string().contains("cgroup1"));
    match facts.group.as_ref() {
        Some(group) if own(&group) && group.path.ends_with("toold.service/daemon") => {
            ok("cgroups", format!("v2, {} is delegated to toold", group.path.display()))
        }
        // Root may make groups anywhere in version 1, which has no leaves.
        Some(_) | None if by_v1 && facts.uid == Some(0) => ok("cgroups", "v1, can be created (root)"),
        Some(group) => warning(
            "cgroups",
            format!(
                "{} is not a leaf of a delegated group: memory, cpu and pids limits of jobs are not enforced",
                group.path.display()
            ),
            if facts.manager {
                "toolctl service install   # with systemd 254 or later"
            } else {
                "run the daemon as root, or where systemd runs for this user; --require-limits refuses a start without limits"
            },
        ),
        None => warning(
            "cgroups",
            "no control groups of version 2: memory, cpu and pids limits of jobs are not enforced",
            "mount | grep cgroup",
        ),
    }
}

fn unit(facts: &Facts) -> Vec<Check> {
    let (service, socket) = match &facts.units {
        Ok(units) => units,
        Err(why) if facts.manager => return vec![warning("unit", why.clone(), "systemctl --user status")],
        // The text of an error beside an `ok` would leave open which of them is true.
        Err(_) => {
            let text = "none: systemd does not run for this user; toolctl starts the daemon by itself, and needs none";
            return vec![ok("unit", text)];
        }
    };
    if !service.loaded() {
        return vec![ok("unit", "not installed; `toolctl service install` lets systemd keep the daemon")];
    }
    let failed = |unit: &Unit| unit.get("ActiveState") == "failed";
    let mut checks = Vec::new();
    if failed(service) || failed(socket) {
        let text = format!("service {}, socket {}", service.describe(), socket.describe());
        checks.push(problem(
            "unit",
            text,
            "toolctl service logs -n 20; systemctl --user reset-failed; toolctl service start",
        ));
    } else if !socket.active() {
        checks.push(warning(
            "unit",
            format!("installed, but the socket is {}", socket.describe()),
            "toolctl service start",
        ));
    } else {
        checks.push(ok("unit", format!("service {}, socket {}", service.describe(), socket.describe())));
    }
    if service.get("NeedDaemonReload") == "yes" {
        checks.push(warning("unit", "its file changed, and systemd has not read it", "systemctl --user daemon-reload"));
    }
    let listen = socket.get("Listen");
    let path = facts.socket.path.display().to_string();
    if !listen.is_empty() && !listen.contains(&path) {
        checks.push(warning(
            "unit",
            format!("it listens on {listen}, and toolctl looks at {path}"),
            "unset TOOLD_SOCKET",
        ));
    }
    checks
}

fn linger(facts: &Facts) -> Option<Check> {
    // Without systemd no one ends orphaned descendants.
    let (service, _) = facts.units.as_ref().ok()?;
    Some(match (facts.linger, service.loaded()) {
        (Linger::On, _) => ok("lingering", "on: processes outlive your last logout"),
        (Linger::Unknown, _) => ok("lingering", Linger::Unknown.advice().unwrap_or_default()),
        (Linger::Off, _) => {
            warning("lingering", "off: systemd ends your processes when you log out", "loginctl enable-linger")
        }
    })
}

fn autostart(facts: &Facts) -> Check {
    match &facts.program {
        Some(program) => ok("autostart", format!("possible: {}", program.display())),
        None => {
            let text = "toold is neither beside toolctl nor in PATH, so toolctl cannot start it";
            let fix = "cargo install --path .   # puts both side by side";
            match &facts.daemon {
                Ok(_) => warning("autostart", text, fix),
                Err(_) => problem("autostart", text, fix),
            }
        }
    }
}

#[cfg(test)]
mod tests;
