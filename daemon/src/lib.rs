//! The daemon behind toold's socket. Layers, from the ground up; a module uses those above it here.

pub mod clock;
pub mod config;
pub mod sys;

pub mod text;

pub mod log;

pub mod store;

pub mod watch;

pub mod events;

pub mod backend;

pub mod spec;

pub mod proc;

pub mod registry;

pub mod rpc;

pub mod logging;

pub mod state_dir;

pub mod listener;

pub mod watchdog;

pub mod serve;
