//! `attach`: shows the screen of a process that has a terminal, and sends our keys to it.

use super::Context;
use super::poll::bytes;
use super::wait::has_ended;
use crate::blocking::CallError;
use crate::error::CliError;
use crate::process_ref::{self, IfNone};
use crate::render::poll::summary;
use crate::session::{Access, AttachedTerminal, Hangup, RecordFate, Role, Session, SessionOptions};
use crate::sys::{self, Signals};
use crate::terminal::KeyMode;
use crate::terminal::keys::{self, DetachKeys};
use crate::terminal::replay::{HEAD_LEN, RecordedOutput, TAIL_LEN, snapshot};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use toold_proto::params::{self, Ansi, Encoding};
use toold_proto::process::{Process, Stdin};
use toold_proto::pty::PtySize;
use toold_proto::{ErrorKind, RpcError, api};

const NOTES: &str = "Every key goes to the process, Ctrl-C too, except the one that detaches. The process's terminal gets \
the size of yours, and follows it. Several may be attached at once: all can type, and the last size counts; a \
client with a different window size sees what fits, and both sizes. The exit code is 0 after detaching, and the process's own when it ends.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed [default: the one that runs]
    pub id: Option<String>,
    /// Only look: keys do not reach the process, and its size stays
    #[arg(short, long)]
    read_only: bool,
    /// The key that detaches, several as C-p,C-q, or none
    #[arg(long, value_name = "KEYS", default_value = "C-\\", value_parser = keys::parse)]
    detach_keys: DetachKeys,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    if cx.json {
        return Err(CliError::Usage("attach shows a screen, not a JSON document: use `toolctl poll --json`".into()));
    }
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let types = cx.console.is_real && stdin.is_terminal();
    if !cx.console.is_real || !stdout.is_terminal() || !types && !args.read_only {
        let which = if cx.console.is_real && stdout.is_terminal() { "input" } else { "output" };
        return Err(CliError::Usage(format!(
            "standard {which} is not a terminal: use `toolctl log -f` to see, `toolctl submit` to type"
        )));
    }
    let id = match args.id {
        Some(id) => id,
        None => process_ref::alone(IfNone::Refuse, &mut cx.connection)?,
    };
    let process = cx.connection.call_with_retry::<api::Poll>(&params::PollParams { id, ..Default::default() })?.process;
    refuse(&process)?;
    let id = process.id.to_string();
    let (recorded, begin) = recorded(&id, process.cursor, cx)?;
    let usual = PtySize { rows: 24, cols: 80 };
    let was = process.pty_size.unwrap_or(usual);
    let now = sys::window_size(stdout.as_fd()).filter(|size| size.rows > 0 && size.cols > 0).unwrap_or(was);
    // A read-only client takes the screen as it is, and draws the part that fits.
    let shown = snapshot(&recorded, was, if args.read_only { was } else { now });
    let (access, reads) = match (args.read_only, types) {
        (true, true) => (Access::ReadOnly, KeyMode::Forwarded),
        (true, false) => (Access::ReadOnly, KeyMode::Unread),
        (false, _) => (Access::Full, KeyMode::Forwarded),
    };
    let input = match reads {
        KeyMode::Forwarded => {
            Some(File::from(stdin.as_fd().try_clone_to_owned().map_err(CliError::io("open the terminal"))?))
        }
        KeyMode::Unread => None,
    };
    let signals = Signals::catch(&crate::session::SCREEN_SIGNALS)
        .map_err(|source| CliError::Io { doing: "catch signals", source })?;
    let plan = SessionOptions {
        role: Role::Attached,
        hangup: Hangup::RunsOn,
        exec: params::ExecParams { name: process.name.clone(), ..Default::default() },
        script: None,
        detach_after: None,
        input,
        readiness: None,
        record: RecordFate::Kept,
        max_output: None,
        screen: Some(AttachedTerminal::new(access, args.detach_keys, reads)),
    };
    // Of a long output only both ends were read, so the program has to redraw the screen. It also knows its margins.
    let theirs = process.pty_size.filter(|_| args.read_only);
    let redraw = shown.outgrown || shown.full_screen && !recorded.head.is_empty();
    Session::new(cx, signals, plan).attach(id, begin + shown.used as u64, &shown, redraw, theirs)
}

/// Returns an error if the process has no screen to attach to, with what can be done with it instead.
fn refuse(process: &Process) -> Result<(), CliError> {
    let id = &process.id;
    let error = if has_ended(process) {
        RpcError::new(ErrorKind::AlreadyExited, format!("{}: see `toolctl log {id}`", summary(process)))
    } else if !process.pty {
        let see = format!("{id} has no terminal: use `toolctl log -f {id}` to see it");
        let why = match process.stdin {
            Stdin::Pipe => format!("{see}, `toolctl submit {id} TEXT` to type"),
            Stdin::Null | Stdin::Closed | Stdin::Pty => format!("{see}; start it with --pty to attach"),
        };
        RpcError::new(ErrorKind::InvalidParams, why)
    } else {
        return Ok(());
    };
    Err(CallError::Rpc(error).into())
}

/// Returns both ends of the output up to `end`, and where the last one begins.
fn recorded(id: &str, end: u64, cx: &mut Context<'_>) -> Result<(RecordedOutput, u64), CliError> {
    if end <= TAIL_LEN + HEAD_LEN {
        return Ok((RecordedOutput { head: Vec::new(), tail: between(id, 0, end, cx)? }, 0));
    }
    let begin = end - TAIL_LEN;
    Ok((RecordedOutput { head: between(id, 0, HEAD_LEN, cx)?, tail: between(id, begin, end, cx)? }, begin))
}

/// Returns the bytes from `begin` to `end`.
fn between(id: &str, begin: u64, end: u64, cx: &mut Context<'_>) -> Result<Vec<u8>, CliError> {
    let mut all = Vec::new();
    let mut cursor = begin;
    while cursor < end {
        let params = params::PollParams {
            id: id.into(),
            cursor: Some(cursor),
            max_bytes: Some(end - cursor),
            ansi: Ansi::Keep,
            encoding: Encoding::Base64,
            ..Default::default()
        };
        let page = cx.connection.call_with_retry::<api::Poll>(&params)?;
        if page.next_cursor <= cursor {
            break;
        }
        all.extend(bytes(&page.output)?);
        cursor = page.next_cursor;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, process};
    use serde_json::json;

    #[test]
    fn without_a_terminal_or_as_json_it_is_a_usage_error() {
        let fake = FakeDaemon::start(vec![]);
        let (code, _, err) = test_run(&fake, &["attach", "x"]);
        assert_eq!((code, err.contains("not a terminal: use `toolctl log -f`")), (2, true), "{err}");
        assert_eq!(test_run(&fake, &["attach", "x", "--json"]).0, 2);
        assert_eq!(test_run(&fake, &["attach", "x", "--detach-keys", "x"]).0, 2);
    }

    #[test]
    fn only_a_process_that_runs_on_a_terminal_has_a_screen() {
        let refused = |changes| {
            let process = serde_json::from_value(process(changes)).expect("a whole process");
            refuse(&process).err().map(|failure| (failure.exit_code(), failure.to_string()))
        };
        assert_eq!(refused(json!({"pty": true})), None);
        let (code, why) = refused(json!({"stdin": "pipe"})).expect("it has none");
        assert_eq!((code, why.contains("log -f") && why.contains("submit")), (2, true), "{why}");
        // The broken code advised typing into a process without stdin, and into one that had ended.
        for stdin in ["null", "closed"] {
            let (code, why) = refused(json!({"stdin": stdin})).expect("it has none");
            assert_eq!((code, why.contains("log -f"), why.contains("submit")), (2, true, false), "{why}");
        }
        let ended = json!({"stdin": "pipe", "status": "exited", "reason": "exited", "exit_code": 3});
        let (code, why) = refused(ended).expect("it has ended");
        assert_eq!(
            (code, why.contains("exited 3: see `toolctl log "), why.contains("submit")),
            (1, true, false),
            "{why}"
        );
        let ended = json!({"pty": true, "status": "exited", "reason": "exited", "exit_code": 3});
        let (code, why) = refused(ended).expect("it has ended");
        assert_eq!((code, why.contains("exited 3: see `toolctl log ")), (1, true), "{why}");
    }
}
