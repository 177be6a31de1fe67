//! Runs `toold-fetch`.

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_toold-fetch");

/// Runs a mode with a request and returns its answer.
pub fn run(mode: &str, request: &Value) -> Value {
    run_with_env(mode, request, &[])
}

pub fn run_with_env(mode: &str, request: &Value, env: &[(&str, &str)]) -> Value {
    // A proxy of the environment must not be used: nothing listens there.
    let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let mut child = Command::new(PROGRAM)
        .arg(mode)
        .envs(proxies.map(|name| (name, "http://127.0.0.1:1")))
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}
