//! `tool`: calls a tool and prints its result. Inside a script it uses the script's channel.

mod arguments;

use super::Context;
use super::options::exec::{directory, random_id};
use crate::args;
use crate::blocking::{CallError, parse};
use crate::channel::Channel;
use crate::error::{CliError, DONE, FAILED, TIMED_OUT};
use crate::render::tools;
use arguments::{ArgumentSource, Given};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;
use toold_proto::api;
use toold_proto::tools::{ToolsCallParams, ToolsDetail, ToolsListParams, ToolsListResult, Toolset};

const NOTES: &str = "KEY=VALUE is read by the type that the tool has for KEY: text, a number, true or false, JSON for a list or an \
object. KEY=@FILE takes the content of a file, KEY:=JSON a value of any type.
The result is printed as JSON. That of terminal is the output of its command, and the exit code is the command's; 124 if it timed out.
Inside a script (TOOLD_TOOLS and TOOLD_TOKEN in the environment) the call is one of the script, with its tools and its budget.";

/// The time after which a call is given up: a person may be asked first, and has the time that the daemon gives.
const MAX_CALL_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The native tool whose result is the end of a command.
const TERMINAL: &str = "terminal";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = "toolctl tool [OPTIONS] NAME [KEY=VALUE]...")]
pub struct Args {
    /// The tool, as `toolctl tools` lists it
    #[arg(value_name = "NAME")]
    tool: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE", value_parser = arguments::parse)]
    given: Vec<Given>,
    /// Arguments as one JSON object; KEY=VALUE overrides them
    #[arg(long, value_name = "JSON", value_parser = super::options::script::json)]
    args: Option<Value>,
    /// End the call after this long [default: that of the tool]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    timeout: Option<u64>,
    /// A session, whose rules hold for the call [default: $TOOLD_SESSION, else the agent's]
    #[arg(long = "session", value_name = "KEY")]
    session_key: Option<String>,
    /// The toolset of NAME: toold, hermes or codex [default: toold]
    #[arg(long, value_name = "SET", hide_possible_values = true, value_parser = args::enum_value::<Toolset>())]
    toolset: Option<Toolset>,
    /// The directory of relative paths [default: this one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// A name for this call: the same again gives the same result and does nothing
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    call(args, cx).map_err(with_names_of_options)
}

/// Names the argument NAME in an error about the method's parameter, which is an option of other commands.
fn with_names_of_options(error: CliError) -> CliError {
    match error {
        CliError::Call(CallError::Rpc(mut error)) if error.data.get("param").is_some_and(|param| param == "name") => {
            error.data.insert("param".into(), "NAME".into());
            CallError::Rpc(error).into()
        }
        other => other,
    }
}

fn call(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let channel = Channel::from_env(|name| std::env::var_os(name).filter(|_| cx.console.is_real));
    match channel {
        Some(mut channel) => {
            let Args { tool, given, args, timeout, .. } = args;
            let list = |params: &ToolsListParams| -> Result<ToolsListResult, CliError> {
                Ok(parse::<api::ToolsList>(&channel.call("tools.list", &json!(params))?)?)
            };
            let args = arguments(&tool, given, args, Toolset::Toold, list)?;
            let mut params = json!({"name": tool, "args": args});
            if let Some(timeout) = timeout {
                params["timeout_ms"] = json!(timeout);
            }
            show(&tool, &channel.call_tool(&params)?, cx)
        }
        None => {
            let params = params(args, cx)?;
            cx.connection.expect_wait(MAX_CALL_WAIT);
            let raw = cx.connection.call_raw_with_retry::<api::ToolsCall>(|_| params.clone())?;
            show(&params.name, &raw, cx)
        }
    }
}

fn params(args: Args, cx: &mut Context<'_>) -> Result<ToolsCallParams, CliError> {
    let Args { tool: name, given, args, timeout, session_key, toolset, cwd, request_id } = args;
    let toolset = toolset.unwrap_or_default();
    let list = |params: &ToolsListParams| cx.connection.call_with_retry::<api::ToolsList>(params);
    let args = arguments(&name, given, args, toolset, list)?;
    Ok(ToolsCallParams {
        name,
        args,
        timeout_ms: timeout,
        session_key: cx.session_or_agents(session_key),
        task_id: None,
        cwd: Some(directory(cwd)?),
        request_id: Some(request_id.unwrap_or_else(random_id)),
        toolset,
    })
}

/// Returns the arguments of the call. The types are asked for only if one of them needs its type.
fn arguments(
    tool: &str,
    given: Vec<Given>,
    all: Option<Value>,
    toolset: Toolset,
    list: impl FnOnce(&ToolsListParams) -> Result<ToolsListResult, CliError>,
) -> Result<Map<String, Value>, CliError> {
    let mut args = match all {
        None => Map::new(),
        Some(Value::Object(all)) => all,
        Some(other) => return Err(CliError::Usage(format!("--args {other}: is not a JSON object"))),
    };
    let is_typed = given.iter().any(|given| !matches!(given.source, ArgumentSource::Json(_)));
    let schema = match is_typed {
        true => {
            let params = ToolsListParams { detail: ToolsDetail::Full, toolset, ..Default::default() };
            let found = list(&params)?;
            let found = found.tools.listed().iter().find(|listed| listed.name == tool);
            found.and_then(|listed| listed.input_schema.clone())
        }
        false => None,
    };
    for Given { key, source } in given {
        let value = arguments::value(&key, source, schema.as_ref()).map_err(CliError::Usage)?;
        args.insert(key, value);
    }
    Ok(args)
}

/// The result of `terminal`, as far as it decides what is printed.
#[derive(serde::Deserialize)]
struct Ended {
    output: Option<String>,
    exit_code: Option<i32>,
    #[serde(default)]
    timed_out: bool,
    process: Option<String>,
}

/// Prints the result of a call, and returns the exit code.
fn show(tool: &str, raw: &RawValue, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut result = parse::<api::ToolsCall>(raw)?.result;
    let ended = match tool {
        TERMINAL => serde_json::from_value::<Ended>(result.clone()).ok(),
        // Any other tool has no exit code.
        _ => None,
    };
    match (&ended, &mut result) {
        _ if cx.json => cx.document(raw)?,
        (Some(Ended { output: Some(output), .. }), _) => cx.console.print_output(output)?,
        (Some(Ended { process: Some(process), .. }), _) => cx.console.print(&format!("{process}\n"))?,
        (_, Value::String(text)) => cx.console.print_output(text)?,
        (_, other) => cx.console.print(&tools::value(other))?,
    }
    Ok(ended.map_or(DONE, |ended| ended.code()))
}

impl Ended {
    fn code(&self) -> u8 {
        match (self.timed_out, self.exit_code) {
            (true, _) => TIMED_OUT,
            (false, Some(code)) => u8::try_from(code & 0xff).unwrap_or(FAILED),
            // It runs in the background.
            (false, None) => DONE,
        }
    }
}

#[cfg(test)]
mod tests;
