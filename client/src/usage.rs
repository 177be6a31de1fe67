//! What is said of a command line that is not understood, and the help that was asked for in its place.

use crate::console::Console;
use crate::failure::Failure;
use crate::line::Line;
use crate::pick::distance;
use crate::render::text::harmless;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Tells it where it belongs, in colours if those are wanted there, or with `--json` as a document. The exit code.
pub fn tell(wrong: &clap::Error, line: &Line<'_>, words: &[OsString], console: &mut Console<'_>) -> u8 {
    let text = wrong.render();
    // With nobody to hear it, the exit code must do.
    let _ = match wrong.use_stderr() {
        true if line.has("--json") => writeln!(console.err, "{}", Failure::Usage(sentence(wrong)).document()),
        // What was typed is shown in it, and may be anything.
        true if words.iter().any(|word| *word != *harmless(&word.to_string_lossy())) => {
            let lines: Vec<String> = text.to_string().lines().map(harmless).collect();
            writeln!(console.err, "{}", lines.join("\n"))
        }
        true if console.err_look.colour => write!(console.err, "{}", text.ansi()),
        true => write!(console.err, "{text}"),
        false if console.look.colour => write!(console.out, "{}", text.ansi()),
        false => write!(console.out, "{text}"),
    };
    wrong.exit_code() as u8
}

/// The same with the command that was probably meant. Clap knows no letters that changed places, and thinks of `write` first
/// at `wiat`.
pub fn with_tip(mut wrong: clap::Error, line: &Line<'_>, words: &[OsString], command: &clap::Command) -> clap::Error {
    // It would list those too that are no person's business.
    wrong.remove(ContextKind::ValidSubcommand);
    let Some(ContextValue::String(typed)) = wrong.get(ContextKind::InvalidSubcommand).cloned() else { return wrong };
    let inside = line.verb.and_then(|at| command.find_subcommand(&words[at])).unwrap_or(command);
    let visible = inside.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name().to_owned());
    let near: Vec<String> = visible.filter(|name| name.starts_with(&typed) || distance(&typed, name) <= 1).collect();
    if !near.is_empty() {
        wrong.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
    }
    wrong
}

/// The error without the help around it, on one line.
fn sentence(wrong: &clap::Error) -> String {
    if matches!(wrong.kind(), ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return "a command is missing; --help lists them".into();
    }
    let text = wrong.render().to_string();
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|mark| text.find(mark)).min();
    let own = text[..end.unwrap_or(text.len())].trim_start_matches("error:");
    own.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::Fake;
    use serde_json::{Value, json};

    #[test]
    fn with_json_a_usage_error_is_a_document_of_the_shape_of_every_other_error() {
        let fake = Fake::start(vec![]);
        for (args, message) in [
            (&["list", "--nonsense", "--json"][..], "unexpected argument '--nonsense' found"),
            (
                &["--json", "kill"],
                "the following required arguments were not provided: <ID|--all|--task <TASK>|--session",
            ),
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
            (&["--json"], "a command is missing"),
            (&["list", "-n", "0", "--json"], "-n must be at least 1"),
        ] {
            let (code, out, err) = test_run(&fake, args);
            assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{args:?}: {err}");
            let mut document: Value = serde_json::from_str(&err).expect("one document");
            let told = document["message"].take();
            assert!(told.as_str().is_some_and(|told| told.starts_with(message)), "{args:?}: {told}");
            assert_eq!(document, json!({"code": null, "message": null, "data": {"kind": "usage"}}), "{args:?}");
        }
        let (code, out, err) = test_run(&fake, &["run", "--", "--json", "--nonsense"]);
        assert!(code == 4 && out.is_empty() && err.starts_with("toolctl: "), "behind -- nothing is ours: {err}");
    }
}
