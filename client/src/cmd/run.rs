//! `run`: starts a process, shows its output as it comes, exits as it does.

use super::Context;
use super::options::caller_env;
use super::options::exec::{self, PtyDefault};
use crate::args;
use crate::error::CliError;
use crate::session::{
    Access, AttachedTerminal, Hangup, RecordFate, Role, SCREEN_SIGNALS, SIGNALS, Session, SessionOptions,
};
use crate::sys::{self, Signals};
use crate::terminal::KeyMode;
use crate::terminal::keys::{self, DetachKeys};
use std::fs::{File, Metadata};
use std::io::IsTerminal;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::time::Duration;

const NOTES: &str = "With -t, when both ends are terminals, the program has yours: every key goes to it, Ctrl-C too, \
except the one that detaches. Without -t the program has a pipe: the lines you type go into it, Ctrl-D closes it, Ctrl-C is \
forwarded as SIGINT, a second one kills, Ctrl-Z stops toolctl alone and Ctrl-\\ leaves the program running. In the background, \
and while another program has the terminal without lines (a pager), nothing is read. --no-stdin leaves everything you type to the \
shell, and the program has /dev/null.
Its output is complete, however long: the program waits for a slow reader, as in a pipe. If bytes are missing all the same, as on a \
full disk, run reports their number and exits with 74.
When its --timeout or --idle ends it, the exit code is 124.
A TIME is 500ms, 10s, 2m, 1h or 1d; a SIZE is 10K, 512M or 1G.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = "toolctl run [OPTIONS] [--] CMD [ARG]...\n       toolctl run [OPTIONS] -c TEXT")]
pub struct Args {
    #[command(flatten)]
    options: exec::Options,
    /// Leave our stdin alone, whatever it is: the program has /dev/null
    #[arg(long, help_heading = super::options::exec::TERMINAL, conflicts_with = "stdin")]
    no_stdin: bool,
    /// Leave it running in the background after this long, and print its id
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    detach_after: Option<u64>,
    /// With -t: the key that leaves it running, several as C-p,C-q, or none
    #[arg(long, help_heading = super::options::exec::TERMINAL, value_name = "KEYS", default_value = "C-\\", value_parser = keys::parse)]
    detach_keys: DetachKeys,
    /// Print at most this much of its output, as in 4K: its beginning, and at the end its last lines
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, conflicts_with = "pty")]
    max_output: Option<u64>,
    /// Remove its record and its log when it has ended; one that is left running keeps both
    #[arg(long, conflicts_with = "detach_after")]
    rm: bool,
    /// End it when toolctl gets SIGHUP or SIGTERM, or its terminal is closed
    #[arg(long)]
    kill_on_hangup: bool,
    #[command(flatten)]
    what: exec::Program,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut options = args.options;
    let terminals = cx.console.is_real && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let access = match options.terminal() {
        Some(size) if terminals && !cx.json && !args.no_stdin => {
            Some(if size.is_some() { Access::FixedSize } else { Access::Full })
        }
        Some(_) | None => None,
    };
    let wish = match (options.stdin || access.is_some(), args.no_stdin) {
        (true, _) => Wish::Always,
        (false, true) => Wish::Never,
        (false, false) => Wish::IfData,
    };
    let input = match (cx.console.is_real, &access) {
        (false, _) => None,
        (true, Some(_)) => standard_input(wish)?,
        (true, None) => standard_input(wish)?.map(without_waiting),
    };
    let readiness = options.take_readiness();
    options.stdin |= input.is_some();
    let window = sys::window_size(std::io::stdout().as_fd()).filter(|size| size.rows > 0 && size.cols > 0);
    let env = options.take_env();
    let mut exec = exec::params(args.what, options, PtyDefault::Ours(window))?;
    exec.session_key = cx.session_or_agents(exec.session_key);
    caller_env::add(&mut exec, env, cx)?;
    exec.consumer = cx.consumer_or_agents(exec.consumer);
    if let Some(consumer) = &exec.consumer {
        super::events::create_consumer(consumer, cx)?;
    }
    // A reader of our output gets all of it. The document of --json has only a part in any case, and is read at the end.
    exec.hold = !cx.json;
    let caught = if access.is_some() { &SCREEN_SIGNALS[..] } else { &SIGNALS };
    let plan = SessionOptions {
        role: Role::Owner,
        hangup: if args.kill_on_hangup { Hangup::Kill } else { Hangup::RunsOn },
        exec,
        script: None,
        detach_after: args.detach_after.map(Duration::from_millis),
        input,
        readiness,
        max_output: args.max_output,
        record: if args.rm { RecordFate::Removed } else { RecordFate::Kept },
        screen: access.map(|access| AttachedTerminal::new(access, args.detach_keys, KeyMode::Forwarded)),
    };
    let signals = Signals::catch(caught).map_err(|source| CliError::Io { doing: "catch signals", source })?;
    Session::new(cx, signals, plan).run()
}

/// The condition for forwarding our stdin to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Always,
    /// If it has data, or may have some typed. Leaving it unread would lose it silently.
    IfData,
    Never,
}

/// Returns our stdin as a file, when it is to be forwarded: without a buffer, so that poll(2) knows all there is to
/// read.
fn standard_input(wish: Wish) -> Result<Option<File>, CliError> {
    let failed = |source| CliError::Io { doing: "open standard input", source };
    let file = File::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let forward = match wish {
        Wish::Always => true,
        Wish::IfData => carries_data(&file.metadata().map_err(failed)?),
        Wish::Never => false,
    };
    Ok(forward.then_some(file))
}

/// Opens a terminal so that reading it never blocks. Another reader of the terminal may take the line that poll(2)
/// reported, and a blocked read would not react to Ctrl-C. Other files, and a terminal that we cannot open, stay as they
/// are.
fn without_waiting(file: File) -> File {
    if !file.is_terminal() {
        return file;
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).unwrap_or(file)
}

/// Reports whether there may be data. `/dev/null` has none, and a directory cannot be read.
fn carries_data(stdin: &Metadata) -> bool {
    let is_null = || std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == stdin.rdev());
    match stdin.file_type() {
        device if device.is_char_device() => !is_null(),
        other => !other.is_dir(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn all_but_the_null_device_and_a_directory_carry_data() {
        let (pipe, _writer) = std::io::pipe().expect("a pipe");
        let (socket, _other) = std::os::unix::net::UnixStream::pair().expect("two sockets");
        let given = [OwnedFd::from(pipe), OwnedFd::from(socket), tempfile::tempfile().expect("a file").into()];
        let carries = |file: File| carries_data(&file.metadata().expect("it is open"));
        assert_eq!(given.map(|fd| carries(fd.into())), [true; 3]);
        let at = |path| carries(File::open(path).expect("it is there"));
        assert_eq!(["/dev/zero", "/dev/null", "/"].map(at), [true, false, false]);
    }
}
