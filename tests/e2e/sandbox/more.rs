//! Attacks by system calls that few programs make: those that work without a sandbox are refused in it.

use super::sys::results;
use super::world::{User, World};
use serde_json::json;
use std::fs;
use toold_test_support::rig::skip_unless;
use toold_test_support::sys::is_root;

/// The numbers in it are those of one architecture.
const PROGRAM: &str = include_str!("more_acts.py");
/// Acts that work for every user without a sandbox. Others need rights, or a kernel that has them.
const PLAIN: [&str; 10] = [
    "exchange hooks",
    "exchange a repository",
    "link a config",
    "write by the root of a process",
    "bind outside",
    "mode by a descriptor",
    "tgkill",
    "tkill",
    "queue a signal",
    "signal by a descriptor",
];

#[test]
fn acts_by_rare_system_calls_are_refused() {
    let can = cfg!(target_arch = "x86_64") && std::path::Path::new("/usr/bin/python3").exists();
    if skip_unless(can, "another architecture, or no python3") {
        return;
    }
    let users = if is_root() { vec![User::Own, User::Other] } else { vec![User::Own] };
    for user in users {
        let world = World::new(user, "auto");
        let program = world.at("bin/more.py");
        fs::write(&program, PROGRAM).unwrap();
        let argv = json!(["/usr/bin/python3", program]);
        let (_, output) = world.run(&argv, &json!(null));
        let without = results(&output);
        assert!(output.contains("ACTS END"), "{output}");
        for act in PLAIN {
            assert_eq!(without[act], "", "{user:?}: {act} works without a sandbox\n{output}");
        }
        let before = world.untouchable();
        for profile in ["workspace-write", "read-only"] {
            let (process, output) = world.run(&argv, &json!(profile));
            assert!(output.contains("ACTS END"), "{process} {output}");
            if skip_unless(process["sandbox"]["not_enforced"] == json!([]), "not everything is enforced here") {
                return;
            }
            let inside = results(&output);
            let worked = |act: &&String| without[*act].is_empty() && inside[*act].is_empty();
            let broken: Vec<&String> = inside.keys().filter(worked).collect();
            assert!(broken.is_empty(), "{user:?}, {profile}: {broken:?}\n{output}");
            assert_eq!(world.untouchable(), before, "{user:?}, {profile}");
        }
    }
}
