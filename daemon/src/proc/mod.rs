//! One process: its state, the task that owns it, and the handle that everybody else holds.

pub mod asks;
pub mod handle;
pub mod kill;
pub mod link;
pub mod listen;
pub mod lost;
pub mod state;
pub mod task;
pub mod tree;
pub mod view;

pub use handle::Proc;
