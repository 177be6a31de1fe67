//! `toolctl mcp` as its clients use it.

mod cancel;
mod client;
mod eras;
mod foreign;
mod malformed;
mod real;
mod resources;
mod retry;
mod shutdown;
mod tasks;
mod tokens;
mod tools;
mod trailer;
mod waits;
mod wake;
mod write;
