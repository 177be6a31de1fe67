//! `exec {stage}` and `stage.diff`, `stage.commit`, `stage.discard`: a job runs on an overlay, and nothing below it changes
//! before a commit.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toold_test_support::rig::{Daemon, id};

/// Starts a daemon with a project directory, as root and where possible as another user too.
fn daemons() -> Vec<(Daemon, PathBuf)> {
    let mut all = vec![(Daemon::start(), false)];
    if is_root() {
        let mut other = Daemon::prepare("", &[]);
        other.give_to_other_user();
        other.spawn();
        all.push((other, true));
    }
    all.into_iter()
        .map(|(d, is_other)| {
            let project = d.root().join("project");
            std::fs::create_dir(&project).expect("writable");
            for (path, text) in [("a", "one\ntwo\n"), ("gone", "x\n"), ("dir/c", "c\n"), ("run.sh", "#!/bin/sh\n")] {
                let path = project.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).expect("writable");
                std::fs::write(path, text).expect("writable");
            }
            if is_other {
                let owner = std::fs::metadata(d.state()).expect("the state directory");
                use std::os::unix::fs::MetadataExt;
                give(&project, owner.uid(), owner.gid());
            }
            (d, project)
        })
        .collect()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn give(path: &Path, uid: u32, gid: u32) {
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("root gives files away");
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("listed").flatten() {
            give(&entry.path(), uid, gid);
        }
    }
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs a script on a stage in the project, and waits until nothing of it is left.
fn staged(d: &Daemon, project: &Path, script: &str, more: Value) -> String {
    let mut params = json!({ "argv": ["sh", "-c", script], "cwd": project, "stage": true });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let proc = id(&d.ok("exec", params));
    ready(d, &proc);
    proc
}

fn ready(d: &Daemon, proc: &str) {
    d.eventually("the stage is ready", || d.process(proc)["stage"]["state"] == "ready");
}

fn profiles() -> [Value; 2] {
    [json!({}), json!({ "sandbox": "workspace-write" })]
}

const SCRIPT: &str = "echo three >> a; unlink gone; echo new > n; mkdir sub; echo s > sub/s; chmod 755 run.sh; unlink dir/c; \
    rmdir dir; ln -s a link; cat a";

#[test]
fn a_staged_job_changes_nothing_until_its_commit_which_makes_all_of_it() {
    for (d, project) in daemons() {
        for more in profiles() {
            let proc = staged(&d, &project, SCRIPT, more.clone());
            assert_eq!(d.text(&proc), "one\ntwo\nthree\n", "{more}: it sees its own changes");
            assert_eq!(d.process(&proc)["exit_code"], 0);
            assert_eq!(d.process(&proc)["stage"]["roots"], json!([project]));
            assert_eq!(read(project.join("a")), "one\ntwo\n");
            assert!(project.join("gone").exists() && !project.join("n").exists());

            let diff = d.ok("stage.diff", json!({ "id": proc }));
            let files: Vec<String> = diff["files"].as_array().unwrap().iter().map(line).collect();
            let wanted = [
                "update a",
                "delete dir",
                "delete dir/c",
                "delete gone",
                "add link",
                "add n",
                "metadata run.sh",
                "add sub",
                "add sub/s",
            ];
            assert_eq!(files, wanted.map(|line| line.replacen(' ', &format!(" {}/", project.display()), 1)), "{more}");
            assert!(
                diff["diff"].as_str().unwrap().contains("--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n two\n+three\n"),
                "{diff}"
            );
            let digest = diff["digest"].clone();

            let done = d.ok("stage.commit", json!({ "id": proc, "digest": digest }));
            assert_eq!((&done["state"], &done["total"], &done["left"]), (&json!("committed"), &json!(9), &json!(0)));
            assert_eq!(read(project.join("a")), "one\ntwo\nthree\n");
            assert_eq!(read(project.join("sub/s")), "s\n");
            assert!(!project.join("gone").exists() && !project.join("dir").exists());
            assert_eq!(std::fs::read_link(project.join("link")).unwrap(), Path::new("a"));
            assert_eq!(std::fs::metadata(project.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
            assert_eq!(d.process(&proc)["stage"]["state"], "committed");

            let again = d.refused(-32009, "conflict", "stage.commit", json!({ "id": proc, "digest": digest }));
            assert_eq!(again["data"]["already"], "committed");
            d.refused(-32009, "conflict", "stage.discard", json!({ "id": proc }));
            let left: Vec<_> = entries(&d.state().join("procs").join(&proc).join("stage"));
            assert_eq!(left, ["end", "ready", "start"], "the layers are gone");
            restore(&project);
        }
    }
}

fn line(file: &Value) -> String {
    format!("{} {}", file["op"].as_str().unwrap(), file["path"].as_str().unwrap())
}

fn entries(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .expect("listed")
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Brings the project back to where it began.
fn restore(project: &Path) {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(project).unwrap();
    for path in ["n", "link", "sub/s"] {
        std::fs::remove_file(project.join(path)).expect("committed");
    }
    std::fs::remove_dir(project.join("sub")).expect("committed");
    std::fs::create_dir(project.join("dir")).expect("writable");
    for (path, text) in [("a", "one\ntwo\n"), ("gone", "x\n"), ("dir/c", "c\n")] {
        std::fs::write(project.join(path), text).expect("writable");
    }
    std::fs::set_permissions(project.join("run.sh"), std::fs::Permissions::from_mode(0o644)).expect("ours");
    give(project, owner.uid(), owner.gid());
}

#[test]
fn a_discarded_stage_leaves_nothing_even_of_directories_without_permissions() {
    for (d, project) in daemons() {
        let script = "mkdir -p locked/in; echo x > locked/in/f; chmod 000 locked/in; chmod 000 locked; echo y > a";
        let proc = staged(&d, &project, script, json!({}));
        let discarded = d.ok("stage.discard", json!({ "id": proc }));
        assert_eq!(discarded, json!({ "id": proc, "state": "discarded" }));
        assert_eq!(read(project.join("a")), "one\ntwo\n");
        assert!(!project.join("locked").exists());
        assert!(!d.state().join("procs").join(&proc).join("stage/0").exists());
        let diff = d.ok("stage.diff", json!({ "id": proc }));
        assert_eq!((&diff["state"], &diff["files"]), (&json!("discarded"), &json!([])));
        let refused = d.refused(-32009, "conflict", "stage.discard", json!({ "id": proc }));
        assert_eq!(refused["data"]["already"], "discarded");

        // And one that is forgotten takes its layers along.
        let proc = staged(&d, &project, script, json!({}));
        assert_eq!(d.ok("forget", json!({ "ids": [proc] }))["forgotten"], json!([proc]));
        assert_eq!(entries(&d.state().join("procs")).iter().filter(|name| name.starts_with(&proc)).count(), 0);
    }
}

#[test]
fn a_file_that_changed_below_is_named_in_a_conflict_and_nothing_is_committed() {
    let (d, project) = daemons().remove(0);
    let proc = staged(&d, &project, "echo three >> a; echo n > n; unlink gone", json!({}));
    std::fs::write(project.join("a"), "mine\n").expect("writable");
    std::fs::write(project.join("n"), "mine\n").expect("writable");
    let diff = d.ok("stage.diff", json!({ "id": proc }));
    let in_conflict = diff["files"].as_array().unwrap().iter().filter(|file| file["conflict"] == true).count();
    assert_eq!(in_conflict, 2, "{diff}");
    let refused = d.refused(-32009, "conflict", "stage.commit", json!({ "id": proc, "digest": diff["digest"] }));
    assert_eq!(refused["data"]["paths"], json!([project.join("a"), project.join("n")]));
    assert_eq!((read(project.join("a")), read(project.join("n"))), ("mine\n".into(), "mine\n".into()));
    assert!(project.join("gone").exists());
    // What is not in conflict can be committed by itself.
    let done = d.ok("stage.commit", json!({ "id": proc, "digest": diff["digest"], "paths": ["gone"] }));
    assert_eq!((&done["state"], &done["total"], &done["left"]), (&json!("ready"), &json!(1), &json!(2)));
    assert!(!project.join("gone").exists());
}

#[test]
fn a_commit_needs_the_digest_of_the_changes_and_paths_select_some_of_them() {
    let (d, project) = daemons().remove(0);
    let proc = staged(&d, &project, "mkdir -p new/deep; echo 1 > new/deep/f; echo 2 > new/g; echo 3 > a", json!({}));
    let digest = d.ok("stage.diff", json!({ "id": proc }))["digest"].clone();
    let stale = d.refused(-32009, "conflict", "stage.commit", json!({ "id": proc, "digest": "0" }));
    assert_eq!((&stale["data"]["reason"], &stale["data"]["digest"]), (&json!("digest"), &digest));
    for path in ["nowhere", ""] {
        d.refused_param("paths[0]", "stage.commit", json!({ "id": proc, "digest": digest, "paths": [path] }));
    }
    assert_eq!(read(project.join("a")), "one\ntwo\n");
    let done = d.ok("stage.commit", json!({ "id": proc, "digest": digest, "paths": ["new/deep"] }));
    assert_eq!((&done["state"], &done["left"]), (&json!("ready"), &json!(2)));
    assert_eq!(read(project.join("new/deep/f")), "1\n");
    assert!(!project.join("new/g").exists());
    d.refused(-32009, "conflict", "stage.commit", json!({ "id": proc, "digest": digest }));
    let rest = d.ok("stage.commit", json!({ "id": proc, "digest": done["digest"] }));
    assert_eq!((&rest["state"], &rest["total"]), (&json!("committed"), &json!(2)));
    assert_eq!((read(project.join("new/g")), read(project.join("a"))), ("2\n".into(), "3\n".into()));
}

#[test]
fn a_running_job_shows_its_changes_so_far_and_cannot_be_committed() {
    let (d, project) = daemons().remove(0);
    let call = json!({ "argv": ["sh", "-c", "echo x > a; echo done; read line"], "cwd": project, "stage": true, "stdin": "pipe" });
    let proc = id(&d.ok("exec", call));
    d.printed(&proc, "done");
    let diff = d.ok("stage.diff", json!({ "id": proc }));
    assert_eq!((&diff["state"], &diff["digest"], &diff["total"]), (&json!("running"), &json!(null), &json!(1)));
    for (method, params) in
        [("stage.commit", json!({ "id": proc, "digest": "" })), ("stage.discard", json!({ "id": proc }))]
    {
        assert_eq!(d.refused(-32009, "conflict", method, params)["data"]["reason"], "running");
    }
    d.ok("close", json!({ "id": proc }));
    ready(&d, &proc);
}

#[test]
fn a_stage_survives_kill_9_of_the_daemon_and_is_announced_once() {
    let (mut d, project) = daemons().remove(0);
    let call = json!({ "argv": ["sh", "-c", "echo x > a; echo done; read line; echo y >> a"], "cwd": project, "stage": true, "stdin": "pipe" });
    let proc = id(&d.ok("exec", call));
    d.printed(&proc, "done");
    d.kill9();
    d.spawn();
    assert_eq!(d.process(&proc)["stage"]["state"], "running");
    d.ok("close", json!({ "id": proc }));
    ready(&d, &proc);
    let announced = |d: &Daemon| {
        let next = d.ok(
            "events.next",
            json!({ "consumer": "t", "from": "oldest", "limit": 100, "types": ["stage_ready"], "wait_ms": 5000 }),
        );
        next["events"].as_array().unwrap().clone()
    };
    let first = announced(&d);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!((&first[0]["id"], &first[0]["files"], &first[0]["roots"]), (&json!(proc), &json!(1), &json!([project])));
    d.kill9();
    d.spawn();
    let diff = d.ok("stage.diff", json!({ "id": proc }));
    assert_eq!((&diff["state"], &diff["total"]), (&json!("ready"), &json!(1)));
    assert_eq!(announced(&d), first);
    d.ok("stage.commit", json!({ "id": proc, "digest": diff["digest"] }));
    assert_eq!(read(project.join("a")), "x\ny\n");
    d.kill9();
    d.spawn();
    assert_eq!(d.process(&proc)["stage"]["state"], "committed");
}

#[test]
fn a_stage_that_the_file_systems_cannot_carry_is_refused_and_nothing_runs() {
    if !toold_test_support::rig::skip_unless(is_root(), "only root mounts") {
        return;
    }
    let mut d = Daemon::prepare("", &[]);
    let project = d.root().join("project");
    std::fs::create_dir_all(project.join("nested")).expect("writable");
    let plain = d.command();
    let mut mounted = std::process::Command::new("unshare");
    let mount = format!("mount -t tmpfs none {}/nested && exec \"$@\"", project.display());
    mounted
        .args(["-m", "--propagation", "private", "sh", "-c", &mount, "sh"])
        .arg(plain.get_program())
        .args(plain.get_args());
    mounted.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    d.spawn_as(mounted);
    let marker = d.root().join("ran");
    let call = json!({ "argv": ["touch", marker], "cwd": project, "stage": true });
    let error = d.call("exec", call).expect_err("no overlay over a mount");
    assert_eq!((error["code"].as_i64(), &error["data"]["kind"]), (Some(-32008), &json!("unavailable")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&format!("{}/nested", project.display())), "{message}");
    assert!(!marker.exists());
    assert_eq!(d.ok("list", json!({}))["total"], 0);
    assert_eq!(entries(&d.state().join("stages")), Vec::<String>::new());
}

#[test]
fn a_process_without_a_stage_and_a_profile_that_writes_nowhere_are_refused() {
    let (d, project) = daemons().remove(0);
    let proc = d.sh("true");
    assert_eq!(d.process(&proc)["stage"], json!(null));
    for method in ["stage.diff", "stage.discard"] {
        d.refused_param("id", method, json!({ "id": proc }));
    }
    d.refused_param(
        "stage",
        "exec",
        json!({ "argv": ["true"], "cwd": project, "stage": true, "sandbox": "read-only" }),
    );
}
