//! The help of `toolctl`: its command line with groups and examples, and the topics.

pub mod groups;
pub mod topics;

use crate::cli::Cli;
use crate::{aliases, verbs};
use clap::CommandFactory;

/// Builds the clap definition of the whole command line, with the examples of every verb below its notes. Help, completions and
/// manual pages come from it.
pub fn command() -> clap::Command {
    let command = Cli::command().mut_subcommands(with_examples);
    let template = groups::template(&command);
    command.help_template(template)
}

/// Builds the definition whose help is shown: the options that every command has are listed by `toolctl --help` alone.
pub fn display_command() -> clap::Command {
    let command = command();
    let global: Vec<clap::Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    command.mut_subcommands(|sub| without_globals(sub, &global))
}

/// Hides the global options, which is possible only where they are the command's own.
fn without_globals(sub: clap::Command, global: &[clap::Arg]) -> clap::Command {
    let hidden = global.iter().map(|arg| arg.clone().global(false).hide(true));
    let named: Vec<String> = global.iter().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
    let notes = sub.get_after_help().map(|notes| format!("{notes}\n\n")).unwrap_or_default();
    let notes = format!("{notes}{}: {}; see `toolctl --help`.", crate::cli::GLOBAL, named.join(", "));
    let has_subs = sub.get_subcommands().next().is_some();
    let sub = sub.args(hidden).after_help(notes);
    if has_subs { sub.mut_subcommands(|inner| without_globals(inner, global)) } else { sub }
}

fn with_examples(sub: clap::Command) -> clap::Command {
    let sub = sub.clone().aliases(aliases::of(sub.get_name()));
    let Some(verb) = verbs::find(sub.get_name()).filter(|verb| !verb.examples.is_empty()) else { return sub };
    let notes = sub.get_after_help().map(|notes| format!("{notes}\n\n")).unwrap_or_default();
    let examples: Vec<String> = verb.examples.iter().map(|line| format!("  {line}")).collect();
    sub.after_help(format!("{notes}Examples:\n{}", examples.join("\n")))
}

/// Returns every example of every command.
#[cfg(test)]
pub fn all_examples() -> Vec<String> {
    tests::all().iter().flat_map(|(_, command)| tests::examples(command)).collect()
}

/// Returns the arguments of every call of `toolctl` in these lines of shell.
#[cfg(test)]
pub fn command_lines(shell: &str) -> Vec<Vec<std::ffi::OsString>> {
    let line = |line: &str| {
        let argv = shlex::split(line).unwrap_or_else(|| panic!("cannot be split: {line}"));
        let stages = argv.split(|token| matches!(token.as_str(), "|" | "&&" | ">" | "<" | ";"));
        let calls = stages.filter(|argv| argv.first().is_some_and(|token| token == "toolctl"));
        calls.map(|argv| argv.iter().map(Into::into).collect()).collect::<Vec<_>>()
    };
    shell.lines().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects every visible command with its path.
    fn visible(command: &clap::Command, above: &str, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{above} {}", sub.get_name());
            visible(sub, &path, found);
            found.push((path, sub.clone()));
        }
    }

    pub fn all() -> Vec<(String, clap::Command)> {
        let mut found = Vec::new();
        visible(&command(), "toolctl", &mut found);
        assert!(found.len() > 20, "the commands are found");
        found
    }

    /// Returns the lines of a help text that are examples.
    pub fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
        let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn every_command_has_two_examples() {
        let poor: Vec<String> = all()
            .into_iter()
            .filter(|(path, command)| examples(command).iter().filter(|line| line.contains(path.as_str())).count() < 2)
            .map(|(path, _)| path)
            .collect();
        assert!(poor.is_empty(), "give them two examples in client/src/verbs.rs: {poor:?}");
    }

    #[test]
    fn an_example_fits_on_a_line_of_80() {
        let long =
            |(_, command): &(String, clap::Command)| examples(command).into_iter().filter(|line| line.len() > 78);
        let long: Vec<String> = all().iter().flat_map(long).collect();
        assert!(long.is_empty(), "wrapped, they cannot be copied: {long:?}");
    }

    #[test]
    fn every_argument_is_explained_and_global_options_are_listed_apart() {
        for (path, sub) in all() {
            for arg in sub.get_arguments() {
                assert!(arg.get_help().is_some_and(|help| !help.to_string().is_empty()), "{path} {arg}");
            }
        }
        let mut command = display_command();
        command.build();
        for sub in command.get_subcommands_mut() {
            let help = sub.render_help().to_string();
            let global =
                "\nGlobal options: --socket, --config, --json, --no-autostart, --color; see `toolctl --help`.\n";
            assert!(help.ends_with(global), "{help}");
            // The broken code repeated ten lines of them in the help of every command.
            assert_eq!(help.matches("--no-autostart").count(), 1, "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        }
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for line in super::all_examples() {
            for argv in command_lines(&line) {
                let argv = crate::cmd::kill::with_plain_signals(&argv, &command());
                if let Err(wrong) = command().try_get_matches_from(argv) {
                    panic!("{line}: {wrong}");
                }
            }
        }
    }
}
