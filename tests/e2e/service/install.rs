//! `toolctl service` with a fake systemctl: the files that it writes, the commands that it runs, its output.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{Daemon, files};

/// Logs its arguments, knows the units in the user's directory, and always succeeds.
pub const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$0.log"
case "$2 $3" in
"show toold.service")
  test -e "$XDG_CONFIG_HOME/systemd/user/toold.service" && echo LoadState=loaded || echo LoadState=not-found
  echo ActiveState=inactive; echo SubState=dead; echo MainPID=0 ;;
"show toold.socket")
  test -e "$XDG_CONFIG_HOME/systemd/user/toold.socket" && echo LoadState=loaded || echo LoadState=not-found
  echo ActiveState=active; echo SubState=listening ;;
esac
"#;
pub const JOURNALCTL: &str = "#!/bin/sh\necho \"$@\"\nexit 7\n";
pub const LOGINCTL: &str = "#!/bin/sh\necho no\n";

/// A home with a systemd that only logs its calls.
struct Home {
    d: Daemon,
}

impl Home {
    fn new() -> Home {
        let home = Home { d: Daemon::prepare("", &[]) };
        fs::create_dir(home.bin()).unwrap();
        for (name, text) in [("systemctl", SYSTEMCTL), ("loginctl", LOGINCTL), ("journalctl", JOURNALCTL)] {
            let path = home.bin().join(name);
            // Written under another name: a fork of another test must not hold a program open for writing.
            fs::write(path.with_extension("text"), text).unwrap();
            toold_test_support::sys::copy_program(&path.with_extension("text"), &path);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        home
    }

    fn bin(&self) -> PathBuf {
        self.d.root().join("bin")
    }

    fn service(&self, args: &[&str]) -> Output {
        let mut command = self.d.ctl_command(&[&["service"], args].concat());
        command.env("PATH", format!("{}:{}", self.bin().display(), std::env::var("PATH").unwrap()));
        output_of(command.spawn().unwrap())
    }

    /// The commands that systemctl received since the last call, without queries.
    fn asked(&self) -> Vec<String> {
        let log = self.bin().join("systemctl.log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        let acts =
            text.lines().filter_map(|line| line.strip_prefix("--user ")).filter(|line| !line.starts_with("show"));
        acts.map(String::from).collect()
    }

    /// Every file below the home and the config directory.
    fn files(&self) -> BTreeSet<PathBuf> {
        ["home", "config"].iter().flat_map(|dir| files(&self.d.root().join(dir))).collect()
    }
}

#[test]
fn install_writes_units_completions_and_pages_and_lets_systemd_listen() {
    let home = Home::new();
    let output = home.service(&["install"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(home.asked(), ["daemon-reload", "enable --now toold.socket"]);
    let unit = fs::read_to_string(home.d.root().join("config/systemd/user/toold.service")).unwrap();
    let toold = env!("CARGO_BIN_EXE_toold");
    assert!(unit.contains(&format!("\nExecStart={toold}\n")), "the toold beside toolctl: {unit}");
    let made = home.files();
    for path in [
        "config/systemd/user/toold.socket",
        "home/.local/share/bash-completion/completions/toolctl",
        "home/.local/share/fish/vendor_completions.d/toolctl.fish",
        "home/.local/share/zsh/site-functions/_toolctl",
        "home/.local/share/man/man1/toolctl-kill.1",
        "home/.local/share/man/man1/toold.1",
    ] {
        assert!(made.contains(&home.d.root().join(path)), "{path} in {made:?}");
        let shown = if path.ends_with(".1") { "manual pages in " } else { path };
        assert!(output.stdout.contains(shown), "it prints what it wrote: {output:?}");
    }
    assert!(output.stderr.contains("`loginctl enable-linger`"), "{output:?}");
}

#[test]
fn installing_again_changes_nothing_and_uninstall_removes_exactly_what_was_made() {
    let home = Home::new();
    let own = home.d.home().join(".local/share/man/man1/tool-of-mine.1");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "mine").unwrap();
    let before = home.files();
    assert_eq!(home.service(&["install"]).code, 0);
    let made = home.files();
    let again: Value = serde_json::from_str(&home.service(&["install", "--json"]).stdout).unwrap();
    assert_eq!(
        (&again["wrote"], again["unchanged"].as_array().unwrap().len()),
        (&json!([]), made.len() - before.len())
    );
    assert_eq!(home.files(), made);
    home.asked();
    let output = home.service(&["uninstall"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(home.files(), before, "{output:?}");
    assert_eq!(
        home.asked(),
        [
            "disable --now toold.socket",
            "stop toold.service",
            "daemon-reload",
            "reset-failed toold.service toold.socket"
        ]
    );
    let output = home.service(&["uninstall"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "nothing of ours is installed\n"));
    assert_eq!(home.asked(), [""; 0]);
}

#[test]
fn files_of_others_are_left_alone() {
    let home = Home::new();
    let script = home.d.home().join(".local/share/bash-completion/completions/toolctl");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, "mine").unwrap();
    let output = home.service(&["install"]);
    assert!(output.code == 0 && output.stdout.contains("not ours, left alone:"), "{output:?}");
    assert_eq!(home.service(&["uninstall"]).code, 0);
    assert_eq!(fs::read_to_string(&script).unwrap(), "mine");
    let unit = home.d.root().join("config/systemd/user/toold.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "mine").unwrap();
    home.asked();
    let output = home.service(&["install"]);
    assert!(output.code == 1 && output.stderr.contains("toold.service is there and not ours"), "{output:?}");
    assert_eq!((home.asked(), fs::read_to_string(&unit).unwrap().as_str()), (vec![], "mine"));
}

#[test]
fn a_daemon_without_systemd_is_replaced_and_its_processes_keep_running() {
    let mut home = Home::new();
    home.d.spawn();
    let proc = home.d.sh("exec sleep 1000");
    let program = home.d.program(&proc);
    let output = home.service(&["install", "--units-only"]);
    assert!(output.code == 0 && output.stderr.contains("stopped the daemon that ran without systemd"), "{output:?}");
    assert_eq!(home.d.ended(), 0);
    assert!(!program.is_dead());
}

#[test]
fn start_stop_and_restart_print_what_they_did_and_what_to_do_first() {
    let home = Home::new();
    for verb in ["start", "stop", "restart", "logs"] {
        let output = home.service(&[verb]);
        let message = "toolctl: toold.service is not installed; `toolctl service install` does it\n";
        assert_eq!((output.code, output.stderr.as_str()), (1, message), "{verb}");
    }
    let output = home.service(&["status"]);
    assert!(output.code == 1 && output.stdout.contains("not installed"), "{output:?}");
    assert_eq!(home.service(&["install", "--units-only"]).code, 0);
    home.asked();
    for (verb, asked) in [
        ("start", vec!["start toold.socket toold.service"]),
        ("stop", vec!["stop toold.socket toold.service"]),
        ("restart", vec!["start toold.socket", "restart toold.service"]),
    ] {
        let output = home.service(&[verb]);
        assert!(output.code == 0 && output.stdout.contains("daemon"), "{output:?}");
        assert_eq!(home.asked(), asked, "{verb}");
    }
    let output = home.service(&["logs", "-f", "-n", "5", "--", "--since", "today"]);
    let asked = "--user --unit toold.service --lines 5 --follow --since today\n";
    assert_eq!((output.code, output.stdout.as_str()), (7, asked), "the output and code of journalctl");
    let output = home.service(&["status"]);
    assert!(output.code == 0 && output.stdout.contains("active (listening)"), "{output:?}");
}

#[test]
fn without_systemd_it_prints_one_sentence_and_exits_with_1() {
    let d = Daemon::prepare("", &[]);
    for verb in ["install", "uninstall", "start", "stop", "restart", "status", "logs"] {
        let mut command = d.ctl_command(&["service", verb]);
        command.env("PATH", d.root());
        let output = output_of(command.spawn().unwrap());
        assert_eq!(
            (output.code, output.stdout.as_str(), output.stderr.lines().count()),
            (1, "", 1),
            "{verb}: {output:?}"
        );
        assert!(output.stderr.starts_with("toolctl: there is no systemd here"), "{output:?}");
    }
    let document = output_of({
        let mut command = d.ctl_command(&["service", "install", "--json"]);
        command.env("PATH", d.root());
        command.spawn().unwrap()
    });
    assert_eq!(serde_json::from_str::<Value>(&document.stderr).unwrap()["data"]["kind"], "unavailable");
    assert!(files(&d.root().join("config")).is_empty(), "nothing was written");
}
