//! A stranger is told so, and nothing of what it sends is run.

use crate::toy::{Toy, error, request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A user that is neither us nor root.
const NOBODY: u32 = 65_534;
const SOCKET: &str = "TOY_SOCKET";

/// Not a test: what the other user runs.
#[test]
#[ignore = "run by the test below, as another user"]
fn speak() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("connected");
    let call = request(json!(1), "note", json!({}));
    stream.write_all(format!("{call}\n[{call}]\n").as_bytes()).expect("sent");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("told");
    println!("told: {told}");
}

/// What a client of another user hears.
fn stranger(toy: &Toy) -> String {
    let copy = toy.dir().join("stranger");
    std::fs::copy(std::env::current_exe().expect("a path"), &copy).expect("copied");
    for (path, mode) in [(toy.dir(), 0o755), (&copy, 0o755), (&toy.socket, 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
    }
    let mut command = std::process::Command::new(copy);
    command.args(["--ignored", "--exact", "denied::speak", "--nocapture"]).env(SOCKET, &toy.socket).current_dir("/");
    if nix::unistd::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("run");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_is_denied_with_the_reason_and_nothing_runs() {
    let us = nix::unistd::getuid();
    // Root may change its user; anyone else is a stranger to a daemon of another owner.
    let owner = if us.is_root() { 0 } else { us.as_raw() + 1 };
    let toy = Toy::owned_by(owner, |_| {});
    let said = tokio::task::block_in_place(|| stranger(&toy));
    let told = said.lines().find_map(|line| line.strip_prefix("told: ")).unwrap_or_else(|| panic!("{said}"));
    let told: Value = serde_json::from_str(told).expect("JSON");
    assert_eq!(error(&told), (Value::Null, -32005, "denied"));
    assert!(told["error"]["data"]["reason"].as_str().is_some_and(|reason| reason.contains("uid")), "{told}");
    assert!(!toy.heard().await, "a stranger's call was run");
}
