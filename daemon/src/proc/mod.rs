//! One process: its state, the task that owns it, and the handle that everybody else holds.

mod asking;
pub mod asks;
mod completion;
pub mod condition;
pub mod handle;
mod heartbeat;
pub mod kill;
pub mod link;
pub mod listen;
pub mod lost;
pub mod minders;
pub mod search;
pub mod state;
pub mod task;
pub mod tell;
pub mod told;
pub mod tree;
pub mod view;
pub mod voice;
pub mod watcher;

pub use handle::Proc;
