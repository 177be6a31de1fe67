//! The methods, parameters, results, events and errors that cross toold's socket. No behaviour lives here.

pub mod api;
pub mod approval;
mod approval_id;
#[cfg(test)]
mod clients;
mod consumer_start;
pub mod enum_values;
pub mod env;
pub mod error;
pub mod event;
mod examples;
pub mod fields;
pub mod files;
pub mod id;
pub mod kernel;
pub mod keys;
pub mod log;
pub mod openrpc;
pub mod params;
pub mod patch;
pub mod paths;
pub mod pattern;
pub mod policy;
pub mod process;
pub mod pty;
pub mod repeatable;
pub mod restart;
pub mod results;
pub mod sandbox;
pub mod sandbox_probe;
pub mod script;
pub mod stage;
pub mod stream;
mod text_form;
pub mod time;
pub mod tools;
pub mod until;

pub use error::{ErrorKind, RpcError};
pub use event::EventType;
pub use id::ProcId;

/// The default of `max_outgoing_bytes`: the longest answer that a daemon sends, and the longest that the clients read.
pub const DEFAULT_MAX_OUTGOING_BYTES: u64 = 64 << 20;
