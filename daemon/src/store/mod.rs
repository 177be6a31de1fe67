//! The state directory: a directory per process that is its own checkpoint.

pub mod made;
pub mod record;
pub mod slots;
