//! `toold-fetch`: web search, web pages as Markdown, and MCP servers over HTTP as stdio servers. A program of its own: the
//! daemon starts it as a process, so hostile pages, HTTP and TLS stay outside the daemon, and a call outlives it.

pub mod address;
pub mod target;

pub mod page;

pub mod connect;

pub mod client;
pub mod extractor;
pub mod whole_text;

pub mod extract;
pub mod mcp;
pub mod search;

mod command;

pub use command::main;
pub use toold_fetch_templates as templates;
