//! Options that several commands share.

pub mod caller_env;
pub mod exec;
pub mod fields;
pub mod ready;
pub mod restart;
pub mod sandbox;
pub mod script;
pub mod turn;
pub mod watch;
