//! One process: its state, the task that owns it, and the handle for everything else.

pub mod checkpoint;
pub mod client;
pub mod completion;
pub mod condition;
pub mod control;
pub mod cut;
mod denials;
pub mod event_sink;
pub mod exit_delivery;
pub mod handle;
mod heartbeat;
pub mod hold;
pub mod input_wait;
pub mod kept_env;
pub mod keys;
pub mod kill;
mod launch;
pub mod listening_port;
pub mod lost;
pub mod monitors;
mod needs_input;
pub mod output;
pub mod pending;
pub mod policy;
mod preview;
pub mod publish;
mod reach;
pub mod readers;
mod sandbox_view;
pub mod screen;
pub mod search;
pub mod search_pool;
pub mod shim_connection;
#[cfg(test)]
mod sizes;
mod stage;
pub mod state;
pub mod stdin;
mod stopped_shim;
pub mod task;
pub mod tree;
pub mod view;
pub mod watch_gate;
pub mod watcher;
mod write_queue;

pub use handle::Proc;
