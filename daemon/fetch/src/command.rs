//! The command line of `toold-fetch`: its modes, their stdin and stdout.

use crate::client::Client;
use crate::{extract, extractor, mcp, search};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use toold_fetch_templates::{ErrorResponse, ExtractRequest, SearchRequest};
use toold_proto::{ErrorKind, RpcError};

const USAGE: &str = "usage: toold-fetch search | extract     a JSON request on stdin, a JSON answer on stdout
       toold-fetch mcp URL [--header-env NAME=VARIABLE]... [--bearer-env VARIABLE]     an MCP server over HTTP, as one over stdio
toold starts this program for web_search, web_extract and MCP servers with a url";

/// Exit code of a wrong command line.
const USAGE_EXIT: u8 = 2;

/// Runs the program. Exit code 0 means that an answer was written, be it an error.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["search"] => answer(|request: SearchRequest| {
            let key = key(request.key_env.as_deref())?;
            block_on(async { search::run(&Client::default(), &request, key.as_deref()).await })
        }),
        ["extract"] => answer(|request: ExtractRequest| {
            let key = key(request.key_env.as_deref())?;
            block_on(extract::run(Client::default(), request, key))
        }),
        ["mcp", args @ ..] => mcp::main(args),
        [extractor::MODE, seconds] => match seconds.parse() {
            Ok(seconds) => extractor::main(seconds),
            Err(_) => usage(),
        },
        ["--version" | "-V"] => {
            println!("toold-fetch {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(USAGE_EXIT)
}

/// Reads the request, runs it, and writes its answer or its error.
fn answer<Q: DeserializeOwned, A: Serialize>(run: impl FnOnce(Q) -> Result<A, RpcError>) -> ExitCode {
    let result = read_request().and_then(run);
    let text = match result {
        Ok(answer) => serde_json::to_string(&answer),
        Err(error) => serde_json::to_string(&ErrorResponse::from(error)),
    };
    let written = text.map_err(io::Error::from).and_then(|text| {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("toold-fetch: the answer cannot be written: {e}");
            ExitCode::FAILURE
        }
    }
}

fn read_request<Q: DeserializeOwned>() -> Result<Q, RpcError> {
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|e| RpcError::new(ErrorKind::InvalidRequest, format!("the request cannot be read: {e}")))?;
    serde_json::from_str(&text)
        .map_err(|e| RpcError::new(ErrorKind::InvalidRequest, format!("the request is not valid: {e}")))
}

/// Returns the key from the variable that the request names.
fn key(variable: Option<&str>) -> Result<Option<String>, RpcError> {
    let Some(variable) = variable else { return Ok(None) };
    match std::env::var(variable) {
        Ok(key) if !key.is_empty() => Ok(Some(key)),
        _ => Err(RpcError::new(ErrorKind::Unavailable, format!("the environment variable `{variable}` has no key"))),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, RpcError>>) -> Result<T, RpcError> {
    let failed = |e: io::Error| RpcError::new(ErrorKind::Internal, format!("the runtime cannot start: {e}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let result = runtime.block_on(work);
    // A resolver that hangs has a thread of its own, and must not hold the answer back.
    runtime.shutdown_background();
    result
}
