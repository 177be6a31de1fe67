//! The state directory: one directory per process, which is its own checkpoint.

pub mod checked_file;
pub mod dir_pool;
mod facts;
pub mod fuzz;
pub mod namespaces;
pub mod pending;
pub mod policy;
pub mod queue_settings;
pub mod record;
pub mod remove_tree;
pub mod requests;
pub mod restart;
pub mod sandbox;
pub mod script;
pub mod shim_level;
pub mod stage;
pub mod writes;
