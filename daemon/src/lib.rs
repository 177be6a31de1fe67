//! The daemon behind toold's socket. Layers, from the ground up; a module uses those above it here.

pub mod log;
pub mod rpc;
