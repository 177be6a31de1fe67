//! The program `toold-fetch` as the daemon starts it: requests on stdin, answers on stdout, servers on loopback.
#![allow(clippy::unwrap_used)]

mod bridge;
mod extract;
mod hostile;
mod mcp;
mod mcp_stateless;
mod program;
mod search;
mod searx;
mod tls;
