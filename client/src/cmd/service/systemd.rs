//! systemd's user manager, through `systemctl`.

use crate::error::CliError;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Output, Stdio};

pub const SERVICE: &str = "toold.service";
pub const SOCKET: &str = "toold.socket";

/// The properties of a unit that are read.
const PROPERTIES: &str = "LoadState,ActiveState,SubState,UnitFileState,FragmentPath,MainPID,NRestarts,Result,\
Listen,NeedDaemonReload,ControlGroup";

/// A user manager that answers.
pub struct Systemd(());

/// A unit as the manager shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit(BTreeMap<String, String>);

/// Lingering: the user's manager, and so its processes, outlive the last logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Linger {
    On,
    Off,
    Unknown,
}

impl Systemd {
    /// Returns the manager of this user, or a sentence with the reason why there is none.
    pub fn find() -> Result<Systemd, CliError> {
        let without = "toolctl starts the daemon by itself, so all but `toolctl service` works without";
        match systemctl(&["show", "--property=Version"]) {
            Ok(output) if output.status.success() => Ok(Systemd(())),
            Ok(output) => Err(CliError::Unavailable(format!(
                "systemd's user manager does not answer: {}; {without}",
                first_line(&output.stderr)
            ))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(CliError::Unavailable(format!("there is no systemd here (no systemctl in PATH); {without}")))
            }
            Err(source) => Err(CliError::Io { doing: "run systemctl", source }),
        }
    }

    /// Runs a command of systemctl; fails with systemd's own message.
    pub fn act(&self, args: &[&str]) -> Result<(), CliError> {
        let output = systemctl(args).map_err(CliError::io("run systemctl"))?;
        if output.status.success() {
            return Ok(());
        }
        let printed = first_line(&output.stderr);
        let what = args.join(" ");
        Err(CliError::Unavailable(format!(
            "systemctl --user {what}: {printed}; `toolctl service logs -n 20` may show why"
        )))
    }

    pub fn unit(&self, name: &str) -> Result<Unit, CliError> {
        let property = format!("--property={PROPERTIES}");
        let output = systemctl(&["show", name, &property]).map_err(CliError::io("run systemctl"))?;
        Ok(Unit::parse(&String::from_utf8_lossy(&output.stdout)))
    }
}

impl Unit {
    pub fn parse(text: &str) -> Unit {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        Unit(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub fn loaded(&self) -> bool {
        self.get("LoadState") == "loaded"
    }

    pub fn active(&self) -> bool {
        self.get("ActiveState") == "active"
    }

    pub fn main_pid(&self) -> Option<u32> {
        self.get("MainPID").parse().ok().filter(|pid| *pid > 0)
    }

    /// Returns `active (listening), enabled`, or that it is not installed.
    pub fn describe(&self) -> String {
        if !self.loaded() {
            return "not installed".into();
        }
        // The socket is the unit that is enabled. For the service, `disabled` would only look like a fault.
        let file = if self.0.contains_key("MainPID") { "" } else { self.get("UnitFileState") };
        let file = if file.is_empty() { String::new() } else { format!(", {file}") };
        let result = self.get("Result");
        let result = if matches!(result, "" | "success") { String::new() } else { format!(", ended by {result}") };
        format!("{} ({}){file}{result}", self.get("ActiveState"), self.get("SubState"))
    }
}

impl Linger {
    pub fn read() -> Linger {
        let user = uid().map_or(String::new(), |uid| uid.to_string());
        let output =
            quiet(Command::new("loginctl").args(["show-user", &user, "--property=Linger", "--value"])).output();
        match output {
            Ok(output) if output.status.success() => match first_line(&output.stdout).as_str() {
                "yes" => Linger::On,
                "no" => Linger::Off,
                // A value of a newer systemd.
                _ => Linger::Unknown,
            },
            Ok(_) | Err(_) => Linger::Unknown,
        }
    }

    /// Returns the advice for a user whose processes should outlive the logout.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Linger::On => None,
            Linger::Off => Some(
                "lingering is off: systemd ends the daemon and every process when you log out; \
                 `loginctl enable-linger` keeps them",
            ),
            Linger::Unknown => Some(
                "whether you linger cannot be asked here; without `loginctl enable-linger` systemd ends the daemon and \
                 every process when you log out",
            ),
        }
    }
}

fn systemctl(args: &[&str]) -> io::Result<Output> {
    quiet(Command::new("systemctl").arg("--user").args(args)).output()
}

/// Sets an empty stdin, and messages that do not depend on the user's language.
fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").env("SYSTEMD_PAGER", "")
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or("no message").trim().to_owned()
}

/// Returns our uid, from /proc.
pub fn uid() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").ok().map(|own| own.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_from_what_systemctl_shows() {
        let text = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=42\nResult=success\n\
                    FragmentPath=/a=b\n";
        let unit = Unit::parse(text);
        assert_eq!((unit.loaded(), unit.active(), unit.main_pid()), (true, true, Some(42)));
        assert_eq!((unit.describe().as_str(), unit.get("FragmentPath")), ("active (running)", "/a=b"));
        let socket = Unit::parse("LoadState=loaded\nActiveState=active\nSubState=listening\nUnitFileState=enabled\n");
        assert_eq!(socket.describe(), "active (listening), enabled");
        let failed = Unit::parse("LoadState=loaded\nActiveState=failed\nSubState=failed\nMainPID=0\nResult=watchdog\n");
        assert_eq!((failed.describe().as_str(), failed.main_pid()), ("failed (failed), ended by watchdog", None));
        assert_eq!(Unit::parse("LoadState=not-found\n").describe(), "not installed");
    }
}
