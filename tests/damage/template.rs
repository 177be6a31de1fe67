//! A state directory with finished processes, events and consumers, from which each round gets a copy.

use crate::harm::{Damage, Random};
use crate::judge;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toold_test_support::rig::{Daemon, files, id};

/// Small segments of the journal (a quarter of `max_bytes`) and of a log, so that there are several of each. Nothing waits
/// for the disk, which makes a round cheap.
pub const CONFIG: &str = "log_max_bytes = 65536\nsurvive_power_cut = false\n\
    [events]\nsegment_bytes = 65536\nmax_bytes = 65536\n[watch]\nmin_interval_ms = 1\n";
/// Prepared records that stay in the copies.
const KEPT_READY: usize = 2;

pub struct Template {
    /// Holds the directory until the last round.
    rig: Daemon,
    /// The files below the state directory, as relative paths.
    pub files: Vec<String>,
    pub consumers: Vec<String>,
    /// A client's view of an undamaged copy.
    pub truth: Snapshot,
}

impl Template {
    pub fn build() -> Template {
        let mut rig = Daemon::start_with(CONFIG, &[]);
        populate(&rig);
        let mut created = rig.ids(json!({}));
        created.reverse();
        assert_eq!(rig.stop(libc::SIGTERM), 0);
        let ready = rig.state().join("ready");
        let mut spare: Vec<_> = fs::read_dir(&ready).unwrap().map(|e| e.unwrap().path()).collect();
        spare.sort();
        spare.iter().skip(KEPT_READY).for_each(|dir| fs::remove_dir_all(dir).unwrap());
        let consumers = ["behind", "halfway", "current", "marked"].map(String::from).to_vec();
        let state = rig.state();
        let relative = |path: &std::path::PathBuf| path.strip_prefix(&state).unwrap().display().to_string();
        let mut files: Vec<String> = files(&state).iter().map(relative).collect();
        // Ids are random. In the order of creation, a seed chooses the same file in every run.
        files.sort_by_key(|file| created.iter().position(|id| file.contains(id.as_str())));
        let mut template = Template { rig, files, consumers, truth: Snapshot::default() };
        let copy = template.copy();
        template.truth = Snapshot::read(&copy, &[], &template.consumers);
        assert!(template.truth.damaged.is_empty(), "{:?}", template.truth.damaged);
        let journal = template.files.iter().filter(|file| template.kind(file).starts_with("journal"));
        assert!(journal.count() >= 3, "several segments: {:?}", template.files);
        template
    }

    /// Starts a daemon on an undamaged copy.
    fn copy(&self) -> Daemon {
        let mut rig = self.prepare();
        rig.spawn();
        rig
    }

    fn prepare(&self) -> Daemon {
        let rig = Daemon::prepare(CONFIG, &[]);
        copy(&self.rig.state(), &rig.state());
        rig
    }

    /// Returns the kind of a file: files of one kind have the same format and purpose.
    pub fn kind(&self, file: &str) -> String {
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        let stem = name.split_once('.').map_or(name.to_string(), |(stem, _)| format!("{stem}, later"));
        match file.split('/').next().unwrap() {
            "events" if file.ends_with(".log") => {
                let newest = self.files.iter().filter(|f| f.starts_with("events/") && f.ends_with(".log")).max();
                if newest.is_some_and(|newest| newest == file) { "journal, last" } else { "journal" }.into()
            }
            "events" if file.ends_with(".pos") => "consumer".into(),
            dir => format!("{dir} {stem}"),
        }
    }
}

/// Starts processes of every form, and consumers with different positions.
fn populate(daemon: &Daemon) {
    let exec = |script: &str, more: Value| {
        let mut params = json!({ "cwd": "/", "labels": { "of": "damage" } });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let process = id(&daemon.sh_with(script, params));
        daemon.closed(&process);
        process
    };
    let pull = |name: &str| daemon.ok("events.next", json!({ "consumer": name, "limit": 10_000 }));
    pull("behind");
    exec("echo out; echo err >&2; printf 'no newline'; exit 3", json!({ "name": "exits", "request_id": "r1" }));
    daemon.ok("events.ack", json!({ "consumer": "behind", "seq": 2 }));
    exec("i=0; while [ $i -lt 9000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done", json!({}));
    for i in 0..3 {
        exec(&format!("echo some MATCH {i}; echo done"), json!({ "watch": ["MATCH"], "notify": true }));
    }
    exec("tty; echo at a terminal", json!({ "pty": true }));
    for i in 0..8 {
        let script = format!("i=0; while [ $i -lt 60 ]; do echo output of process {i} in line $i; i=$((i+1)); done");
        exec(&script, json!({ "notify": true, "session_key": "s", "task_id": format!("t{i}") }));
    }
    let last = || daemon.ok("daemon.info", json!({}))["events"]["last"].as_u64().unwrap();
    pull("halfway");
    daemon.ok("events.ack", json!({ "consumer": "halfway", "seq": last() / 2 }));
    daemon.call("exec", json!({ "argv": ["/nonexistent"], "cwd": "/" })).expect_err("it cannot start");
    let killed = id(&daemon.sh_with("echo up; exec sleep 1000", json!({ "cwd": "/", "name": "killed" })));
    daemon.printed(&killed, "up");
    daemon.ok("kill", json!({ "id": killed }));
    for code in [0, 4] {
        let script = format!("echo answered {code}; exit {code}");
        exec(&script, json!({ "consumer": "marked", "yield_ms": 30_000, "notify": true }));
    }
    pull("current");
    daemon.ok("events.ack", json!({ "consumer": "current", "seq": last() }));
    exec("echo after the positions", json!({ "notify": true }));
}

/// Damages one file of a copy, starts a daemon, and compares.
pub fn round(template: &Template, file: &str, damage: Damage, mut random: Random) -> Result<(), String> {
    let mut rig = template.prepare();
    let done = damage.apply(&rig.state().join(file), &mut random);
    let what = format!("{file}: {done}");
    let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rig.spawn()));
    if let Err(panic) = started {
        // A daemon that neither ended nor answers.
        rig.marked().iter().for_each(|process| process.signal(libc::SIGKILL));
        return Err(format!("{what}: {}", crate::panic_text(panic.as_ref())));
    }
    let ids: Vec<String> = template.truth.processes.keys().cloned().collect();
    let mut after = Snapshot::read(&rig, &ids, &template.consumers);
    let fresh = rig.run("echo a new process");
    after.read_events(&rig);
    let case = judge::Case { truth: &template.truth, file, new: fresh["id"].as_str().unwrap() };
    let mut faults = judge::faults(&case, &after);
    if random.below(4) == 0 {
        rig.restart();
        let again = Snapshot::read(&rig, &ids, &template.consumers);
        faults.extend(judge::changes_by_restart(&after, &again));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("{what}:\n  {}\n  reported: {:?}", faults.join("\n  "), after.damaged))
    }
}

/// Copies a directory with the modes that the daemon needs.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        if path.is_dir() { copy(&path, &to.join(name)) } else { fs::copy(&path, to.join(name)).map(drop).unwrap() }
    }
}
