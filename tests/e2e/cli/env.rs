//! The environment that `run` and `exec` give a process: the caller's, not that of the caller that started the daemon.

use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::Daemon;

/// The variables of a daemon that another shell started.
const THEIRS: [(&str, &str); 6] = [
    ("VIRTUAL_ENV", "/v1"),
    ("USER", "first"),
    ("LANG", "de_DE.UTF-8"),
    ("XDG_DATA_HOME", "/first"),
    ("DATABASE_URL", "theirs"),
    ("THEIR_SECRET", "theirs"),
];

/// A daemon, and a `toolctl` with these variables beside PATH and what finds the daemon.
fn toolctl(d: &Daemon, vars: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = d.ctl_command(args);
    for (name, _) in THEIRS {
        command.env_remove(name);
    }
    command.envs(vars.iter().copied());
    command
}

fn output(command: &mut Command) -> Output {
    output_of(command.spawn().unwrap())
}

fn variables(text: &str) -> BTreeMap<String, String> {
    text.split_terminator('\0').filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}

/// The variables of `run OPTIONS -- env`.
fn run_env(d: &Daemon, vars: &[(&str, &str)], options: &[&str]) -> BTreeMap<String, String> {
    let ran = output(&mut toolctl(d, vars, &[&["run"], options, &["--", "/usr/bin/env", "-0"]].concat()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    variables(&ran.stdout)
}

#[test]
fn a_process_has_the_environment_of_its_caller_and_nothing_of_the_one_that_started_the_daemon() {
    // The broken code gave it VIRTUAL_ENV, USER and the like of the daemon, and dropped everything else of the caller.
    let d = Daemon::start_with("[env]\npass = [\"DATABASE_URL\"]\n", &THEIRS);
    let ours =
        [("VIRTUAL_ENV", "/v2"), ("USER", "second"), ("NODE_ENV", "dev"), ("API_TOKEN", "t"), ("WIDE", "ä=b\nc")];
    let command = toolctl(&d, &ours, &[]);
    let text = |text: &OsStr| text.to_str().unwrap().to_string();
    let caller: BTreeMap<String, String> =
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
    assert_eq!(run_env(&d, &ours, &[]), caller);
    let started = output(&mut toolctl(&d, &ours, &["exec", "--name", "env", "--", "/usr/bin/env", "-0"]));
    assert_eq!(started.code, 0, "{started:?}");
    d.closed("env");
    assert_eq!(variables(&d.text("env")), caller, "exec does as run does");
    let lines = run_env(&d, &ours, &["--pty"]);
    assert_eq!(
        (&lines["VIRTUAL_ENV"], &lines["TERM"]),
        (&"/v2".into(), &"xterm-256color".into()),
        "a terminal has a kind"
    );
}

#[test]
fn a_directory_of_its_own_is_in_pwd_and_a_given_pwd_wins() {
    let d = Daemon::start();
    let pwd = |options: &[&str]| run_env(&d, &[("PWD", "/link")], options).remove("PWD");
    assert_eq!(pwd(&[]).as_deref(), Some("/link"), "the caller's own, which may have links in it");
    assert_eq!(pwd(&["--cwd", "/tmp"]).as_deref(), Some("/tmp"));
    assert_eq!(pwd(&["--cwd", "/tmp", "--env", "PWD=/given"]).as_deref(), Some("/given"));
    assert_eq!(pwd(&["--cwd", "/tmp", "--env-mode", "replace"]), None);
}

#[test]
fn each_mode_has_its_own_base_and_options_go_over_it() {
    let d = Daemon::start_with("[env]\npass = [\"DATABASE_URL\"]\n", &THEIRS);
    let ours = [("VIRTUAL_ENV", "/v2"), ("NODE_ENV", "dev"), ("DATABASE_URL", "ours"), ("XDG_API_KEY", "k")];
    let clean = run_env(&d, &ours, &["--env-mode", "clean"]);
    assert_eq!((&clean["VIRTUAL_ENV"], &clean["DATABASE_URL"]), (&"/v2".into(), &"ours".into()));
    for absent in ["NODE_ENV", "XDG_API_KEY", "USER", "LANG", "XDG_DATA_HOME", "THEIR_SECRET"] {
        assert!(!clean.contains_key(absent), "{absent}: {clean:?}");
    }
    // The broken code took a name of `pass` from the daemon.
    assert!(!run_env(&d, &[], &["--env-mode", "clean"]).contains_key("DATABASE_URL"));
    let inherit = run_env(&d, &ours, &["--env-mode", "inherit", "--env", "NODE_ENV"]);
    assert_eq!(
        (&inherit["VIRTUAL_ENV"], &inherit["THEIR_SECRET"], &inherit["NODE_ENV"]),
        (&"/v1".into(), &"theirs".into(), &"dev".into())
    );
    let replace = run_env(&d, &ours, &["--env-mode", "replace", "--env", "NODE_ENV", "--env", "A=1=2", "--env", "B="]);
    let expected = [("NODE_ENV", "dev"), ("A", "1=2"), ("B", "")];
    assert_eq!(replace, expected.map(|(name, value)| (name.into(), value.into())).into());
}

#[test]
fn a_variable_that_the_caller_lacks_is_left_out_and_reported() {
    let d = Daemon::start_with("", &[("LACKING", "the daemon's")]);
    let args = ["run", "--env", "LACKING", "--env-mode", "replace", "--", "/usr/bin/env"];
    let ran = output(d.ctl_command(&args).env_remove("LACKING"));
    let printed = "toolctl: --env LACKING: is not set here; it is left out\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", printed));
}

#[test]
fn an_env_file_is_read_and_a_bad_line_is_reported_by_its_number_and_starts_nothing() {
    let d = Daemon::start();
    let file = d.root().join("env");
    fs::write(&file, "# settings\nA=1\n\nB='quoted' #not a comment\nC=over\n").unwrap();
    let path = file.to_str().unwrap();
    let env = run_env(&d, &[], &["--env-mode", "replace", "--env", "C=ridden", "--env-file", path]);
    let expected = [("A", "1"), ("B", "'quoted' #not a comment"), ("C", "ridden")];
    assert_eq!(env, expected.map(|(name, value)| (name.into(), value.into())).into());
    let before = d.ok("list", json!({}))["processes"].as_array().unwrap().len();
    fs::write(&file, "A=1\n# fine\ns3cret-without-a-name\n").unwrap();
    let ran = d.ctl(&["run", "--env-file", path, "--", "/bin/true"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains(&format!("{path}: line 3: is not NAME=VALUE")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    let missing = d.ctl(&["exec", "--env-file", "/nowhere/env", "--", "/bin/true"]);
    assert!(missing.code == 2 && missing.stderr.contains("--env-file /nowhere/env: No such file"), "{missing:?}");
    assert_eq!(d.ctl(&["exec", "--env", "=x", "--", "/bin/true"]).code, 2);
    assert_eq!(d.ok("list", json!({}))["processes"].as_array().unwrap().len(), before, "nothing was started");
}

#[test]
fn a_value_that_is_not_utf_8_passes_unchanged() {
    let d = Daemon::start();
    let raw = OsString::from_vec(b"a\xff\xfe'z".to_vec());
    let script = "printf %s \"$RAW\" | od -An -tx1";
    for options in
        [&["run"][..], &["run", "--env-mode", "replace", "--env", "RAW", "--env", "PATH"], &["run", "--login"]]
    {
        let ran = output(d.ctl_command(&[options, &["-c", script]].concat()).env("RAW", &raw));
        assert_eq!((ran.code, ran.stdout.trim()), (0, "61 ff fe 27 7a"), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn a_shell_reads_no_login_files_unless_asked_to() {
    // The broken code ran a login shell: one `echo` in a profile was in the output of every job.
    let d = Daemon::start();
    fs::write(d.home().join(".profile"), "echo profile\n").unwrap();
    let run = |options: &[&str]| {
        let all = [&["run", "--shell", "/bin/sh"], options, &["-c", "echo text"]].concat();
        output(d.ctl_command(&all).env("HOME", d.home())).stdout
    };
    assert_eq!((run(&[]), run(&["--no-login"])), ("text\n".into(), "text\n".into()));
    let login = run(&["--login"]);
    assert!(login.contains("profile\n") && login.ends_with("text\n"), "{login}");
}
