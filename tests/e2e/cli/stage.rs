//! `toolctl run --stage` and `toolctl stage`: what a job changed is shown, committed in parts, and discarded.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::Daemon;

struct Project {
    d: Daemon,
    dir: PathBuf,
}

impl Project {
    fn new() -> Project {
        let d = Daemon::start();
        let dir = d.home().join("project");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("notes"), "one\n").unwrap();
        Project { d, dir }
    }

    /// Runs toolctl in the project.
    fn ctl(&self, args: &[&str]) -> Output {
        output_of(self.d.ctl_command(args).current_dir(&self.dir).spawn().unwrap())
    }

    /// Runs a staged script, and waits until its changes can be committed.
    fn staged(&self, script: &str) -> String {
        let ran = self.ctl(&["run", "--stage", "--", "sh", "-c", script]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let id = self.d.ids(Value::Object(Default::default())).remove(0);
        self.d.eventually("the stage is ready", || self.d.process(&id)["stage"]["state"] == "ready");
        id
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }
}

#[test]
fn changes_are_shown_and_committed_in_parts() {
    let p = Project::new();
    let id = p.staged("echo two >> notes; mkdir src; echo x > src/a; echo y > other");
    assert_eq!((p.text("notes").as_str(), p.dir.join("src").exists()), ("one\n", false));
    let shown = p.ctl(&["stage", "diff", "@last"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(shown.stdout.contains("@@ -1 +1,2 @@\n one\n+two\n"), "{shown:?}");
    assert!(shown.stdout.ends_with(&format!("{id}  4 changes, not committed\n")), "{shown:?}");
    let diff: Value = serde_json::from_str(&p.ctl(&["stage", "diff", &id, "--json"]).stdout).unwrap();
    assert_eq!((&diff["state"], &diff["total"]), (&Value::from("ready"), &Value::from(4)), "{diff}");
    let wrong = p.ctl(&["stage", "commit", &id, "--digest", "0"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("digest") && p.text("notes") == "one\n", "{wrong:?}");
    let part = p.ctl(&["stage", "commit", &id, "src", "notes"]);
    assert_eq!(part.code, 0, "{part:?}");
    assert!(part.stdout.ends_with(&format!("{id}  3 changes committed, 1 left\n")), "{part:?}");
    assert_eq!(
        (p.text("notes").as_str(), p.text("src/a").as_str(), p.text("other").as_str()),
        ("one\ntwo\n", "x\n", "")
    );
    let rest = p.ctl(&["stage", "commit", &id]);
    assert!(rest.code == 0 && p.text("other") == "y\n", "{rest:?}");
    let again = p.ctl(&["stage", "commit", &id]);
    assert!(again.code == 1 && again.stderr.contains("committed"), "{again:?}");
}

#[test]
fn discarded_changes_are_gone_and_wrong_uses_fail_with_the_reason() {
    let p = Project::new();
    let id = p.staged("echo two > notes");
    let discarded = p.ctl(&["stage", "discard", "@last"]);
    assert_eq!((discarded.code, discarded.stdout), (0, format!("{id} discarded\n")), "{}", discarded.stderr);
    assert_eq!(p.text("notes"), "one\n");
    let late = p.ctl(&["stage", "commit", &id, "--digest", "0"]);
    assert!(late.code == 1 && late.stderr.contains("discarded"), "{late:?}");
    assert_eq!(p.ctl(&["run", "--", "true"]).code, 0);
    let none = p.ctl(&["stage", "diff", "@last"]);
    assert!(none.code != 0 && none.stderr.contains("stage") && none.stdout.is_empty(), "{none:?}");
    assert_eq!(p.ctl(&["stage", "diff", "proc_000000000000"]).code, 3);
    let nothing = p.ctl(&["run", "--stage", "--sandbox", "read-only", "--", "true"]);
    assert!(nothing.code != 0 && nothing.stderr.contains("nothing to stage"), "{nothing:?}");
}
