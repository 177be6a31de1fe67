//! The agents and editors that are connected: whether their files are complete, and whether the end of a job reaches a hook.

use super::Check;
use super::checks::{ok, problem, warning};
use crate::blocking::Client;
use crate::cmd::integrate::{FileKind, PlannedFile, Refusal, Target, UserDirs};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time that the job of the trial may take, and the daemon for an answer.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks what is installed. Nothing is: no lines. `daemon` is the socket of a daemon that answers.
pub fn checks(dirs: Option<&UserDirs>, daemon: Option<&Path>) -> Vec<Check> {
    let Some(dirs) = dirs else { return Vec::new() };
    let mut checks: Vec<Check> = Vec::new();
    let mut hook = None;
    let mut has_agent = false;
    for target in Target::ALL {
        let Some(check) = state(target, target.plan(dirs)) else { continue };
        checks.push(check);
        has_agent |= !matches!(target, Target::Nvim | Target::Emacs);
        hook = hook.or(target.stop_hook());
    }
    if !has_agent {
        return checks;
    }
    match (find_toolctl(), hook, daemon) {
        (None, ..) => {
            let fix = std::env::current_exe().map_or_else(|_| "PATH".into(), |path| path.display().to_string());
            let text = "agents start it by its name, and no `toolctl` is in $PATH";
            checks.push(problem("agents", text, format!("ln -s {fix} ~/.local/bin/toolctl")));
        }
        (Some(program), Some((agent, event)), Some(socket)) => checks.push(wake_up(&program, agent, event, socket)),
        // Nothing to try: the agent has no hooks, or no daemon runs.
        (Some(_), None, _) | (Some(_), _, None) => {}
    }
    checks
}

/// Compares the files of one target with what they should be. None: it is not installed.
fn state(target: Target, planned: Result<Vec<PlannedFile>, Refusal>) -> Option<Check> {
    let name = target.name();
    let fix = format!("toolctl integrate {name}");
    let files = match planned {
        Ok(files) => files,
        Err(refusal) => {
            let text = std::fs::read(&refusal.path).unwrap_or_default();
            let is_ours = String::from_utf8_lossy(&text).contains("toolctl");
            let path = refusal.path.display();
            return is_ours
                .then(|| ok(name, format!("{path} mentions toolctl and cannot be checked: {}", refusal.why)));
        }
    };
    let is_present = |file: &PlannedFile| match &file.kind {
        FileKind::Own => file.old.is_some(),
        FileKind::Shared { kept, .. } => !kept.is_empty(),
    };
    let first = files.iter().find(|file| is_present(file))?;
    let missing = files.iter().filter_map(|file| match &file.kind {
        FileKind::Own => (file.old.as_ref() != Some(&file.new)).then(|| file.path.display().to_string()),
        FileKind::Shared { added, .. } => (!added.is_empty()).then(|| added.join(", ")),
    });
    let missing: Vec<String> = missing.collect();
    Some(match missing.is_empty() {
        true => ok(name, format!("connected: {}", first.path.display())),
        false => warning(name, format!("missing, or of another version: {}", missing.join(", ")), fix),
    })
}

fn find_toolctl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("toolctl")).find(|program| program.is_file())
}

/// Lets a job end, and looks whether the agents' `toolctl` reports that at the end of a turn.
fn wake_up(program: &Path, agent: &str, event: &str, socket: &Path) -> Check {
    let fix = format!("{} hook --help", program.display());
    let tried = end_a_job(socket).and_then(|session| ask_hook(program, agent, event, socket, &session));
    match tried {
        Ok(text) if text.contains("exited 0") => ok("wake-up", format!("the end of a job reaches the hook {event}")),
        Ok(_) => warning(
            "wake-up",
            format!("the end of a job does not reach the hook {event} of {}", program.display()),
            fix,
        ),
        Err(why) => {
            warning("wake-up", format!("the way of a job's end to the hook {event} could not be tried: {why}"), fix)
        }
    }
}

/// Runs `true` in a session of its own and waits until its end is published. Returns the session.
fn end_a_job(socket: &Path) -> Result<String, String> {
    let session = format!("doctor:{}", std::process::id());
    let text = |error: crate::blocking::CallError| error.to_string();
    let mut client = Client::connect(socket).map_err(text)?;
    client.set_timeout(TRIAL_TIMEOUT * 2).map_err(text)?;
    let exec =
        json!({"argv": ["true"], "name": "doctor", "session_key": session, "notify": true, "if_running": "restart"});
    client.call_raw("exec", &exec).map_err(text)?;
    let next = json!({"consumer": session, "session_key": session, "types": ["completion"], "wait_ms": TRIAL_TIMEOUT.as_millis() as u64});
    let pulled = client.call_raw("events.next", &next).map_err(text)?;
    if !pulled.get().contains("\"completion\"") {
        return Err("the job did not end in time".into());
    }
    Ok(session)
}

fn ask_hook(program: &Path, agent: &str, event: &str, socket: &Path, session: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(["hook", "--agent", agent]).env("TOOLD_SOCKET", socket).env("TOOLD_SESSION", session);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let input = json!({"hook_event_name": event, "session_id": "doctor", "stop_hook_active": false}).to_string();
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that does not read fails the comparison of its answer.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Severity;

    #[test]
    fn only_what_is_installed_is_checked_and_what_is_missing_has_a_fix() {
        let home = tempfile::tempdir().expect("a directory");
        let dirs = UserDirs::from_env(|name| (name == "HOME").then(|| home.path().into())).expect("a home");
        assert_eq!(checks(Some(&dirs), None), []);
        let plan = Target::Codex.plan(&dirs).expect("an empty home");
        let file = &plan[0];
        std::fs::create_dir_all(file.path.parent().expect("a directory")).expect("made");
        std::fs::write(&file.path, &file.new).expect("written");
        let found = state(Target::Codex, Target::Codex.plan(&dirs)).expect("installed");
        assert_eq!((found.name, found.severity), ("codex", Severity::Ok));
        std::fs::write(&file.path, "[mcp_servers.toold]\ncommand = \"toolctl\"\n").expect("written");
        let found = state(Target::Codex, Target::Codex.plan(&dirs)).expect("installed");
        assert_eq!((found.severity, found.fix.as_deref()), (Severity::Warning, Some("toolctl integrate codex")));
        assert!(found.text.contains("hooks.Stop"), "{}", found.text);
        std::fs::write(&file.path, "command = toolctl").expect("written");
        let found = state(Target::Codex, Target::Codex.plan(&dirs)).expect("mentioned");
        assert_eq!(found.severity, Severity::Ok);
    }
}
