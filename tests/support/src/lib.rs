//! Helpers of the black-box tests and the benchmark: a daemon with its own directories, a client, a terminal.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

pub mod conn;
pub mod http;
pub mod output;
pub mod procfs;
pub mod programs;
pub mod rig;
pub mod sys;
pub mod term;
pub mod traces;
