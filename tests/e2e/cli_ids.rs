//! Ids as people say them to `toolctl`.

use crate::rig::{Daemon, id};

#[test]
fn at_last_is_the_newest_and_at_failed_the_newest_that_failed() {
    let d = Daemon::start();
    let failed = id(&d.run("exit 3"));
    d.run("exit 0");
    let newest = d.sh("exec sleep 1000");
    let first_line = |word: &str| d.ctl(&["poll", word]).stdout.lines().next().map(String::from);
    assert_eq!(first_line("@last"), Some(format!("id: {newest}")));
    assert_eq!(first_line("@failed"), Some(format!("id: {failed}")));
    assert_eq!(d.ctl(&["wait", "@failed"]).code, 3);
    assert_eq!(d.ctl(&["kill", "@last"]).code, 0);
    assert_eq!(first_line("@failed"), Some(format!("id: {newest}")), "one that was killed has failed");
}

#[test]
fn a_wrong_id_is_answered_with_the_nearest() {
    let d = Daemon::start();
    assert_eq!(d.ctl(&["exec", "--name", "server", "--", "/bin/sleep", "1000"]).code, 0);
    for (typed, hint) in [("sevrer", true), ("servers", true), ("database", false)] {
        let told = d.ctl(&["log", typed]);
        let said = told.stderr.contains("did you mean server (running") && told.stderr.contains("/bin/sleep 1000");
        assert_eq!((told.code, said), (3, hint), "{told:?}");
    }
    let told = d.ctl(&["--json", "log", "sevrer"]);
    assert!(serde_json::from_str::<serde_json::Value>(&told.stderr).is_ok(), "a document stays one: {told:?}");
}

#[test]
fn without_a_process_there_is_no_last_one() {
    let d = Daemon::start();
    let told = d.ctl(&["log", "@last"]);
    assert_eq!((told.code, told.stderr.as_str()), (3, "toolctl: there is no process yet, so no @last\n"));
}
