//! Talks to toold: a blocking client, an async one behind the feature `async`, and `toolctl`.

pub mod agent_events;
pub mod agent_session;
#[cfg(feature = "async")]
pub mod async_client;
pub mod autostart;
pub mod blocking;
pub mod cli;
pub mod companion;
pub mod mcp_options;
pub mod text;

mod aliases;
mod args;
mod call_error;
mod channel;
mod cmd;
mod connect;
mod console;
mod daemon_probe;
mod error;
mod error_text;
mod event_loop;
mod fullscreen;
mod help;
mod local_time;
mod long_call;
mod message;
mod peer_check;
mod process_ref;
mod raw_args;
mod render;
mod secret;
mod session;
mod sibling_program;
mod silence;
mod sys;
mod terminal;
#[cfg(test)]
mod testing;
mod usage_error;
mod verbs;

pub use sys::run_main;
