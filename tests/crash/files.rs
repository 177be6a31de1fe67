//! A write of a file, and a daemon that is killed in it: the file has its old or its new content, and the next write
//! removes what is left.

use crate::case_run::tempfile_name;
use serde_json::json;
use std::fs;
use toold_test_support::rig::Daemon;

pub const POINTS: [&str; 2] = ["fs.written", "fs.swapped"];

#[test]
fn a_killed_write_leaves_the_old_or_the_new_content_and_the_next_one_cleans_up() {
    for point in POINTS {
        for is_edit in [false, true] {
            for is_new in [false, true].into_iter().filter(|is_new| !(is_edit && *is_new)) {
                crash_at(point, is_edit, is_new);
            }
        }
    }
}

fn crash_at(point: &str, is_edit: bool, is_new: bool) {
    let case = format!("{point}, edit: {is_edit}, new: {is_new}");
    let hooks = tempfile_name();
    fs::create_dir(&hooks).unwrap();
    let mut daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
    let dir = daemon.root().join("files");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("file");
    if !is_new {
        fs::write(&file, "the old text\n").unwrap();
    }
    let (verb, call) = match is_edit {
        true => ("fs.edit", json!({ "path": file, "old": "the old text", "new": "the new text" })),
        false => ("fs.write", json!({ "path": file, "content": "the new text\n" })),
    };
    fs::write(hooks.join(point), "").unwrap();
    let mut conn = daemon.conn();
    conn.request(verb, call.clone());
    let hit = hooks.join(format!("{point}.hit"));
    daemon.eventually(&format!("{case}: it is reached"), || hit.exists());
    daemon.kill9();
    fs::remove_file(hooks.join(point)).unwrap();

    let found = fs::read_to_string(&file).ok();
    let expected = match (point, is_new) {
        ("fs.swapped", _) => Some("the new text\n"),
        (_, true) => None,
        (_, false) => Some("the old text\n"),
    };
    assert_eq!(found.as_deref(), expected, "{case}");
    daemon.spawn();
    let answer = daemon.ok(verb, call);
    if is_edit {
        assert_eq!(answer["no_change"], point == "fs.swapped", "{case}: {answer}");
    }
    // An edit or write that was made before writes nothing, so only another one cleans up.
    daemon.ok("fs.write", json!({ "path": file, "content": "other\n" }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "other\n", "{case}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "{case}: nothing is left beside it");
    fs::remove_dir_all(hooks).unwrap();
}
