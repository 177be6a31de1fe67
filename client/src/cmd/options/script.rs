//! The options that describe a script or a kernel.

use super::caller_env::{self, EnvOptions};
use super::exec::{EVENTS, LIMITS, OWNERSHIP, directory};
use super::sandbox::SandboxOptions;
use crate::args;
use crate::cmd::Context;
use crate::error::CliError;
use serde_json::Value;
use std::path::PathBuf;
use toold_proto::params::ExecParams;
use toold_proto::script::Language;

#[derive(Debug, clap::Args)]
pub struct ScriptOptions {
    /// The language: python, javascript or bash (not for a kernel) [default: by the ending of FILE, else python]
    #[arg(long, value_name = "LANGUAGE", hide_possible_values = true, value_parser = args::enum_value::<Language>())]
    pub lang: Option<Language>,
    /// A tool that it may call; may be given again [default: script.tools of the config]
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Let it call no tool
    #[arg(long, conflicts_with = "tools")]
    no_tools: bool,
    /// A value for it, which it has as `args`
    #[arg(long = "arg", value_name = "JSON", value_parser = json)]
    pub args: Option<Value>,
    /// The directory it runs in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    env: EnvOptions,
    /// A name to call it by, which no other running process has
    #[arg(long, value_parser = args::name)]
    pub name: Option<String>,
    /// A task, for `kill --task`, `list --task` and `events --task`
    #[arg(long = "task", value_name = "TASK", help_heading = OWNERSHIP)]
    pub task_id: Option<String>,
    /// A session, for `kill --session`, `list --session` and `events --session` [default: $TOOLD_SESSION, else the agent's]
    #[arg(long = "session", value_name = "KEY", help_heading = OWNERSHIP)]
    pub session_key: Option<String>,
    /// A label, for `list --label`; may be given again
    #[arg(long, help_heading = OWNERSHIP, value_name = "K=V", value_parser = args::pair)]
    pub label: Vec<(String, String)>,
    /// Kill it after this long [default: 5m for a script, none for a kernel]
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = args::duration_ms)]
    pub timeout: Option<u64>,
    /// End a call of a tool after this long [default: 5m]
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = args::duration_ms)]
    pub call_timeout: Option<u64>,
    /// The most calls that it, or a cell of a kernel, may make [default: 500]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    pub max_calls: Option<u64>,
    /// The most calls at the same time; others wait [default: 16]
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    pub max_parallel: Option<u64>,
    /// Send a completion event when it ends
    #[arg(long, help_heading = EVENTS)]
    pub notify: bool,
    #[command(flatten)]
    pub sandbox: SandboxOptions,
    /// A name for this call: the same again gives the same one and starts nothing
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
}

impl ScriptOptions {
    /// Returns the directory and the environment: the caller's, as for `run`.
    pub fn place(&mut self, cx: &mut Context<'_>) -> Result<ExecParams, CliError> {
        let (mut env, cwd) = (std::mem::take(&mut self.env), self.cwd.take());
        env.is_elsewhere = cwd.is_some();
        let mut place = ExecParams { cwd: Some(directory(cwd)?), ..Default::default() };
        caller_env::add(&mut place, env, cx)?;
        let left_out =
            |name: &String| format!("{name}: its value is not UTF-8, which a script cannot get; it is left out");
        place.env_base64.keys().map(left_out).for_each(|line| cx.console.message(&line));
        Ok(place)
    }

    /// Returns the tools that it may call. None: those of the config.
    pub fn tools(&mut self) -> Option<Vec<String>> {
        let tools = std::mem::take(&mut self.tools);
        (self.no_tools || !tools.is_empty()).then_some(tools)
    }
}

/// Parses a value of `--arg` or `--args`.
pub fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("`{text}` is not JSON: {e}; a text is '\"text\"'"))
}
