//! `service install` and `service uninstall`: writes or removes the files, and reloads systemd.

use super::files::{self, Dirs, Outcome, Planned};
use super::systemd::{Linger, SERVICE, SOCKET, Systemd};
use super::{InstallArgs, stop_unmanaged_daemon};
use crate::cmd::Context;
use crate::cmd::completions::Shell;
use crate::error::{CliError, DONE};
use serde::Serialize;
use std::path::PathBuf;

/// The variables of the caller's environment that a service does not see.
const HIDDEN_VARS: [&str; 3] = ["TOOLD_SOCKET", "TOOLD_STATE_DIR", "TOOLD_CONFIG"];

/// The result of install.
#[derive(Debug, Default, Serialize)]
struct Installed {
    wrote: Vec<PathBuf>,
    unchanged: Vec<PathBuf>,
    /// Files that are not ours, left as they were.
    kept: Vec<PathBuf>,
    did: Vec<String>,
    notes: Vec<String>,
}

/// The result of uninstall.
#[derive(Debug, Serialize)]
struct Uninstalled {
    removed: Vec<PathBuf>,
    did: Vec<String>,
}

pub fn install(args: &InstallArgs, systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let dirs = Dirs::find()?;
    let units = wanted_units(&dirs, systemd)?;
    let mut done = Installed::default();
    let mut changed = false;
    for unit in &units {
        changed |= done.count(unit, unit.write()?);
    }
    if !args.units_only {
        for extra in files::extras(&dirs)? {
            let outcome = extra.write()?;
            done.count(&extra, outcome);
        }
    }
    systemd.act(&["daemon-reload"])?;
    stop_unmanaged_daemon(systemd, cx)?;
    systemd.act(&["enable", "--now", SOCKET])?;
    done.did.push(format!("systemd listens for toold, now and after every login ({SOCKET} is enabled)"));
    if changed && systemd.unit(SERVICE)?.active() {
        systemd.act(&["restart", SERVICE])?;
        done.did.push("the daemon was restarted with the new unit; its processes kept running".into());
    }
    done.notes(&dirs, args);
    show_installed(&done, cx)?;
    Ok(DONE)
}

/// Returns the units to write: none where a package brought its own. Fails if units that are not ours exist.
fn wanted_units(dirs: &Dirs, systemd: &Systemd) -> Result<Vec<Planned>, CliError> {
    let units = files::units(dirs)?;
    if let Some(blocked) = units.iter().find(|unit| unit.blocked()) {
        return Err(CliError::Unavailable(format!(
            "{} is there and not ours; move it away, then install again",
            blocked.path.display()
        )));
    }
    let loaded = PathBuf::from(systemd.unit(SERVICE)?.get("FragmentPath"));
    let packaged = loaded.is_absolute() && !loaded.starts_with(dirs.units());
    Ok(if packaged { Vec::new() } else { units })
}

impl Installed {
    /// Records the outcome for a file. Returns true if it is new.
    fn count(&mut self, planned: &Planned, outcome: Outcome) -> bool {
        let list = match outcome {
            Outcome::Written => &mut self.wrote,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Foreign => &mut self.kept,
        };
        list.push(planned.path.clone());
        outcome == Outcome::Written
    }

    fn notes(&mut self, dirs: &Dirs, args: &InstallArgs) {
        self.notes.extend(Linger::read().advice().map(String::from));
        for name in HIDDEN_VARS {
            if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
                self.notes.push(format!(
                    "{name} is set here, and systemd's daemon does not see it; `systemctl --user edit toold` takes an Environment= line"
                ));
            }
        }
        if !args.units_only {
            let zsh = dirs.completions(Shell::Zsh);
            let dir = zsh.parent().unwrap_or(&zsh).display().to_string();
            self.notes
                .push(format!("zsh finds its completions with `fpath=({dir} $fpath)` before compinit in ~/.zshrc"));
        }
    }
}

fn show_installed(done: &Installed, cx: &mut Context<'_>) -> Result<(), CliError> {
    if cx.json {
        return cx.print_json(done);
    }
    let mut text = String::new();
    text.push_str(&listed("wrote", &done.wrote));
    text.push_str(&listed("not ours, left alone:", &done.kept));
    if done.wrote.is_empty() {
        text.push_str(&format!("{} files are as they should be\n", done.unchanged.len()));
    }
    text.extend(done.did.iter().map(|did| format!("{did}\n")));
    cx.console.print(&text)?;
    done.notes.iter().for_each(|note| cx.console.message(note));
    Ok(())
}

/// Formats one file per line, and the many manual pages as one line.
fn listed(label: &str, paths: &[PathBuf]) -> String {
    let (pages, others): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(|path| files::is_page(path));
    let mut text: String = others.iter().map(|path| format!("{label} {}\n", path.display())).collect();
    if let Some(dir) = pages.first().and_then(|page| page.parent()) {
        text.push_str(&format!("{label} {} manual pages in {}\n", pages.len(), dir.display()));
    }
    text
}

pub fn uninstall(systemd: &Systemd, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let dirs = Dirs::find()?;
    let files = files::present(&dirs);
    let units_ours = files.iter().any(|path| path.starts_with(dirs.units()));
    let mut done = Uninstalled { removed: Vec::new(), did: Vec::new() };
    if units_ours {
        systemd.act(&["disable", "--now", SOCKET])?;
        systemd.act(&["stop", SERVICE])?;
        done.did
            .push("systemd no longer listens for toold, and the daemon is stopped; its processes keep running".into());
    }
    for path in files {
        std::fs::remove_file(&path).map_err(CliError::io("remove what install made"))?;
        done.removed.push(path);
    }
    if units_ours {
        systemd.act(&["daemon-reload"])?;
        // systemd remembers a failed unit by name after its file is gone. If it did not fail, there is nothing to reset.
        let _ = systemd.act(&["reset-failed", SERVICE, SOCKET]);
    }
    if cx.json {
        cx.print_json(&done)?;
        return Ok(DONE);
    }
    let mut text = listed("removed", &done.removed);
    text.extend(done.did.iter().map(|did| format!("{did}\n")));
    if text.is_empty() {
        text.push_str("nothing of ours is installed\n");
    }
    cx.console.print(&text)?;
    Ok(DONE)
}
