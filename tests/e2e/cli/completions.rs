//! Completions, by calling the functions of each shell.

use std::process::Command;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{Daemon, skip_unless};

fn has(shell: &str) -> bool {
    Command::new(shell).arg("--version").output().is_ok()
}

/// The candidates that bash offers at the end of a line, from the function that it calls.
fn bash(d: &Daemon, line: &str, kind: u32) -> Vec<String> {
    let script = "source <(toolctl completions bash); COMP_LINE=$0 COMP_POINT=${#0} COMP_TYPE=$1; read -ra COMP_WORDS <<<\"$0\"; \
                  [[ $0 == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _toolctl toolctl; \
                  printf '%s\\n' \"${COMPREPLY[@]}\"";
    lines(output_of(d.tool("bash", &["--norc", "-c", script, line, &kind.to_string()]).spawn().unwrap()))
}

/// The same in fish, which has a command for it.
fn fish(d: &Daemon, line: &str) -> Vec<String> {
    let script = "toolctl completions fish | source; complete -C$argv[1]";
    lines(output_of(d.tool("fish", &["--no-config", "-c", script, line]).spawn().unwrap()))
}

/// The same in zsh: the arguments that the function passes to zsh's own `_describe`.
fn zsh(d: &Daemon, line: &str) -> Vec<String> {
    let script = "compdef() { :; }; _files() { print files; }; _normal() { print $CURRENT $words; }; _describe() { print -rl -- \"${(@P)3}\"; }
                  source <(toolctl completions zsh); words=(\"${(@s: :)1}\"); CURRENT=$#words; _toolctl";
    lines(output_of(d.tool("zsh", &["-f", "-c", script, "zsh", line]).spawn().unwrap()))
}

fn lines(output: Output) -> Vec<String> {
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.stdout.lines().filter(|line| !line.is_empty()).map(String::from).collect()
}

/// A daemon with a running process that has a name.
fn with_web() -> (Daemon, String) {
    let d = Daemon::start();
    let output = d.ctl(&["exec", "--name", "web", "--", "/bin/sleep", "1000"]);
    assert_eq!(output.code, 0, "{output:?}");
    (d, output.stdout.trim().to_owned())
}

#[test]
fn bash_completes_commands_flags_names_and_ids_with_their_command() {
    let (d, id) = with_web();
    assert_eq!(bash(&d, "toolctl ki", 9), ["kill"]);
    assert_eq!(bash(&d, "toolctl service sta", 9), ["start", "status"]);
    assert_eq!(bash(&d, "toolctl list --st", 9), ["--status"]);
    assert_eq!(bash(&d, "toolctl kill w", 9), ["web"]);
    assert_eq!(bash(&d, "toolctl log @l", 9), ["@last"]);
    assert_eq!(bash(&d, "toolctl log ", 9), ["web", &id, "@last", "@failed"]);
    let listed = bash(&d, "toolctl log ", 63);
    assert!(listed[0].starts_with("web ") && listed[0].contains("(running "), "{listed:?}");
    assert!(listed[1].starts_with(&id) && listed[1].ends_with(": /bin/sleep 1000)"), "{listed:?}");
    assert_eq!(bash(&d, "toolctl service logs -- --s", 9), [""; 0], "arguments of journalctl are not completed");
}

#[test]
fn only_processes_that_a_command_can_act_on_are_offered() {
    let (d, id) = with_web();
    let done = d.run("exit 3")["id"].as_str().unwrap().to_owned();
    assert_eq!(bash(&d, "toolctl kill p", 9), [id.as_str()]);
    assert_eq!(bash(&d, "toolctl forget p", 9), [done.as_str()]);
    assert_eq!(bash(&d, "toolctl inspect p", 9), [done, id]);
    assert_eq!(d.ctl(&["kill", "web"]).code, 0);
    assert_eq!(d.ctl(&["exec", "--name", "web", "--", "/bin/sleep", "1001"]).code, 0);
    let screen = d.sh_with("exec sleep 1000", serde_json::json!({ "pty": true }))["id"].as_str().unwrap().to_owned();
    assert_eq!(
        bash(&d, "toolctl attach ", 9),
        [screen.as_str(), "@last"],
        "only processes with a terminal can be attached"
    );
    assert_eq!(bash(&d, "toolctl inspect w", 9), ["web"], "a name refers to the newest of that name");
}

#[test]
fn fish_and_zsh_complete_the_same() {
    let (d, id) = with_web();
    if !skip_unless(has("fish"), "fish is not installed") {
        assert_eq!(
            fish(&d, "toolctl service stat"),
            ["status\tShow the units, the daemon, the socket and whether the versions agree"]
        );
        let offered = fish(&d, "toolctl wait ");
        assert!(offered.iter().any(|line| line.starts_with(&format!("{id}\trunning "))), "{offered:?}");
    }
    if !skip_unless(has("zsh"), "zsh is not installed") {
        assert_eq!(zsh(&d, "toolctl ki"), ["kill:End processes and everything they started"]);
        let offered = zsh(&d, "toolctl wait w");
        assert!(offered.len() == 1 && offered[0].starts_with("web:running "), "{offered:?}");
        assert_eq!(zsh(&d, "toolctl run --name n -- x y"), ["2 x y"], "zsh completes it like a command of its own");
        assert_eq!(zsh(&d, "toolctl service logs -- x"), ["files"]);
    }
}

#[test]
fn without_a_daemon_nothing_is_offered_printed_or_started() {
    let d = Daemon::prepare("", &[]);
    assert_eq!(bash(&d, "toolctl log p", 9), [""; 0]);
    let output = d.ctl(&["__complete", "--", "toolctl", "kill", "x"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    assert!(!d.socket().exists() && !d.state().exists() && d.marked().is_empty());
}

#[test]
fn a_socket_activated_daemon_is_not_started() {
    let d = Daemon::prepare("", &[]);
    std::fs::create_dir(d.socket().parent().unwrap()).unwrap();
    let systemd = std::os::unix::net::UnixListener::bind(d.socket()).unwrap();
    systemd.set_nonblocking(true).unwrap();
    assert_eq!(bash(&d, "toolctl log p", 9), [""; 0]);
    d.ctl(&["doctor"]);
    let woken = systemd.accept().map(drop).map_err(|e| e.kind());
    assert_eq!(woken, Err(std::io::ErrorKind::WouldBlock), "no client connected");
    drop(systemd);
    std::fs::remove_file(d.socket()).unwrap();
}
