//! The walls of a sandbox, from inside, by each mechanism.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id};

/// The mechanisms, as the config names them.
const MECHANISMS: [&str; 3] = ["auto", "namespaces", "landlock"];

fn daemon(mechanism: &str) -> Daemon {
    let d = Daemon::start_with(&format!("[sandbox]\nmechanism = \"{mechanism}\"\n"), &[]);
    let root = root(&d);
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::write(root.join(".git/config"), "[core]\n").unwrap();
    fs::create_dir_all(d.home().join(".ssh")).unwrap();
    fs::write(d.home().join(".ssh/key"), "secret\n").unwrap();
    fs::write(d.home().join("outside"), "as it was\n").unwrap();
    d
}

fn root(d: &Daemon) -> std::path::PathBuf {
    d.home().join("work")
}

/// Runs a script in the sandbox to its end, and returns the process.
fn run(d: &Daemon, sandbox: Value, script: &str) -> Value {
    let home = d.home().display().to_string();
    let argv = json!(["/bin/sh", "-c", script.replace("HOME/", &format!("{home}/"))]);
    let started = d.ok("exec", json!({"argv": argv, "cwd": root(d), "sandbox": sandbox, "session_key": "s"}));
    d.closed(&id(&started))
}

fn lines(d: &Daemon, process: &Value) -> Vec<String> {
    d.text(&id(process)).lines().map(String::from).collect()
}

/// Checks for a target in the file of refusals.
fn is_recorded(d: &Daemon, process: &Value, target: &Path) -> bool {
    let file = fs::read(d.state().join("procs").join(id(process)).join("denials")).unwrap_or_default();
    let path = target.display().to_string();
    file.windows(path.len()).any(|part| part == path.as_bytes())
}

fn list(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_job_writes_in_its_root_and_nowhere_else() {
    for mechanism in MECHANISMS {
        let d = daemon(mechanism);
        let script = "echo in > here && echo root; echo out > HOME/outside; echo new > HOME/new; rm HOME/outside; \
            echo tmp > ${TMPDIR:-/tmp}/a && echo tmp; echo x > /dev/null && echo null";
        let process = run(&d, json!("workspace-write"), script);
        let text = lines(&d, &process);
        for part in ["root", "tmp", "null"] {
            assert!(text.iter().any(|line| line == part), "{mechanism} {part}: {text:?} {process}");
        }
        assert_eq!(fs::read_to_string(d.home().join("outside")).unwrap(), "as it was\n", "{mechanism}");
        assert!(!d.home().join("new").exists(), "{mechanism}");
        assert_eq!(fs::read_to_string(root(&d).join("here")).unwrap(), "in\n");
        let sandbox = &process["sandbox"];
        assert!(list(&sandbox["enforced"]).contains(&"fs_write"), "{mechanism}: {sandbox}");
    }
}

#[test]
fn protected_hidden_and_foreign_things_are_out_of_reach() {
    for mechanism in ["auto", "namespaces"] {
        let d = daemon(mechanism);
        let script = "echo x > .git/hooks/pre-commit; mv .git moved; rm -r .git/hooks; echo x >> .git/config; \
            cat HOME/.ssh/key; chmod 777 HOME/outside; touch -d 2001-01-01 HOME/outside; touch .git/index && echo git; \
            ls -A HOME/.ssh; ls /tmp; echo end";
        let process = run(&d, json!("workspace-write"), script);
        let text = lines(&d, &process);
        assert!(text.iter().any(|line| line == "git") && text.iter().any(|line| line == "end"), "{text:?}");
        assert!(!text.iter().any(|line| line.contains("secret")), "{mechanism}: {text:?}");
        assert!(root(&d).join(".git/hooks").is_dir() && !root(&d).join(".git/hooks/pre-commit").exists());
        assert_eq!(fs::read_to_string(root(&d).join(".git/config")).unwrap(), "[core]\n");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(d.home().join("outside")).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o644, "{mechanism}");
    }
}

#[test]
fn a_job_has_no_capabilities_and_gets_none() {
    for mechanism in MECHANISMS {
        let d = daemon(mechanism);
        let process = run(&d, json!("workspace-write"), "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
        let none = format!("{:016x}", 0);
        let is_root = std::os::unix::fs::MetadataExt::uid(&fs::metadata(d.home()).unwrap()) == 0;
        for line in lines(&d, &process) {
            let (name, value) = line.split_once(":\t").expect("a field");
            let expected = match name {
                "NoNewPrivs" => "1",
                "Seccomp" => "2",
                // An ordinary user without a namespace cannot empty it, and gets nothing from it.
                "CapBnd" if mechanism == "landlock" && !is_root => value,
                _ => none.as_str(),
            };
            assert_eq!(value, expected, "{mechanism}: {line}");
        }
    }
}

#[test]
fn a_working_directory_that_was_swapped_while_the_job_waited_is_refused() {
    let d = daemon("auto");
    let fifo = d.home().join("fifo");
    assert_eq!(output_of(d.tool("mkfifo", &[fifo.to_str().unwrap()]).spawn().unwrap()).code, 0);
    let before = d.sh(&format!("cat {} > /dev/null", fifo.display()));
    let (root, moved) = (root(&d), d.home().join("moved"));
    let params = json!({"argv": ["/bin/touch", "ran"], "cwd": root, "sandbox": "workspace-write", "after": [before]});
    let waiting = id(&d.ok("exec", params));
    fs::rename(&root, &moved).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(&fifo, "go").unwrap();
    let answer = d.ok("wait", json!({ "id": waiting, "timeout_ms": 20000 }));
    let ended = &answer["processes"][0];
    assert_eq!(
        (&ended["reason"], &ended["failure"]["step"]),
        (&json!("failed_start"), &json!("path_identity")),
        "{ended}"
    );
    assert!(!root.join("ran").exists() && !moved.join("ran").exists());
}

#[test]
fn what_a_mechanism_cannot_enforce_is_listed_and_can_be_required() {
    let d = daemon("landlock");
    let process = run(&d, json!("workspace-write"), "true");
    let sandbox = &process["sandbox"];
    let missing: Vec<&str> =
        sandbox["not_enforced"].as_array().unwrap().iter().filter_map(|not| not["what"].as_str()).collect();
    for what in ["fs_metadata", "protect", "hide", "tmp", "unix_sockets"] {
        assert!(missing.contains(&what), "{what}: {sandbox}");
    }
    let before = d.ids(json!({})).len();
    let required = json!({"argv": ["/bin/true"], "cwd": root(&d),
        "sandbox": {"profile": "workspace-write", "require": ["protect"]}});
    let refused = d.refused(-32008, "unavailable", "exec", required);
    assert_eq!(refused["data"]["not_enforced"][0]["what"], "protect", "{refused}");
    assert_eq!(d.ids(json!({})).len(), before, "nothing ran");
}

#[test]
fn the_network_is_off_or_a_loopback_that_the_session_shares() {
    let d = daemon("auto");
    let probe = "import socket\ns = socket.socket()\ns.settimeout(2)\n";
    let off = run(&d, json!("workspace-write"), &format!("python3 -c '{probe}s.connect((\"10.0.0.1\", 9))'"));
    assert_ne!(off["exit_code"], 0);
    let loopback = json!({"profile": "workspace-write", "network": "loopback"});
    let server = "python3 -c 'import socket\ns = socket.create_server((\"127.0.0.1\", 7171))\nprint(\"up\", flush=True)\n\
        c, _ = s.accept()\nc.sendall(b\"hello\")'";
    let argv = json!(["/bin/sh", "-c", server]);
    let started = d.ok("exec", json!({"argv": argv, "cwd": root(&d), "sandbox": loopback, "session_key": "s"}));
    d.printed(&id(&started), "up");
    let client = format!("python3 -c '{probe}s.connect((\"127.0.0.1\", 7171))\nprint(s.recv(9))'");
    let process = run(&d, loopback.clone(), &client);
    assert!(d.text(&id(&process)).contains("hello"), "{}", d.text(&id(&process)));
    let other =
        json!({"argv": ["/bin/sh", "-c", client], "cwd": root(&d), "sandbox": loopback, "session_key": "other"});
    let refused = d.closed(&id(&d.ok("exec", other)));
    assert_ne!(refused["exit_code"], 0, "another session has another loopback");
}

/// A directory outside the root that no private `/tmp` covers, removed with it.
struct Outside(PathBuf);

impl Outside {
    fn new(d: &Daemon) -> Outside {
        let dir = Path::new("/var/tmp").join(d.root().file_name().unwrap());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "as it was\n").unwrap();
        Outside(dir)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_refusal_names_the_target_of_a_link_and_not_what_the_kernel_allows() {
    for mechanism in MECHANISMS {
        let d = daemon(mechanism);
        let outside = Outside::new(&d);
        let out = &outside.0;
        std::os::unix::fs::symlink(out.join("file"), root(&d).join("link")).unwrap();
        std::os::unix::fs::symlink(out.join("missing"), root(&d).join("dangling")).unwrap();
        let script = "echo x > link; echo x > dangling; echo x > OUT/new; mkdir OUT/dir; rm OUT/file; mkdir -p OUT; \
            echo x > copy; mv copy moved; rm moved; mkdir dir; rmdir dir; cat OUT/none; rm OUT/none; echo end";
        let process = run(&d, json!("workspace-write"), &script.replace("OUT", out.to_str().unwrap()));
        assert!(d.text(&id(&process)).ends_with("end\n"));
        for target in ["file", "missing", "new", "dir"] {
            assert!(is_recorded(&d, &process, &out.join(target)), "{mechanism}: {target}");
        }
        for link in ["link", "dangling"] {
            assert!(is_recorded(&d, &process, &root(&d).join(link)), "{mechanism}: by {link}");
        }
        for target in [root(&d).join("copy"), root(&d).join("moved"), root(&d).join("dir"), out.join("none")] {
            assert!(!is_recorded(&d, &process, &target), "{mechanism}: {} was not refused", target.display());
        }
        assert_eq!(fs::read_to_string(out.join("file")).unwrap(), "as it was\n", "{mechanism}");
        assert_eq!(fs::read_dir(out).unwrap().count(), 1, "{mechanism}");
    }
}

#[test]
fn the_daemon_of_an_ordinary_user_confines_by_the_same_walls() {
    let mut d = Daemon::prepare("", &[]);
    d.give_to_other_user();
    d.spawn();
    let script = "mkdir work; cd work; echo x > /dev/null && echo null; grep -h ^CapEff /proc/self/status";
    let started =
        d.ok("exec", json!({"argv": ["/bin/sh", "-c", script], "cwd": d.home(), "sandbox": "workspace-write"}));
    let process = d.closed(&id(&started));
    assert_eq!(d.text(&id(&process)), "null\nCapEff:\t0000000000000000\n");
    assert_eq!(process["sandbox"]["by"]["namespaces"], json!(["user", "mnt", "net", "ipc"]), "{process}");
    let refused = json!({"argv": ["/bin/touch", d.root().join("x")], "cwd": d.home().join("work"),
        "sandbox": "workspace-write"});
    d.closed(&id(&d.ok("exec", refused)));
    assert!(!d.root().join("x").exists());
}

#[test]
fn nothing_is_left_of_a_wall_after_its_last_job() {
    let d = daemon("auto");
    let left = |d: &Daemon| {
        let fds = fs::read_dir(format!("/proc/{}/fd", d.pid())).unwrap();
        let links = fds.flatten().filter_map(|fd| fs::read_link(fd.path()).ok());
        let namespaces = ["mnt:", "net:", "user:", "ipc:"];
        links.filter(|link| namespaces.iter().any(|name| link.to_string_lossy().starts_with(name))).count()
    };
    run(&d, json!("workspace-write"), "true");
    assert_eq!(left(&d), 5, "the wall is kept for the next job");
    d.eventually("the wall is gone", || left(&d) == 0);
}
