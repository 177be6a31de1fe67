//! Prints usage errors, and the help that was asked for.

use crate::console::Console;
use crate::error::CliError;
use crate::raw_args::RawArgs;
use crate::render::text::escape_control;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use strsim::osa_distance;

/// Prints it to stdout or stderr, in colours if those are wanted there, or with `--json` as a document. Returns the exit code.
pub fn print(wrong: &clap::Error, line: &RawArgs<'_>, argv: &[OsString], console: &mut Console<'_>) -> u8 {
    // The message quotes what was typed, which may be anything: the arguments are parsed again, escaped.
    let safe: Vec<OsString> = argv.iter().map(|token| escape_control(&token.to_string_lossy()).into()).collect();
    let again = if safe == argv { None } else { crate::cli::parse(&safe).err() };
    let is_safe = safe == argv || again.is_some();
    let wrong = again.as_ref().unwrap_or(wrong);
    let text = wrong.render();
    let (plain, coloured) = (with_own_prefix(&text.to_string()), with_own_prefix(&text.ansi().to_string()));
    // If it cannot be written, the exit code remains.
    if wrong.use_stderr() && line.wants_json() {
        console.json_error(&CliError::Usage(sentence(wrong)).document().to_string());
        return wrong.exit_code() as u8;
    }
    let _ = if !wrong.use_stderr() {
        let help = if console.style.colour { text.ansi().to_string() } else { text.to_string() };
        write!(console.out, "{help}")
    } else if !is_safe {
        writeln!(console.err, "{}", escape_control(plain.trim_end()))
    } else {
        write!(console.err, "{}", if console.err_style.colour { coloured } else { plain })
    };
    wrong.exit_code() as u8
}

/// Replaces clap's wording: every error of this program begins with its name.
fn with_own_prefix(text: &str) -> String {
    text.replacen("error:", "toolctl:", 1).replace("invalid digit found in string", "not an integer")
}

/// The verbs of other programs, and what to type here instead.
const FOREIGN_VERBS: &[(&[&str], &str)] = &[
    (&["end", "terminate"], "`toolctl kill` ends a process, `toolctl shutdown` stops the daemon"),
    (
        &["spawn", "launch"],
        "`toolctl run` starts a process and shows its output, `toolctl exec` starts one in the background",
    ),
    (&["jobs"], "`toolctl list` lists processes"),
    (&["watch"], "`toolctl list --watch` shows processes as they change"),
    (&["cat", "output"], "`toolctl log` shows a process's output, with -f as it comes"),
    (&["remove", "delete", "prune", "clean"], "`toolctl forget` removes finished processes and their logs"),
    (
        &["show", "describe", "stat"],
        "`toolctl poll` shows how a process is, `toolctl inspect` everything about it, `toolctl list` all of them",
    ),
    (
        &["send", "input", "type"],
        "`toolctl submit` writes a line to a process's stdin, `toolctl write` text without an end",
    ),
    (&["version"], "`toolctl --version` prints the version"),
];

/// Returns the error for a number below zero: clap takes it for an option, and suggests a `--` that does not help.
fn negative(line: &RawArgs<'_>, argv: &[OsString], command: &clap::Command) -> Option<clap::Error> {
    let at = line.negative?;
    let (option, value) = (argv[at - 1].to_string_lossy(), argv[at].to_string_lossy());
    let inside = line.verb.and_then(|verb| command.find_subcommand(&argv[verb])).unwrap_or(command);
    let message = format!("invalid value '{value}' for '{option}': it cannot be below 0\n");
    Some(clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(inside))
}

/// Replaces clap's usage of what was typed so far, which leaves out the rest: `log <ID>` has options too.
fn whole_usage(wrong: &mut clap::Error, line: &RawArgs<'_>, argv: &[OsString], command: &clap::Command) {
    if wrong.get(ContextKind::Usage).is_none() {
        return;
    }
    let mut inside = command.clone();
    inside.build();
    for token in line.verb.map_or(&[][..], |verb| &argv[verb..line.end]) {
        inside = inside.find_subcommand(token).cloned().unwrap_or(inside);
    }
    wrong.insert(ContextKind::Usage, ContextValue::StyledStr(inside.render_usage()));
}

/// Suggests a place for an unknown option of `run` or `exec`: behind the program. With clap's `-- -x` it would be the program.
fn for_the_program(wrong: &mut clap::Error, line: &RawArgs<'_>, argv: &[OsString]) {
    let verb = line.verb.map(|verb| argv[verb].to_string_lossy()).filter(|verb| matches!(&**verb, "run" | "exec"));
    if wrong.kind() != ErrorKind::UnknownArgument {
        return;
    }
    // Clap advises `-- --tail`, which is never meant.
    wrong.remove(ContextKind::Suggested);
    let Some(verb) = verb else { return };
    let Some(ContextValue::String(typed)) = wrong.get(ContextKind::InvalidArg).cloned() else { return };
    if wrong.get(ContextKind::SuggestedArg).is_none() {
        let tip = format!("an option of the program goes behind it: toolctl {verb} -- CMD {typed}");
        wrong.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Adds the verb that was probably meant. Clap does not count swapped letters as one error, and suggests `write` first for
/// `wiat`.
pub fn with_suggestion(
    mut wrong: clap::Error,
    line: &RawArgs<'_>,
    argv: &[OsString],
    command: &clap::Command,
) -> clap::Error {
    if let Some(negative) = negative(line, argv, command) {
        return negative;
    }
    // It would list hidden verbs too.
    wrong.remove(ContextKind::ValidSubcommand);
    whole_usage(&mut wrong, line, argv, command);
    for_the_program(&mut wrong, line, argv);
    let Some(ContextValue::String(typed)) = wrong.get(ContextKind::InvalidSubcommand).cloned() else { return wrong };
    let meant = FOREIGN_VERBS.iter().find(|(argv, _)| line.verb.is_none() && argv.contains(&typed.as_str()));
    if let Some((_, tip)) = meant {
        wrong.remove(ContextKind::SuggestedSubcommand);
        wrong.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        return wrong;
    }
    let inside = line.verb.and_then(|at| command.find_subcommand(&argv[at])).unwrap_or(command);
    let visible = inside.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name().to_owned());
    let near: Vec<String> =
        visible.filter(|name| name.starts_with(&typed) || osa_distance(&typed, name) <= 1).collect();
    if !near.is_empty() {
        wrong.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
    wrong
}

/// Returns the error without the help around it, on one line.
fn sentence(wrong: &clap::Error) -> String {
    if matches!(wrong.kind(), ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return "a command is missing; --help lists them".into();
    }
    let text = with_own_prefix(&wrong.render().to_string());
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    let own = text[..end.unwrap_or(text.len())].trim_start_matches("toolctl:");
    own.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::FakeDaemon;
    use clap::error::ErrorKind;
    use serde_json::{Value, json};

    #[test]
    fn with_json_a_usage_error_is_a_document_of_the_shape_of_every_other_error() {
        let fake = FakeDaemon::start(vec![]);
        for (args, message) in [
            (&["list", "--nonsense", "--json"][..], "unexpected argument '--nonsense' found"),
            (&["--json", "kill"], "give an ID, --all, --label, --task or --session"),
            (
                &["list", "--sort", "size", "--json"],
                "invalid value 'size' for '--sort <BY>' [possible values: age, name,",
            ),
            (&["--json", "wiat", "x"], "unrecognized subcommand 'wiat' tip: a similar subcommand exists: 'wait'"),
            (&["--json", "lgo", "x"], "unrecognized subcommand 'lgo' tip: a similar subcommand exists: 'log'"),
            (
                &["--json", "service", "un"],
                "unrecognized subcommand 'un' tip: a similar subcommand exists: 'uninstall'",
            ),
            (
                &["--json", "end", "x"],
                "unrecognized subcommand 'end' tip: `toolctl kill` ends a process, `toolctl shutdown` stops the daemon",
            ),
            (
                &["--json", "service", "stat"],
                "unrecognized subcommand 'stat' tip: some similar subcommands exist: 'start', 'status'",
            ),
            (&["log", "x", "-n", "-1", "--json"], "invalid value '-1' for '-n': it cannot be below 0"),
            (&["kill", "x", "--grace", "-5s", "--json"], "invalid value '-5s' for '--grace': it cannot be below 0"),
            (&["log", "x", "-n", "--grep", "y", "--json"], "a value is required for '--lines <N>'"),
            (&["poll", "x", "--cursor", "y", "--json"], "invalid value 'y' for '--cursor <N>': not an integer"),
            (&["list", "--json=1"], "unexpected value '1' for '--json' found; no more were expected"),
            (&["--json=yes", "nonsense"], "unexpected value 'yes' for '--json' found"),
            (&["signal", "x", "-9", "TERM", "--json"], "unexpected argument '-9' found"),
            (&["--json"], "a command is missing"),
            (&["list", "-n", "0", "--json"], "-n must be at least 1"),
        ] {
            let (code, out, err) = test_run(&fake, args);
            assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{args:?}: {err}");
            let mut document: Value = serde_json::from_str(&err).expect("one document");
            let printed = document["message"].take();
            assert!(printed.as_str().is_some_and(|printed| printed.starts_with(message)), "{args:?}: {printed}");
            assert_eq!(document, json!({"code": null, "message": null, "data": {"kind": "usage"}}), "{args:?}");
        }
        let (code, out, err) = test_run(&fake, &["list", "--nonsense"]);
        let printed = "toolctl: unexpected argument '--nonsense' found\n\nUsage: toolctl list";
        assert!(code == 2 && out.is_empty() && err.starts_with(printed), "as every other error: {err}");
        let (code, out, err) = test_run(&fake, &["run", "--", "--json", "--nonsense"]);
        assert!(code == 4 && out.is_empty() && err.starts_with("toolctl: "), "behind -- nothing is ours: {err}");
    }

    #[test]
    fn a_usage_error_shows_the_usage_that_the_help_shows() {
        let fake = FakeDaemon::start(vec![]);
        for (args, usage) in [
            (&["poll"][..], "Usage: toolctl poll [OPTIONS] <ID>\n"),
            (&["poll", "--stream", "stdout"], "Usage: toolctl poll [OPTIONS] <ID>\n"),
            (&["notify", "--any"], "Usage: toolctl notify [OPTIONS] <ID>...\n"),
            (&["service", "install", "x"], "Usage: toolctl service install [OPTIONS]\n"),
            (&["kill", "--nonsense"], "Usage: toolctl kill [OPTIONS] [ID]...\n       toolctl kill [OPTIONS] --all |"),
        ] {
            let (code, _, err) = test_run(&fake, args);
            assert!(code == 2 && err.contains(usage), "{args:?}: {err}");
            let help: Vec<&str> =
                args.iter().copied().take_while(|token| !token.starts_with('-') && *token != "x").collect();
            let (_, help, _) = test_run(&fake, &[&help[..], &["--help"]].concat());
            assert!(help.contains(usage), "{help}");
        }
    }

    #[test]
    fn an_option_that_run_does_not_know_is_not_advised_as_a_program() {
        let fake = FakeDaemon::start(vec![]);
        for (args, tip) in [
            (&["run", "-x"][..], "tip: an option of the program goes behind it: toolctl run -- CMD -x\n"),
            (&["exec", "-x", "ls"], "tip: an option of the program goes behind it: toolctl exec -- CMD -x\n"),
            (&["run", "--nam", "web", "ls"], "tip: a similar argument exists: '--name'\n"),
        ] {
            let (code, _, err) = test_run(&fake, args);
            assert!(code == 2 && err.contains(tip) && !err.contains("as a value"), "{args:?}: {err}");
            assert_eq!(err.matches("tip:").count(), 1, "{err}");
        }
    }

    #[test]
    fn every_command_that_is_advised_is_one_and_none_is_advised_for_itself() {
        let command = crate::help::command();
        for (argv, tip) in super::FOREIGN_VERBS {
            assert!(argv.iter().all(|token| command.find_subcommand(token).is_none()), "{argv:?}");
            let advised: Vec<&str> = tip.split('`').skip(1).step_by(2).collect();
            assert!(!advised.is_empty(), "{tip}");
            for line in advised {
                let argv = line.split(' ').chain(["--help"]);
                let kind = command.clone().try_get_matches_from(argv).expect_err("help is an error to clap").kind();
                assert!(matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion), "{line}: {kind:?}");
            }
        }
    }
}
