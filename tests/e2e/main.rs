//! Black-box tests of the real `toold` and `toolctl`: each test has its own home, state directory and socket.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod api;
mod cli;
mod docs;
mod mcp;
mod recovery;
mod sandbox;
mod service;

/// The client under test, for shell text.
const TOOLCTL: &str = env!("CARGO_BIN_EXE_toolctl");
