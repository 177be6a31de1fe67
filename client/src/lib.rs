//! Talks to toold: a blocking client, an async one behind the feature `async`, and `toolctl`.

#[cfg(feature = "async")]
pub mod async_client;
pub mod autostart;
pub mod blocking;
pub mod cli;

mod args;
mod cmd;
mod connect;
mod console;
mod failure;
mod fullscreen;
mod help;
mod line;
mod local;
mod pick;
mod presence;
mod render;
mod spoken;
mod sys;
mod terminal;
#[cfg(test)]
mod testing;
mod usage;

pub use sys::begin;
