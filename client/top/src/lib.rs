//! `toolctl top`: processes live on the whole terminal. `model` is the state, `update` decides, `render` draws; `driver` is
//! the only part that waits, reads and writes.

mod driver;
mod key_parser;
mod layout;
mod link;
mod model;
mod once;
mod programs;
mod render;
mod signals;
mod terminal;
mod update;

use clap::Parser;
use std::process::ExitCode;
use toold_client::companion::{CompanionOptions, TopArgs};

/// Show processes live on the whole terminal
#[derive(Debug, Parser)]
#[command(name = "toolctl top", version)]
struct Cli {
    #[command(flatten)]
    options: CompanionOptions,
    #[command(flatten)]
    top: TopArgs,
}

/// The exit code for a daemon that cannot be reached, as of every command of `toolctl`.
const UNREACHABLE: u8 = 4;

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = if cli.top.once { once::run(&cli.options, &cli.top) } else { driver::run(&cli.options, &cli.top) };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(TopError { message, code }) => {
            eprintln!("toolctl: {message}");
            ExitCode::from(code)
        }
    }
}

/// The reason why there is no view.
#[derive(Debug)]
struct TopError {
    message: String,
    code: u8,
}

impl TopError {
    fn failed(message: impl Into<String>) -> TopError {
        TopError { message: message.into(), code: 1 }
    }

    fn unreachable(message: impl ToString) -> TopError {
        TopError { message: message.to_string(), code: UNREACHABLE }
    }

    fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> TopError {
        move |error| TopError::failed(format!("cannot {doing}: {error}"))
    }
}
