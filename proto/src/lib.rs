//! What crosses toold's socket: names, data and errors. No behaviour lives here.

pub mod api;
pub mod error;
pub mod event;
pub mod id;
pub mod openrpc;
pub mod params;
pub mod places;
pub mod process;
pub mod results;
pub mod time;
pub mod unions;
pub mod words;

pub use error::{Kind, RpcError};
pub use event::EventType;
pub use id::ProcId;
