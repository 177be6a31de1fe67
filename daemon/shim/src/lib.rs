//! The parent of one process: owns its pipes, its log and its exit.
//!
//! A shim is single-threaded, does not use the heap, and is independent of the daemon once it runs. The daemon links this
//! crate too: it forks the zygote, connects to shims (`address`) and shares the system calls (`sys`) and the pause points of
//! the crash tests (`hooks`).

pub mod address;
pub mod clock;
pub mod hooks;
pub mod run;
pub mod sandbox;
pub mod sys;
pub mod zygote;

mod capture;
pub mod confined;
mod hold;
mod kept_env;
mod kill;
mod link;
mod named_writes;
mod pause;
pub mod pids;
mod pty;
pub mod spare;
mod start;
mod stdin;
mod stdio;
pub mod tree;
