//! The front doors as their clients use them: the real programs, over their own protocols. One that is missing is skipped.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod agent_rig;
mod agents;
mod emacs;
mod hook;
mod integrate;
mod mcp;
mod nvim;
mod python;
mod top;
mod typescript;
mod vscode;
mod wake;
mod web;
