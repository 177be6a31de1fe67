//! Starts under a small limit on processes.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id, skip_unless};

/// A control group that limits processes. Removed when the test ends.
struct PidsGroup(PathBuf);

impl PidsGroup {
    fn make(max: u64) -> Option<PidsGroup> {
        let name = format!("toold-test-{}", std::process::id());
        ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].into_iter().find_map(|root| {
            let dir = PathBuf::from(root).join(&name);
            fs::create_dir(&dir).ok()?;
            let group = PidsGroup(dir);
            fs::write(group.0.join("pids.max"), max.to_string()).ok().map(|()| group)
        })
    }
}

impl Drop for PidsGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Starts processes until one fails. Returns those that run, and the error.
fn fill(d: &Daemon) -> (Vec<String>, Value) {
    let mut running = Vec::new();
    loop {
        match d.call("exec", json!({ "argv": ["/bin/sleep", "1000"] })) {
            Ok(process) => running.push(id(&process)),
            Err(error) => return (running, error),
        }
        assert!(running.len() < 16, "no limit is in force");
    }
}

#[test]
fn under_a_limit_of_16_processes_more_run_and_the_error_names_the_limit() {
    let group = PidsGroup::make(16);
    let possible = group.is_some();
    let Some(group) = group else {
        skip_unless(possible, "a control group that limits processes cannot be made here");
        return;
    };
    let mut d = Daemon::prepare("", &[]);
    d.before = Some(format!("echo $$ > {}/cgroup.procs || exit 1", group.0.display()));
    d.spawn();
    for _ in 0..3 {
        let (running, error) = fill(&d);
        // The broken code had two workers, up to four spare shims and sixteen threads more: three processes ran.
        assert!(running.len() >= 4, "{running:?} {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("pids.max = 16 in {}", group.0.display())), "{message}");
        assert_eq!((&error["data"]["step"], &error["data"]["error"]), (&json!("fork"), &json!("EAGAIN")), "{error}");
        assert_eq!(d.ok("list", json!({ "status": "running" }))["processes"].as_array().unwrap().len(), running.len());
        d.ok("kill", json!({ "ids": running }));
    }
    assert_eq!(d.run("exit 3")["exit_code"], 3);
    drop(d);
}
