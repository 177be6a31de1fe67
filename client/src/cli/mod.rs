//! The command line of `toolctl`: its global options, parsing, and how it ends.

use crate::autostart::DaemonFlags;
use crate::cmd::{self, Context};
use crate::connect::{Autostart, Connection};
use crate::console::{Colour, Console};
use crate::error::{CliError, NO_SUCH_PROCESS};
use crate::raw_args::RawArgs;
use crate::verbs::{Verb, parse_single_verb};
use crate::{aliases, daemon_probe, help, process_ref, usage_error};
use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Run processes in the background and look after them, with the daemon toold
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, after_help = AFTER, override_usage = "toolctl [OPTIONS] COMMAND [ARG]...", disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The options that every command has.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// The daemon's socket [default: $TOOLD_SOCKET, else $XDG_RUNTIME_DIR/toold/toold.sock]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The config file for the daemon, if this call starts it
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Print the daemon's answer as one JSON document, errors too; `events` prints one per line
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Fail when no daemon runs; without this, one is started
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_autostart: bool,
    /// When to use colours: auto, always or never; auto obeys NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    color: Colour,
}

/// The heading of these options in the help.
pub const GLOBAL: &str = "Global options";

const AFTER: &str = "An ID is a process id, a unique start of one (4 digits or more), a process's name, @last (the newest) or \
@failed (the newest that failed). log, wait, kill, forget and notify take patterns of names too: 'test-*'.
A TIME is 500ms, 10s, 2m, 1h or 1d, or a number of seconds; a SIZE is 10K, 512M or 1G, or a number of bytes.
Exit codes: 0 done; the process's own for run, script, attach, wait and notify; 126 and 127 run could not start its program; 124 a wait timed out; 2 usage; 3 no such process; 4 \
daemon unreachable; 1 anything else.
Also understood: ps and ls (list), status (poll, or list), logs and tail (log), start (exec), stop (kill), rm (forget).
`toolctl help COMMAND` explains a command, `toolctl help topics` lists what else is explained.

Examples:
  toolctl run -- make test              # stream its output, exit with its code
  toolctl exec --name web -- ./server   # start it in the background
  toolctl log -f web                    # follow its output
  toolctl kill web                      # end it and everything it started";

/// Runs `toolctl` from its arguments to its exit code.
pub fn main() -> u8 {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    match parse(&argv) {
        Ok(cli) => {
            let console = Console::stdio(&mut out, &mut err, cli.global.color);
            run(cli, console)
        }
        Err(wrong) => {
            let line = RawArgs::read(&argv, &help::command());
            usage_error::print(&wrong, &line, &argv, &mut Console::stdio(&mut out, &mut err, line.colour()))
        }
    }
}

/// Parses the command line. Nothing happens yet.
pub fn parse(argv: &[OsString]) -> Result<Cli, clap::Error> {
    match parse_single_verb(argv) {
        Some(cli) => Ok(cli),
        None => parse_all_verbs(argv),
    }
}

fn parse_all_verbs(argv: &[OsString]) -> Result<Cli, clap::Error> {
    let command = help::command();
    let typed = cmd::kill::with_plain_signals(&aliases::expand(argv, &command), &command);
    let matches = match command.clone().try_get_matches_from(&typed) {
        Err(wrong) if wrong.kind() == ErrorKind::DisplayHelp => help::display_command().try_get_matches_from(&typed),
        other => other,
    };
    let matches =
        matches.map_err(|wrong| usage_error::with_suggestion(wrong, &RawArgs::read(argv, &command), argv, &command))?;
    Cli::from_arg_matches(&matches)
}

fn run(mut cli: Cli, console: Console<'_>) -> u8 {
    let autostart = if cli.global.no_autostart {
        Autostart::Refused
    } else {
        Autostart::Allowed(DaemonFlags { socket: cli.global.socket.clone(), config: cli.global.config })
    };
    let connection = Connection::new(cli.global.socket.unwrap_or_else(daemon_probe::default_socket), autostart);
    let mut cx = Context { connection, console, json: cli.global.json };
    let filter = cli.verb.filter();
    let resolved = process_ref::resolve(&mut cli.verb.ids(), filter, &mut cx.connection);
    let typed: Vec<String> = cli.verb.ids().into_iter().map(|id| id.clone()).collect();
    let code = resolved.and_then(|()| cli.verb.run(&mut cx));
    cx.console.erase();
    code.unwrap_or_else(|failure| {
        let code = report(&failure, &mut cx);
        if code == NO_SUCH_PROCESS && !cx.json && failure.is_not_found() {
            process_ref::suggestion(&typed, &mut cx.connection).into_iter().for_each(|hint| cx.console.message(&hint));
        }
        code
    })
}

/// Prints the error on standard error: as a sentence, or as a document.
fn report(failure: &CliError, cx: &mut Context<'_>) -> u8 {
    match failure {
        CliError::OutputClosed => {}
        failure if cx.json => cx.console.json_error(&failure.document().to_string()),
        failure => {
            let (text, excerpt) = (failure.to_string(), failure.excerpt());
            cx.console.message(text.strip_suffix(excerpt).unwrap_or(&text).trim_end());
            cx.console.excerpt(excerpt);
            failure.hint().into_iter().for_each(|hint| cx.console.message(&hint));
        }
    }
    failure.exit_code()
}

/// The streams that are a terminal in a test.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    None,
    /// Standard error, 60 columns wide.
    Errors,
    /// Both streams, 60 columns wide.
    Both,
}

/// Runs `toolctl` inside a test. Returns its exit code, its output and its errors.
#[cfg(test)]
pub fn test_run(fake: &crate::testing::FakeDaemon, args: &[&str]) -> (u8, String, String) {
    test_run_on(Screen::None, fake, args)
}

#[cfg(test)]
pub fn test_run_on(screen: Screen, fake: &crate::testing::FakeDaemon, args: &[&str]) -> (u8, String, String) {
    let mut out = Vec::new();
    let (code, err) = test_run_into(&mut out, screen, fake, args);
    (code, String::from_utf8_lossy(&out).into_owned(), err)
}

/// Runs `toolctl` with a standard output of the test.
#[cfg(test)]
pub fn test_run_into(
    out: &mut dyn io::Write,
    screen: Screen,
    fake: &crate::testing::FakeDaemon,
    args: &[&str],
) -> (u8, String) {
    let socket = fake.path().display().to_string();
    let all = ["toolctl", "--no-autostart", "--socket", &socket].into_iter().chain(args.iter().copied());
    let mut err = Vec::new();
    let mut console = Console::plain(out, &mut err);
    if screen != Screen::None {
        console.err_style.width = Some(60);
    }
    match screen {
        Screen::None => {}
        Screen::Errors => console.can_redraw = true,
        Screen::Both => console.style.width = Some(60),
    }
    let argv: Vec<OsString> = all.map(Into::into).collect();
    let code = match parse(&argv) {
        Ok(cli) => {
            console.keeps_colours = cli.global.color == Colour::Always;
            console.style.colour = console.keeps_colours;
            run(cli, console)
        }
        Err(wrong) => usage_error::print(&wrong, &RawArgs::read(&argv, &help::command()), &argv, &mut console),
    };
    (code, String::from_utf8_lossy(&err).into_owned())
}

#[cfg(test)]
mod hostile_values;
#[cfg(test)]
mod tests;
