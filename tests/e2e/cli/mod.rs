//! Tests of `toolctl`: its commands, its output for people, its use of the terminal, completions and manual pages.

mod aliases;
mod attach;
mod attach_margins;
mod attach_restore;
mod attach_sizes;
mod commands;
mod completions;
mod completions_interactive;
mod doctor;
mod env;
mod errors;
mod events;
mod exec;
mod ids;
mod list;
mod log;
mod log_several;
mod man;
mod peer;
mod pipe;
mod presentation;
mod run;
mod silent;
mod stdin;
mod terminal;
mod usage;
