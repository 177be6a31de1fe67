//! The daemon behind toold's socket. The modules are layers, the lowest first: a module uses only those above it in
//! this list.

pub mod call_clock;
pub mod clock;
pub mod config;
pub mod disk;
pub mod sys;

pub mod redaction;
pub mod text;

pub mod matcher;

pub mod log;

pub mod store;

pub mod watch;

pub mod retention;

pub mod events;

pub mod retention_clock;

pub mod backend;

pub mod sandbox;

pub mod spec;

pub mod policy;

pub mod proc;

pub mod registry;

pub mod changes;

pub mod files;

pub mod stage;

pub mod approvals;

pub mod patch;

pub mod admission;

pub mod call_error;

pub mod file_calls;

pub mod tools;

pub mod script;

pub mod toolsets;

pub mod open_tools;

pub mod rpc;

pub mod logging;

pub mod state_dir;

pub mod state_lock;

pub mod listener;

pub mod stop_signals;

pub mod path_watch;

pub mod watchdog;

pub mod serve;
