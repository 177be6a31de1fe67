//! The bytes that toold keeps on disk and sends between daemon and shim. All of them are promises: old shims and old
//! state directories outlive many daemons.
//!
//! The shim links this crate, so nothing here may need a runtime.

#![forbid(unsafe_code)]

mod body_reader;
pub mod denials;
pub mod frame;
mod frame_bytes;
mod hash;
pub mod launch;
pub mod log;
pub mod sandbox;
pub mod slots;
pub mod step;
mod stream;
pub mod writes;
mod wrote;

pub use hash::fnv1a;
pub use stream::Stream;
