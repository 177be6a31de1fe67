//! The verbs of other programs that work here too. They are not in the help of commands, and completion does not offer them.

use crate::raw_args::RawArgs;
use std::ffi::OsString;

/// Each alias with its verb.
pub const ALIASES: &[(&str, &str)] = &[
    ("ps", "list"),
    ("ls", "list"),
    ("logs", "log"),
    ("tail", "log"),
    ("status", "poll"),
    ("stop", "kill"),
    ("rm", "forget"),
    ("start", "exec"),
];

/// The lines that `tail` shows, as the program of that name does.
const TAIL: &str = "--lines=10";

/// Returns the aliases of a verb.
pub fn of(verb: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, meant)| *meant == verb).map(|(alias, _)| *alias)
}

/// Rewrites the aliases whose meaning depends on the rest of the line: `status` without an ID lists all, and `tail` without a number of
/// lines shows ten.
pub fn expand(argv: &[OsString], command: &clap::Command) -> Vec<OsString> {
    let line = RawArgs::read(argv, command);
    let Some(verb) = line.verb else { return argv.to_vec() };
    let mut expanded = argv.to_vec();
    match argv[verb].to_str() {
        Some("status") if !line.has_operand() => expanded[verb] = "list".into(),
        Some("tail")
            if !["-n", "--lines", "--tail"].iter().any(|flag| line.has(flag) || line.value(flag).is_some()) =>
        {
            expanded.insert(verb + 1, TAIL.into());
        }
        // Any other alias means its verb, whatever follows.
        _ => {}
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_its_verb_and_two_depend_on_the_rest() {
        let command = crate::help::command();
        for (alias, verb) in ALIASES {
            assert_eq!(command.find_subcommand(alias).map(clap::Command::get_name), Some(*verb), "{alias}");
        }
        let argv = |line: &str| ["toolctl"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        for (typed, read) in [
            ("status", "list"),
            ("--json status", "--json list"),
            ("status web", "status web"),
            ("--socket /s status", "--socket /s list"),
            ("tail web", "tail --lines=10 web"),
            ("tail -f web", "tail --lines=10 -f web"),
            ("tail -n 3 web", "tail -n 3 web"),
            ("tail --tail=3 web", "tail --tail=3 web"),
            ("run -- status", "run -- status"),
            ("service status", "service status"),
        ] {
            let typed: Vec<OsString> = argv(typed);
            assert_eq!(expand(&typed, &command), argv(read) as Vec<OsString>);
        }
    }
}
