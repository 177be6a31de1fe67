//! The mode `mcp`: an MCP server over Streamable HTTP as one over stdio. It lives as long as its client wants it, so a call
//! in flight is answered into the log even while no daemon runs. Written on hyper and not on rmcp: rmcp's client begins
//! sessions again and sends requests again by itself, and does not report whether a request was sent.

mod bridge;
mod endpoint;
mod message;
mod mirror;
mod output;
mod session;
mod sse;
mod stream;

use crate::target::Target;
use bridge::Bridge;
use endpoint::Endpoint;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use output::Output;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Lines of stdin that wait for the bridge.
const STDIN_LINES: usize = 16;
/// Exit code after a session was lost and no other could begin: who started the bridge starts it again.
const SESSION_LOST_EXIT: u8 = 3;

/// The command line of a bridge.
#[derive(Debug, Clone, PartialEq)]
pub struct McpArgs {
    target: Target,
    headers: HeaderMap,
}

impl McpArgs {
    /// Parses `URL [--header-env NAME=VARIABLE]… [--bearer-env VARIABLE]`. Values come from the environment: a command line
    /// is visible to others.
    pub fn parse(args: &[&str], env: impl Fn(&str) -> Option<String>) -> Result<McpArgs, String> {
        let [url, options @ ..] = args else { return Err("the url is missing".into()) };
        let target = Target::parse(url).map_err(|error| error.message)?;
        let mut headers = HeaderMap::new();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or_else(|| format!("{option} needs a value"))?;
            let (name, variable, prefix) = match (*option, value.split_once('=')) {
                ("--header-env", Some((name, variable))) => (name, variable, ""),
                ("--header-env", None) => return Err(format!("--header-env needs NAME=VARIABLE, not `{value}`")),
                ("--bearer-env", _) => (AUTHORIZATION.as_str(), *value, "Bearer "),
                _ => return Err(format!("there is no option {option}")),
            };
            let text = env(variable).ok_or_else(|| format!("the environment variable `{variable}` is not set"))?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header"))?;
            let text = HeaderValue::from_str(&format!("{prefix}{}", text.trim()));
            let mut text = text.map_err(|_| format!("the value of `{variable}` cannot be in a header"))?;
            text.set_sensitive(true);
            headers.insert(name, text);
        }
        Ok(McpArgs { target, headers })
    }
}

/// The reason for which a bridge ends.
enum End {
    /// Stdin was closed, and no call was in flight.
    Closed,
    Terminated,
    SessionLost,
}

pub fn main(args: &[&str]) -> ExitCode {
    let args = match McpArgs::parse(args, |name| std::env::var(name).ok()) {
        Ok(args) => args,
        Err(reason) => {
            eprintln!("toold-fetch mcp: {reason}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("toold-fetch mcp: the runtime cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run(args));
    runtime.shutdown_background();
    code
}

async fn run(args: McpArgs) -> ExitCode {
    let output = Output::start(std::io::stdout(), || std::process::exit(1));
    let bridge = Bridge::new(Endpoint::new(args.target, args.headers), output);
    let end = match serve(&bridge).await {
        Ok(end) => end,
        Err(e) => {
            eprintln!("toold-fetch mcp: signals cannot be received: {e}");
            return ExitCode::FAILURE;
        }
    };
    let (reason, code) = match end {
        End::Closed => ("the connection to the server ended", ExitCode::SUCCESS),
        End::Terminated => ("the connection to the server was ended by SIGTERM", ExitCode::SUCCESS),
        End::SessionLost => ("the session with the server was lost", ExitCode::from(SESSION_LOST_EXIT)),
    };
    bridge.shut_down(reason).await;
    code
}

/// Serves until one of the ends. Stdin that is closed does not end calls in flight.
async fn serve(bridge: &Arc<Bridge>) -> std::io::Result<End> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut lines = stdin_lines();
    let ours = bridge.clone();
    let mut dispatcher = tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            if !line.trim().is_empty() {
                ours.on_line(&line).await;
            }
        }
    });
    let mut is_open = true;
    while is_open || bridge.has_calls() {
        tokio::select! {
            _ = terminate.recv() => return Ok(End::Terminated),
            () = bridge.failed.notified() => return Ok(End::SessionLost),
            () = bridge.answered.notified() => {}
            _ = &mut dispatcher, if is_open => is_open = false,
        }
    }
    Ok(End::Closed)
}

/// Reads stdin in a thread of its own: a read of a pipe cannot be waited for in another way everywhere.
fn stdin_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(STDIN_LINES);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { return };
            if sender.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<McpArgs, String> {
        McpArgs::parse(args, |name| (name == "TOKEN").then(|| "s3cret\n".to_string()))
    }

    #[test]
    fn headers_come_from_the_environment() {
        let url = "http://127.0.0.1:1/mcp";
        let args = parse(&[url, "--header-env", "X-Key=TOKEN", "--bearer-env", "TOKEN"]).expect("arguments");
        assert_eq!(args.headers["x-key"], "s3cret");
        assert_eq!(args.headers["authorization"], "Bearer s3cret");
        assert!(!format!("{args:?}").contains("s3cret"), "{args:?}");
        for (args, message) in [
            (&[][..], "the url is missing"),
            (&["ftp://x"], "only http and https"),
            (&[url, "--header-env", "X-Key"], "NAME=VARIABLE"),
            (&[url, "--header-env", "X-Key=OTHER"], "`OTHER` is not set"),
            (&[url, "--header-env"], "needs a value"),
            (&[url, "--cookie", "x"], "no option"),
        ] {
            let reason = parse(args).expect_err(message);
            assert!(reason.contains(message), "{reason}");
        }
    }
}
