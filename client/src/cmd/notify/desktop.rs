//! A desktop notification, by the first usual program that is installed.
//!
//! They call org.freedesktop.Notifications for us. A D-Bus library in toolctl would cost every call for what few
//! calls need.

use crate::render::status;
use crate::render::text::{cut, escape_control, last_line};
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use toold_proto::results::Waited;

/// The number of output lines below the command, and the columns of each line, that a notification shows.
const MAX_LINES: usize = 3;
const MAX_COLUMNS: usize = 200;
/// The service, its object and its method.
const SERVICE: &str = "org.freedesktop.Notifications";
const OBJECT: &str = "/org/freedesktop/Notifications";

/// The content. The title is plain text, the body is markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub title: String,
    pub body: String,
}

/// Builds the notification about a process that ended.
pub fn note(waited: &Waited) -> Note {
    let process = &waited.process;
    let who = process.name.clone().unwrap_or_else(|| process.id.to_string());
    let lines: Vec<&str> = waited.output.lines().filter(|line| last_line(line).is_some()).collect();
    let last = lines[lines.len().saturating_sub(MAX_LINES)..].iter().filter_map(|line| last_line(line));
    let body: Vec<String> = std::iter::once(process.command.clone()).chain(last).map(|line| markup(&line)).collect();
    Note {
        title: cut(&escape_control(&format!("{who} {}", status::describe(process))), MAX_COLUMNS),
        body: body.join("\n"),
    }
}

/// Escapes a line for markup.
fn markup(line: &str) -> String {
    cut(&escape_control(line), MAX_COLUMNS).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Shows the notification, or returns why that is impossible.
pub fn show(note: &Note) -> Result<(), String> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR");
    let bus = runtime.is_some_and(|dir| Path::new(&dir).join("bus").exists());
    // Without an address some of the programs would start a bus of their own, where no one listens.
    if !bus && std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none_or(|address| address.is_empty()) {
        return Err("there is no session bus (DBUS_SESSION_BUS_ADDRESS is not set)".into());
    }
    by(&notifiers(note), |notifier| Command::new(notifier.program).args(&notifier.args).stdin(Stdio::null()).output())
}

/// A program that can show a notification.
#[derive(Debug, PartialEq, Eq)]
struct Notifier {
    program: &'static str,
    args: Vec<String>,
}

/// The programs, the most usual first. Each argument is separate: no shell parses them.
fn notifiers(note: &Note) -> [Notifier; 3] {
    let Note { title, body } = note;
    let notifier =
        |program, args: &[&str]| Notifier { program, args: args.iter().map(|arg| arg.to_string()).collect() };
    let method = format!("{SERVICE}.Notify");
    let (app, quoted_title, quoted_body) = (quoted("toolctl"), quoted(title), quoted(body));
    let gdbus =
        ["call", "--session", "--timeout", "5", "--dest", SERVICE, "--object-path", OBJECT, "--method", &method];
    let values = [&app, "@u 0", "''", &quoted_title, &quoted_body, "@as []", "@a{sv} {}", "@i -1"];
    let busctl =
        ["--user", "--quiet", "--timeout=5", "--", "call", SERVICE, OBJECT, SERVICE, "Notify", "susssasa{sv}i"];
    let plain = ["toolctl", "0", "", title, body, "0", "0", "-1"];
    [
        notifier("notify-send", &["--app-name=toolctl", "--", title, body]),
        notifier("gdbus", &[&gdbus[..], &values].concat()),
        notifier("busctl", &[&busctl[..], &plain].concat()),
    ]
}

/// Quotes a string for gdbus.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

/// Tries one program after the other. One that is not installed is skipped, one that failed is reported.
fn by(notifiers: &[Notifier], mut run: impl FnMut(&Notifier) -> io::Result<Output>) -> Result<(), String> {
    let mut why = None;
    for notifier in notifiers {
        match run(notifier) {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let printed =
                    last_line(&String::from_utf8_lossy(&output.stderr)).unwrap_or_else(|| output.status.to_string());
                why.get_or_insert(format!("{}: {}", notifier.program, escape_control(&printed)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => drop(why.get_or_insert(format!("{}: {error}", notifier.program))),
        }
    }
    Err(why.unwrap_or_else(|| "install notify-send, gdbus or busctl".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::json;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn strange_output_is_shown_as_it_is_and_neither_markup_nor_a_flag() {
        let document = process(json!({"name": "-web", "command": "a && b <c>", "status": "exited", "reason": "exited",
            "exit_code": 1, "output": "1\n2\n\n\u{1b}[31m<b>3</b>\u{1b}[0m\n4 'it\\'s\u{7}\n", "next_cursor": 0, "matched": null}));
        let note = note(&serde_json::from_value(document).expect("a whole process"));
        let body = "a &amp;&amp; b &lt;c&gt;\n2\n&lt;b&gt;3&lt;/b&gt;\n4 'it\\'s\\x07";
        assert_eq!(note, Note { title: "-web exited 1".into(), body: body.into() });
        let [send, gdbus, busctl] = notifiers(&note);
        assert_eq!(send.args, ["--app-name=toolctl", "--", "-web exited 1", body]);
        assert_eq!(gdbus.args[13], "'-web exited 1'");
        assert!(
            gdbus.args[14].ends_with("\\n4 \\'it\\\\\\'s\\\\x07'") && !gdbus.args[14].contains('\n'),
            "{:?}",
            gdbus.args
        );
        let dashes = busctl.args.iter().position(|arg| arg == "--").expect("what follows is not an option");
        assert!(busctl.args[dashes..].contains(&"-web exited 1".to_owned()));
    }

    #[test]
    fn the_first_program_that_works_is_enough_and_a_failure_has_a_reason() {
        let note = Note { title: "t".into(), body: "b".into() };
        let ended = |code: i32, printed: &str| {
            Ok(Output {
                status: ExitStatus::from_raw(code << 8),
                stdout: Vec::new(),
                stderr: printed.as_bytes().to_vec(),
            })
        };
        let missing = || Err(io::ErrorKind::NotFound.into());
        let mut tried = Vec::new();
        let shown = by(&notifiers(&note), |notifier| {
            tried.push(notifier.program);
            if notifier.program == "gdbus" { ended(0, "") } else { missing() }
        });
        assert_eq!((shown, tried), (Ok(()), vec!["notify-send", "gdbus"]));
        assert_eq!(by(&notifiers(&note), |_| missing()), Err("install notify-send, gdbus or busctl".into()));
        let refused = by(&notifiers(&note), |notifier| {
            if notifier.program == "busctl" { missing() } else { ended(1, "x\nno \x1b[1mbus\n") }
        });
        assert_eq!(refused, Err("notify-send: no bus".into()));
    }
}
