//! The options of `toolctl mcp`. `toolctl` checks them and passes them on to the program `toolctl-mcp`, which reads them with
//! the same definition.

use crate::args;
use clap::ValueEnum;
use std::ffi::OsString;

/// The agents that the server can wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WakeTarget {
    /// By `codex queue`.
    Codex,
}

/// The options of the server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct McpOptions {
    /// The session that owns what is started [default: that of the agent, else one of this server]
    #[arg(long, value_name = "KEY")]
    pub session: Option<String>,
    /// The longest wait of one call [default: 50s; 280s with progress; 25m for Claude Code]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    pub max_wait: Option<u64>,
    /// Offer only the tools that change nothing
    #[arg(long)]
    pub read_only: bool,
    /// Let the agent answer prompts that do not show what is typed
    #[arg(long)]
    pub allow_secrets: bool,
    /// Also offer these tools of the daemon: all, or their names
    #[arg(long, value_name = "all|NAME,...", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Wake this agent when a process of its thread ends: codex
    #[arg(long, value_name = "AGENT", value_enum, hide_possible_values = true)]
    pub wake: Option<WakeTarget>,
}

impl McpOptions {
    /// Returns the options as arguments.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                args.push(format!("{name}={value}").into());
            }
        };
        pair("--session", self.session.clone());
        pair("--max-wait", self.max_wait.map(|ms| format!("{ms}ms")));
        pair("--tools", (!self.tools.is_empty()).then(|| self.tools.join(",")));
        pair("--wake", self.wake.map(|WakeTarget::Codex| "codex".to_owned()));
        let flags = [("--read-only", self.read_only), ("--allow-secrets", self.allow_secrets)];
        args.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| OsString::from(name)));
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: McpOptions,
    }

    #[test]
    fn the_arguments_that_are_passed_on_read_as_the_same_options() {
        let typed = "x --session a=b --max-wait 50s --read-only --allow-secrets --tools a,b.c --wake codex";
        let options = Line::try_parse_from(typed.split(' ')).expect("they are right").options;
        let again = std::iter::once(OsString::from("x")).chain(options.to_args());
        let read = Line::try_parse_from(again).expect("they are right").options;
        assert_eq!(format!("{options:?}"), format!("{read:?}"));
        assert_eq!((options.max_wait, options.tools.len()), (Some(50_000), 2));
        assert!(McpOptions::default().to_args().is_empty());
    }
}
