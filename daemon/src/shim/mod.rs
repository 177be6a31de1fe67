//! The other program: parent of the user's process, owner of its pipes, its log and its exit.
//! Single-threaded, without the heap, and independent of the daemon once it runs.

pub mod address;
pub mod frame;
pub mod launch;
pub mod run;
pub mod zygote;

mod capture;
mod ends;
mod kill;
mod link;
mod seat;
mod start;
mod stdin;
mod tree;
