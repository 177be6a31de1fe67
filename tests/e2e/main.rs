//! Black-box tests: the real `toold` and `toolctl`, each test with a home, a state and a socket of its own.
// A test that unwraps a None has failed, and says where: there is nobody to hand an error to.
#![allow(clippy::unwrap_used)]

mod conn;
mod ctl;
mod framing;
mod rig;
mod sys;
mod term;

mod asks;
mod attach;
mod attach_ends;
mod badinput;
mod badstart;
mod cli;
mod cli_events;
mod cli_pipe;
mod cli_run;
mod cli_terminal;
mod daemon;
mod daemon_start;
mod disk;
mod env;
mod events;
mod events_pull;
mod events_push;
mod exec;
mod exec_output;
mod forget;
mod ids;
mod inspect;
mod kill;
mod kill_tree;
mod limits;
mod limits_output;
mod list;
mod log;
mod poll;
mod poll_bytes;
mod pty;
mod ready;
mod recover;
mod session;
mod signal;
mod single;
mod survive;
mod survive_many;
mod wait;
mod watch;
mod watch_limits;
mod wire;
mod wire_http;
mod write;
