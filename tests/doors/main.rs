//! The front doors as their clients use them: the real programs, spoken to over their own protocols.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod emacs;
mod mcp;
mod nvim;
mod python;
mod typescript;
