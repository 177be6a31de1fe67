//! The command line of `toolctl`: its words, its global flags, and how it ends.

use crate::autostart::DaemonFlags;
use crate::cmd::{self, Context};
use crate::connect::{Autostart, Connection};
use crate::console::{Colour, Console};
use crate::error::{CliError, NO_SUCH_PROCESS};
use crate::raw_args::RawArgs;
use crate::{help, process_ref, usage_error};
use clap::{FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use toold_proto::paths;

/// Run processes in the background and look after them, with the daemon toold
#[derive(Debug, Parser)]
#[command(name = "toolctl", version, after_help = AFTER, override_usage = "toolctl [OPTIONS] COMMAND [ARG]...", disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// What every command has.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// The daemon's socket [default: $TOOLD_SOCKET, else $XDG_RUNTIME_DIR/toold/toold.sock]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The config file for the daemon, should this call start it
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Print the daemon's answer as one JSON document, errors too; `events` prints one a line
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,
    /// Fail when no daemon runs; without this, one is started
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_autostart: bool,
    /// When to use colours: auto, always or never; auto heeds NO_COLOR and CLICOLOR_FORCE
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

/// Where the options that every command has stand in the help.
pub const GLOBAL: &str = "Global options";

const AFTER: &str = "An ID is a process id, a unique start of one (4 digits or more), a process's name, @last (the newest) or \
@failed (the newest that failed).
A TIME is 500ms, 10s, 2m, 1h or 1d, or a number of seconds; a SIZE is 10K, 512M or 1G, or a number of bytes.
Exit codes: 0 done; the process's own for run, attach, wait and notify; 126 and 127 run could not start its program; 124 a wait timed out; 2 usage; 3 no such process; 4 \
daemon unreachable; 1 anything else.
`toolctl help COMMAND` explains a command, `toolctl help topics` lists what else is explained.

Examples:
  toolctl run -- make test              # start it, see its output, exit as it does
  toolctl exec --name web -- ./server   # start it in the background
  toolctl log -f web                    # follow its output
  toolctl kill web                      # end it and everything it started";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start a process, show its output as it comes, exit as it does
    Run(cmd::run::Args),
    /// Start a process in the background and print its id
    Exec(cmd::exec::Args),
    /// Put a process that has a terminal (exec --pty) on yours
    Attach(cmd::attach::Args),
    /// Show a process's status and its latest output
    Poll(cmd::poll::Args),
    /// Show a process's output; -f follows it
    Log(cmd::log::Args),
    /// Wait until processes end, print a match, listen or are quiet
    Wait(cmd::wait::Args),
    /// Wait until processes end, and tell: desktop, bell or a command
    Notify(cmd::notify::Args),
    /// Show what happened; -f shows what happens
    Events(cmd::events::Args),
    /// End processes and everything they started
    Kill(cmd::kill::Args),
    /// Send one signal to a process
    Signal(cmd::signal::Args),
    /// Write text to a process's stdin
    Write(cmd::write::Args),
    /// Write a line to a process's stdin
    Submit(cmd::write::Args),
    /// Close a process's stdin
    Close(cmd::close::Args),
    /// Change the size of a process's terminal
    Resize(cmd::resize::Args),
    /// List processes, newest first
    List(cmd::list::Args),
    /// Show everything about one process
    Inspect(cmd::inspect::Args),
    /// Remove finished processes and their logs
    Forget(cmd::forget::Args),
    /// Show the daemon: version, paths, limits, counts
    Info,
    /// Stop the daemon; processes go on
    Shutdown(cmd::shutdown::Args),
    /// Let systemd start the daemon and keep it running
    Service(cmd::service::Args),
    /// Look for what is wrong here, and say what mends it
    Doctor,
    /// Print the completion script for a shell
    Completions(cmd::completions::Args),
    /// Print or write the manual pages
    Man(cmd::man::Args),
    /// Explain a command or a topic; `help topics` lists the topics
    Help(cmd::help::Args),
    /// What could stand at the end of these words. For the completions.
    #[command(hide = true, name = "__complete")]
    Complete(cmd::complete::Args),
}

impl Verb {
    /// Every id that was typed.
    fn ids(&mut self) -> Vec<&mut String> {
        match self {
            Verb::Poll(cmd::poll::Args { id, .. })
            | Verb::Log(cmd::log::Args { id, .. })
            | Verb::Signal(cmd::signal::Args { id, .. })
            | Verb::Write(cmd::write::Args { id, .. })
            | Verb::Submit(cmd::write::Args { id, .. })
            | Verb::Close(cmd::close::Args { id, .. })
            | Verb::Resize(cmd::resize::Args { id, .. })
            | Verb::Attach(cmd::attach::Args { id, .. })
            | Verb::Inspect(cmd::inspect::Args { id, .. }) => vec![id],
            Verb::Wait(cmd::wait::Args { ids, .. })
            | Verb::Notify(cmd::notify::Args { ids, .. })
            | Verb::Forget(cmd::forget::Args { ids, .. }) => ids.iter_mut().collect(),
            Verb::Kill(args) => args.whom.ids.iter_mut().collect(),
            Verb::Events(args) => args.id.iter_mut().collect(),
            Verb::Run(_) | Verb::Exec(_) | Verb::List(_) | Verb::Info | Verb::Shutdown(_) => Vec::new(),
            Verb::Service(_) | Verb::Doctor | Verb::Completions(_) | Verb::Man(_) | Verb::Help(_) => Vec::new(),
            Verb::Complete(_) => Vec::new(),
        }
    }
}

/// `toolctl`, from its arguments to its exit code.
pub fn main() -> u8 {
    let words: Vec<OsString> = std::env::args_os().collect();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    match parse(&words) {
        Ok(cli) => {
            let console = Console::stdio(&mut out, &mut err, cli.global.color);
            run(cli, console)
        }
        Err(wrong) => {
            let line = RawArgs::read(&words, &help::command());
            usage_error::print(&wrong, &line, &words, &mut Console::stdio(&mut out, &mut err, line.colour()))
        }
    }
}

fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    match parse_single_verb(words) {
        Some(cli) => Ok(cli),
        None => parse_all_verbs(words),
    }
}

/// One command and none of the others.
#[derive(Debug, Parser)]
struct SingleVerb<A: clap::Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    args: A,
}

/// The command line, read with the definition of its command alone: that of all of them takes longer to set up than a call
/// takes. None: not such a line, or something is wrong with it, or help is wanted; all that is seen with the whole.
fn parse_single_verb(words: &[OsString]) -> Option<Cli> {
    fn read<A: clap::Args>(words: &[OsString], verb: fn(A) -> Verb) -> Option<Cli> {
        let words = words.iter().take(1).chain(&words[2..]);
        let SingleVerb { global, args } = SingleVerb::<A>::try_parse_from(words).ok()?;
        Some(Cli { global, verb: verb(args) })
    }
    match words.get(1)?.to_str()? {
        "run" => read(words, Verb::Run),
        "exec" => read(words, Verb::Exec),
        "poll" => read(words, Verb::Poll),
        "log" => read(words, Verb::Log),
        "wait" => read(words, Verb::Wait),
        "events" => read(words, Verb::Events),
        "write" => read(words, Verb::Write),
        "submit" => read(words, Verb::Submit),
        "close" => read(words, Verb::Close),
        "signal" => read(words, Verb::Signal),
        "resize" => read(words, Verb::Resize),
        "attach" => read(words, Verb::Attach),
        "list" => read(words, Verb::List),
        "inspect" => read(words, Verb::Inspect),
        "forget" => read(words, Verb::Forget),
        // They are rare, or read in a way of their own.
        _ => None,
    }
}

fn parse_all_verbs(words: &[OsString]) -> Result<Cli, clap::Error> {
    let command = help::command();
    let typed = cmd::kill::with_plain_signals(words, &command);
    let matches = command.clone().try_get_matches_from(typed);
    let matches = matches
        .map_err(|wrong| usage_error::with_suggestion(wrong, &RawArgs::read(words, &command), words, &command))?;
    Cli::from_arg_matches(&matches)
}

fn run(mut cli: Cli, console: Console<'_>) -> u8 {
    let autostart = match cli.global.no_autostart {
        true => Autostart::Refused,
        false => Autostart::Allowed(DaemonFlags { socket: cli.global.socket.clone(), config: cli.global.config }),
    };
    let connection = Connection::new(cli.global.socket.unwrap_or_else(paths::socket), autostart);
    let mut cx = Context { connection, console, json: cli.global.json };
    let resolved = process_ref::resolve(&mut cli.verb.ids(), &mut cx.connection);
    let typed: Vec<String> = cli.verb.ids().into_iter().map(|id| id.clone()).collect();
    let code = resolved.and_then(|()| dispatch(cli.verb, &mut cx));
    cx.console.erase();
    code.unwrap_or_else(|failure| {
        let code = report(&failure, &mut cx);
        if code == NO_SUCH_PROCESS && !cx.json && failure.is_not_found() {
            process_ref::suggestion(&typed, &mut cx.connection).into_iter().for_each(|hint| cx.console.message(&hint));
        }
        code
    })
}

fn dispatch(verb: Verb, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match verb {
        Verb::Run(args) => cmd::run::run(args, cx).map_err(CliError::of_run),
        Verb::Exec(args) => cmd::exec::run(args, cx),
        Verb::Attach(args) => cmd::attach::run(args, cx),
        Verb::Poll(args) => cmd::poll::run(args, cx),
        Verb::Log(args) => cmd::log::run(args, cx),
        Verb::Wait(args) => cmd::wait::run(args, cx),
        Verb::Notify(args) => cmd::notify::run(args, cx),
        Verb::Events(args) => cmd::events::run(args, cx),
        Verb::Kill(args) => cmd::kill::run(args, cx),
        Verb::Signal(args) => cmd::signal::run(args, cx),
        Verb::Write(args) => cmd::write::run(args, cmd::write::End::Open, cx),
        Verb::Submit(args) => cmd::write::run(args, cmd::write::End::Newline, cx),
        Verb::Close(args) => cmd::close::run(args, cx),
        Verb::Resize(args) => cmd::resize::run(args, cx),
        Verb::List(args) => cmd::list::run(args, cx),
        Verb::Inspect(args) => cmd::inspect::run(args, cx),
        Verb::Forget(args) => cmd::forget::run(args, cx),
        Verb::Info => cmd::info::run(cx),
        Verb::Shutdown(args) => cmd::shutdown::run(args, cx),
        Verb::Service(args) => cmd::service::run(args, cx),
        Verb::Doctor => cmd::doctor::run(cx),
        Verb::Completions(args) => cmd::completions::run(args, cx),
        Verb::Man(args) => cmd::man::run(args, cx),
        Verb::Help(args) => cmd::help::run(args, cx),
        Verb::Complete(args) => cmd::complete::run(args, cx),
    }
}

/// Says why it failed, on standard error: to a person, or as a document.
fn report(failure: &CliError, cx: &mut Context<'_>) -> u8 {
    match failure {
        CliError::OutputClosed => {}
        // With nobody to hear it, the exit code must do.
        failure if cx.json => drop(writeln!(cx.console.err, "{}", failure.document())),
        failure => {
            cx.console.message(&failure.to_string());
            failure.hint().into_iter().for_each(|hint| cx.console.message(&hint));
        }
    }
    failure.exit_code()
}

/// What is a terminal in a test.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    None,
    /// Standard error, 60 columns wide.
    Errors,
}

/// `toolctl` inside a test: its exit code, what it printed and what it said.
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

/// The same with a standard output of the test's own.
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
    if screen == Screen::Errors {
        console.err_style.width = Some(60);
        console.can_redraw = true;
    }
    let words: Vec<OsString> = all.map(Into::into).collect();
    let code = match parse(&words) {
        Ok(cli) => {
            console.keeps_colours = cli.global.color == Colour::Always;
            console.style.colour = console.keeps_colours;
            run(cli, console)
        }
        Err(wrong) => usage_error::print(&wrong, &RawArgs::read(&words, &help::command()), &words, &mut console),
    };
    (code, String::from_utf8_lossy(&err).into_owned())
}

#[cfg(test)]
mod tests;
