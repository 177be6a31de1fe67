//! Tests of starting and supervising the daemon: flags, configuration, sockets, systemd.

pub mod install;
mod start;
mod startup_errors;
mod systemd;
mod watchdog;
