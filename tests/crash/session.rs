//! kill -9 of the daemon while it stores the settings of a session: they are the old ones or the new ones.

use crate::case_run::tempfile_name;
use serde_json::json;
use std::fs;
use toold_test_support::rig::Daemon;

pub const POINTS: [&str; 2] = ["session.written", "session.replaced"];

#[test]
fn a_session_is_as_it_was_or_as_it_was_configured() {
    for (point, expected) in POINTS.into_iter().zip(["never", "untrusted"]) {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        daemon.ok("session.configure", json!({ "session_key": "s", "approval": "never" }));
        fs::write(hooks.join(point), "").unwrap();
        let mut conn = daemon.conn();
        conn.request("session.configure", json!({ "session_key": "s", "approval": "untrusted" }));
        daemon.eventually(&format!("{point} is reached"), || hooks.join(format!("{point}.hit")).exists());
        daemon.kill9();
        fs::remove_file(hooks.join(point)).unwrap();
        daemon.spawn();
        assert_eq!(daemon.ok("session.get", json!({ "session_key": "s" }))["approval"], expected, "{point}");
        assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{point}");
        daemon.ok("session.configure", json!({ "session_key": "s", "approval": "on-failure" }));
        assert_eq!(daemon.ok("session.get", json!({ "session_key": "s" }))["approval"], "on-failure", "{point}");
        fs::remove_dir_all(&hooks).unwrap();
    }
}
