//! Tools: one dispatcher for scripts, kernels, agents, MCP clients and people, and the providers behind it.

pub mod call_events;
pub mod clients;
pub mod direct;
pub mod dispatcher;
pub mod helper;
pub mod journal;
mod list;
pub mod mcp;
pub mod native;
pub mod owner;
pub mod provider;
pub mod providers;
pub mod running_call;
pub mod verdict;
