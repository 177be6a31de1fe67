//! The environment of a process, and that its values are stored and shown nowhere else.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use toold_test_support::rig::{Daemon, files, id, skip_unless};

fn env_of(d: &Daemon, more: Value) -> BTreeMap<String, String> {
    let mut params = json!({ "argv": ["/usr/bin/env", "-0"], "yield_ms": 30000 });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let p = d.ok("exec", params);
    d.closed(&id(&p));
    let text = d.text(&id(&p));
    text.split_terminator('\0').filter_map(|line| line.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
}

#[test]
fn clean_passes_only_the_listed_names() {
    let listed = [
        ("USER", "u"),
        ("LOGNAME", "l"),
        ("SHELL", "/bin/sh"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C"),
        ("LC_TIME", "C"),
        ("TERM", "xterm"),
        ("TMP", "/tmp"),
        ("TEMP", "/tmp"),
        ("XDG_DATA_HOME", "/tmp/data"),
        ("TZ", "UTC"),
        ("PYTHONPATH", "/tmp/py"),
        ("VIRTUAL_ENV", "/tmp/venv"),
        ("CONDA_PREFIX", "/tmp/conda"),
    ];
    let others = [
        ("MY_VARIABLE", "no"),
        ("LD_PRELOAD_X", "no"),
        ("PATHX", "no"),
        ("MYPATH", "no"),
        ("TZX", "no"),
        ("XDG_API_KEY", "no"),
        ("CONDA_TOKEN", "no"),
        ("LC_secret", "no"),
        ("XDG_Password_FILE", "no"),
        ("CONDA_CREDENTIALS", "no"),
        ("XDG_PASSWD", "no"),
        ("XDG_AUTHOR", "no"),
    ];
    let d = Daemon::start_with("", &[&listed[..], &others[..]].concat());
    let env = env_of(&d, json!({}));
    for (name, value) in listed {
        assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
    }
    for name in ["PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        assert!(env.contains_key(name), "{name}");
    }
    for (name, _) in others {
        assert!(!env.contains_key(name), "{name} must not pass");
    }
    assert_eq!(env_of(&d, json!({ "env_mode": "clean" })), env, "clean is the default");
}

#[test]
fn config_adds_names_that_clean_passes_even_if_they_look_secret() {
    let d = Daemon::start_with(
        "[env]\npass = [\"MY_VARIABLE\", \"DEPLOY_TOKEN\"]\n",
        &[("MY_VARIABLE", "1"), ("DEPLOY_TOKEN", "2"), ("OTHER_TOKEN", "3")],
    );
    let env = env_of(&d, json!({}));
    assert_eq!((env["MY_VARIABLE"].as_str(), env["DEPLOY_TOKEN"].as_str()), ("1", "2"));
    assert!(!env.contains_key("OTHER_TOKEN"));
}

#[test]
fn inherit_passes_the_whole_environment_of_the_daemon() {
    let d = Daemon::start_with("", &[("MY_VARIABLE", "1"), ("API_TOKEN", "2")]);
    let env = env_of(&d, json!({ "env_mode": "inherit" }));
    assert_eq!((env["MY_VARIABLE"].as_str(), env["API_TOKEN"].as_str()), ("1", "2"));
    assert!(env.contains_key("PATH") && env.contains_key("HOME"));
}

#[test]
fn replace_passes_only_the_variables_of_the_call() {
    let d = Daemon::start();
    let env = env_of(&d, json!({ "env_mode": "replace", "env": { "ONLY": "this", "EMPTY": "" } }));
    assert_eq!(env, BTreeMap::from([("ONLY".into(), "this".into()), ("EMPTY".into(), "".into())]));
}

#[test]
fn variables_of_the_call_win_over_every_mode_and_every_rule() {
    let d = Daemon::start_with("", &[("LANG", "C"), ("MY_VARIABLE", "daemon")]);
    for mode in ["clean", "inherit", "replace"] {
        let given =
            json!({ "LANG": "de", "MY_VARIABLE": "call", "API_KEY": "k", "HOME": "/elsewhere", "WIDE": "ä=b\nc" });
        let env = env_of(&d, json!({ "env_mode": mode, "env": given }));
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(Some(env[name].as_str()), value.as_str(), "{name} in {mode}");
        }
    }
}

#[test]
fn variables_of_the_call_win_over_the_files_of_a_login_shell() {
    // The broken code let those files win: on most systems /etc/profile sets PATH.
    let d = Daemon::start();
    let files = "export PATH=/usr/bin:/bin GIVEN=profile OTHER=profile\n";
    for name in [".profile", ".bash_profile", ".zprofile"] {
        fs::write(d.home().join(name), files).unwrap();
    }
    let config = d.home().join("fish/config.fish");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(config, "set -gx PATH /usr/bin /bin; set -gx GIVEN profile; set -gx OTHER profile\n").unwrap();
    let command = "echo \"$PATH|$GIVEN|$OTHER|$TOOLD_ENV\"";
    for shell in ["sh", "dash", "bash", "zsh", "fish"] {
        let installed = ["/bin", "/usr/bin"].iter().any(|dir| std::path::Path::new(dir).join(shell).exists());
        if skip_unless(installed, &format!("{shell} is asked too")) {
            continue;
        }
        let given = json!({ "PATH": "/mine:/usr/bin:/bin", "GIVEN": "it's \\ $HOME", "XDG_CONFIG_HOME": d.home() });
        let p = d.ok("exec", json!({ "command": command, "shell": shell, "env": given, "yield_ms": 30000 }));
        // Other output of this machine's login files comes first.
        let output = p["output"].as_str().unwrap();
        assert!(output.ends_with("/mine:/usr/bin:/bin|it's \\ $HOME|profile|\n"), "{shell}: {output}");
        assert_eq!(p["command"], command, "the command is returned unchanged");
        let inspect = d.ok("inspect", json!({ "id": id(&p) }));
        assert!(!inspect["env_names"].to_string().contains("TOOLD_ENV"), "the command has no such variable");
        assert!(!inspect["argv"].to_string().contains("/mine"), "values are in no argument: {}", inspect["argv"]);
    }
}

#[test]
fn a_value_that_is_not_text_is_passed_in_base64_and_a_wrong_one_starts_nothing() {
    let d = Daemon::start();
    let script = "printf %s \"$RAW\" | od -An -tx1; echo \"$TEXT\"";
    let more =
        json!({ "env": { "TEXT": "t" }, "env_base64": { "RAW": "Zv9v" }, "env_mode": "replace", "yield_ms": 30000 });
    for login in [false, true] {
        let mut params = more.clone();
        params.as_object_mut().unwrap().extend([
            ("command".into(), json!(script)),
            ("shell".into(), json!("/bin/sh")),
            ("login".into(), json!(login)),
        ]);
        let p = d.ok("exec", params);
        assert!(p["output"].as_str().unwrap().ends_with(" 66 ff 6f\nt\n"), "{login}: {p}");
    }
    let before = d.ok("list", json!({}))["processes"].as_array().unwrap().len();
    for (wrong, param) in [
        (json!({ "env_base64": { "A": "no base64" } }), "env_base64.A"),
        (json!({ "env_base64": { "A": "AA==" } }), "env_base64.A"),
        (json!({ "env_base64": { "A=": "" } }), "env_base64.A="),
        (json!({ "env": { "A": "" }, "env_base64": { "A": "" } }), "env_base64.A"),
    ] {
        let mut params = json!({ "argv": ["/bin/true"] });
        params.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        d.refused_param(param, "exec", params);
    }
    assert_eq!(d.ok("list", json!({}))["processes"].as_array().unwrap().len(), before);
}

#[test]
fn a_shell_is_not_that_of_the_caller_that_started_the_daemon_if_the_mode_passes_nothing_on() {
    // The broken code took the daemon's SHELL also for a caller that had asked for nothing of the daemon.
    let root = tempfile::tempdir().unwrap();
    // A known name at an unusual place, which no user database has.
    let theirs = root.path().join("sh");
    std::os::unix::fs::symlink("/bin/sh", &theirs).unwrap();
    let theirs = theirs.to_str().unwrap();
    let d = Daemon::start_with("", &[("SHELL", theirs)]);
    let shell = |mode: &str| {
        let p = d.ok("exec", json!({ "command": "true", "env_mode": mode, "login": false }));
        p["argv"][0].as_str().unwrap().to_string()
    };
    assert_eq!((shell("clean"), shell("inherit")), (theirs.into(), theirs.into()));
    assert_ne!(shell("replace"), theirs);
}

#[test]
fn a_value_is_in_no_answer_file_or_log_and_inspect_shows_only_its_name() {
    const VALUE: &str = "hunter2-never-stored-42";
    const INHERITED: &str = "hunter3-of-the-daemon-43";
    let mut d = Daemon::start_with("", &[("RUST_LOG", "trace"), ("DAEMON_TOKEN", INHERITED)]);
    let script = "test \"$MY_PASSWORD$DAEMON_TOKEN\" && echo has it; exec sleep 1000";
    let more = json!({ "env": { "MY_PASSWORD": VALUE }, "env_mode": "inherit", "name": "secretive" });
    let proc = id(&d.sh_with(script, more));
    d.printed(&proc, "has it");
    let look = |d: &Daemon, when: &str| {
        let inspect = d.ok("inspect", json!({ "id": proc }));
        let names = inspect["env_names"].as_array().unwrap();
        assert!(names.contains(&json!("MY_PASSWORD")) && names.contains(&json!("DAEMON_TOKEN")), "{when}: {names:?}");
        let answers = [inspect, d.ok("list", json!({})), d.process(&proc), d.ok("daemon.info", json!({}))];
        for value in [VALUE, INHERITED] {
            assert!(answers.iter().all(|a| !a.to_string().contains(value)), "{when}: an answer contains it");
            assert!(!d.log().contains(value), "{when}: the log contains it");
            for file in files(&d.state()) {
                let bytes = fs::read(&file).unwrap_or_default();
                let found = bytes.windows(value.len()).any(|w| w == value.as_bytes());
                assert!(!found, "{when}: {} contains it", file.display());
            }
        }
    };
    look(&d, "while it runs");
    d.restart();
    look(&d, "after a restart");
    d.ok("kill", json!({ "id": proc }));
    look(&d, "after its end");
}
