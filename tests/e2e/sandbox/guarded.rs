//! Files of git that do not exist and by which one who makes them gets code run outside: nothing can be mounted on them.

use super::world::{User, World};
use serde_json::json;
use std::fs;
use toold_test_support::rig::skip_unless;
use toold_test_support::sys::is_root;

/// Ways to make `.git/commondir`, each in a job of its own.
const WAYS: [&str; 17] = [
    "echo x > .git/commondir",
    "echo x > .git//./commondir",
    "cd .git && echo x > commondir",
    "cd .git/refs && echo x > ../commondir",
    "echo x > f; mv f .git/commondir",
    "echo x > f; ln f .git/commondir",
    "echo x > f; ln -s f .git/commondir",
    "mkdir .git/commondir",
    "mkfifo .git/commondir",
    "mkdir d; mv -T d .git/commondir",
    "ln -s .git/commondir l; echo x > l",
    "ln -s .git g; echo x > g/commondir",
    "ln -s l2 l1; ln -s $PWD/.git/commondir l2; echo x > l1",
    "echo x > /proc/self/cwd/.git/commondir",
    "ln -s /proc/self/cwd/.git p; echo x > p/commondir",
    "ln -s /proc/self/cwd/.git/commondir p; echo x > p",
    "exec 7< .git; echo x > /dev/fd/7/commondir",
];

#[test]
fn a_missing_commondir_cannot_be_made_and_the_attempt_is_listed() {
    let users = if is_root() { vec![User::Own, User::Other] } else { vec![User::Own] };
    for user in users {
        let world = World::new(user, "auto");
        let made = world.at("work/.git/commondir");
        for way in WAYS {
            let (process, output) = world.sh(&format!("rm -rf f d l l1 l2 g p; {way}"), &json!("workspace-write"));
            let sandbox = &process["sandbox"];
            if skip_unless(sandbox["enforced"].to_string().contains("protect"), "no mounts here") {
                return;
            }
            assert!(fs::symlink_metadata(&made).is_err(), "{user:?}: {way}\n{output}");
            assert_ne!(process["exit_code"], 0, "{user:?}: {way}\n{output}");
            let list = sandbox["denials"]["list"].as_array().unwrap();
            let is_named = |call: &serde_json::Value| {
                call["errno"] == libc::EROFS && call["path"].as_str().is_some_and(|path| path.ends_with("/commondir"))
            };
            assert!(list.iter().any(is_named), "{user:?}: {way}: {sandbox}");
            assert!(sandbox["unprotected"].to_string().contains(made.to_str().unwrap()), "{sandbox}");
        }
        for way in ["echo x > .git/config.worktree", "rm -r sub/repo/.git/hooks; mv .git moved"] {
            let (process, output) = world.sh(way, &json!("workspace-write"));
            assert_ne!(process["exit_code"], 0, "{user:?}: {way}\n{output}");
            assert!(!world.at("work/.git/config.worktree").exists() && world.at("work/.git").is_dir(), "{way}");
        }
    }
}

/// The names are common ones: elsewhere they are names like others, and errors are those of the kernel.
#[test]
fn the_same_names_can_be_made_elsewhere() {
    let world = World::new(User::Own, "auto");
    let script = "set -e; exec 2>&1; mkdir -p new/config new/hooks; echo x > new/commondir; echo x > commondir; \
        mv commondir config.worktree; mkdir -p .git/worktrees/w; echo ../.. > .git/worktrees/w/commondir; \
        mkdir none/config || true; echo x > none/commondir || true";
    let (process, output) = world.sh(script, &json!("workspace-write"));
    assert_eq!(process["exit_code"], 0, "{output}");
    assert_eq!(output.matches("No such file").count() + output.matches("nonexistent").count(), 2, "{output}");
    assert_eq!(process["sandbox"]["denials"]["count"], 0, "{}", process["sandbox"]);
}
