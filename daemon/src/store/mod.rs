//! The state directory: a directory per process that is its own checkpoint.

pub mod dir_pool;
pub mod record;
