//! The daemon behind toold's socket. Layers, from the ground up; a module uses those above it here.

pub mod text;

pub mod log;
pub mod rpc;
