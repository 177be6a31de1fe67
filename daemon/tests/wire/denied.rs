//! A client of another user is denied, and nothing that it sends is run.

use crate::fixture::{Fixture, error, request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A user that is neither the owner nor root.
const OTHER_UID: u32 = 65_534;
const SOCKET: &str = "TOY_SOCKET";

/// Not a test: the program of the other user.
#[test]
#[ignore = "run by the test below, as another user"]
fn other_user_main() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("connected");
    let call = request(json!(1), "note", json!({}));
    stream.write_all(format!("{call}\n[{call}]\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    println!("answer: {answer}");
}

/// Returns the answer to a client of another user.
fn connect_as_other_user(fixture: &Fixture) -> String {
    let copy = fixture.dir().join("other-user");
    std::fs::copy(std::env::current_exe().expect("a path"), &copy).expect("copied");
    for (path, mode) in [(fixture.dir(), 0o755), (&copy, 0o755), (&fixture.socket, 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    }
    let mut command = std::process::Command::new(copy);
    command
        .args(["--ignored", "--exact", "denied::other_user_main", "--nocapture"])
        .env(SOCKET, &fixture.socket)
        .current_dir("/");
    if nix::unistd::getuid().is_root() {
        command.uid(OTHER_UID).gid(OTHER_UID);
    }
    let output = command.output().expect("run");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_is_denied_with_the_reason_and_nothing_runs() {
    let us = nix::unistd::getuid();
    // Root can change its user. Any other user claims that the daemon has another owner.
    let owner = if us.is_root() { 0 } else { us.as_raw() + 1 };
    let fixture = Fixture::owned_by(owner, |_| {});
    let output = tokio::task::block_in_place(|| connect_as_other_user(&fixture));
    let answer = output.lines().find_map(|line| line.strip_prefix("answer: ")).unwrap_or_else(|| panic!("{output}"));
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(error(&answer), (Value::Null, -32005, "denied"));
    assert!(answer["error"]["data"]["reason"].as_str().is_some_and(|reason| reason.contains("uid")), "{answer}");
    assert!(!fixture.take_note().await, "a call of another user was run");
}
