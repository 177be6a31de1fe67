//! What `toolctl` says about itself: the whole command line with its examples, and topics.

pub mod examples;
pub mod groups;
pub mod topics;

use crate::cli::Cli;
use clap::CommandFactory;

/// The command line as clap knows it, with examples at every command that has none of its own.
/// Help, completions and manual pages are all made from this.
pub fn command() -> clap::Command {
    let command = with_examples(Cli::command(), "");
    let template = groups::template(&command);
    command.help_template(template)
}

fn with_examples(command: clap::Command, above: &str) -> clap::Command {
    let path = format!("{above}{}", command.get_name());
    let inside = format!("{path} ");
    let command = command.mut_subcommands(|sub| with_examples(sub, &inside));
    match examples::of(&path) {
        Some(lines) if command.get_after_help().is_none() => command.after_help(text(lines)),
        Some(_) | None => command,
    }
}

fn text(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

/// Every example of every command.
#[cfg(test)]
pub fn all_examples() -> Vec<String> {
    tests::all().iter().flat_map(|(_, command)| tests::examples(command)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// Every command that people see, with its words.
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

    /// The lines of a help that are examples.
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
        assert!(poor.is_empty(), "give them two examples in client/src/help/examples.rs: {poor:?}");
    }

    #[test]
    fn an_example_fits_on_a_line_of_80() {
        let long =
            |(_, command): &(String, clap::Command)| examples(command).into_iter().filter(|line| line.len() > 78);
        let long: Vec<String> = all().iter().flat_map(long).collect();
        assert!(long.is_empty(), "wrapped, they cannot be copied: {long:?}");
    }

    /// Two places for one command, and the text of its own file was never seen.
    #[test]
    fn examples_are_in_one_place() {
        for sub in Cli::command().get_subcommands() {
            let here = examples::of(&format!("toolctl {}", sub.get_name())).is_some();
            assert!(!here || sub.get_after_help().is_none(), "{} has examples in its own file too", sub.get_name());
        }
    }

    #[test]
    fn what_a_command_says_itself_is_not_hidden_by_other_examples() {
        let both = |(path, _): &(String, clap::Command)| {
            let mut words = path.split(' ').skip(1);
            let own = Cli::command();
            let own = words.try_fold(&own, |at, word| at.find_subcommand(word)).and_then(|own| own.get_after_help());
            own.is_some() && examples::of(path).is_some()
        };
        let both: Vec<String> = all().into_iter().filter(both).map(|(path, _)| path).collect();
        assert!(both.is_empty(), "their own file has examples: {both:?}");
    }

    #[test]
    fn every_argument_is_explained_and_the_options_of_all_commands_stand_apart() {
        for (path, sub) in all() {
            for arg in sub.get_arguments() {
                assert!(arg.get_help().is_some_and(|help| !help.to_string().is_empty()), "{path} {arg}");
            }
        }
        let mut command = command();
        command.build();
        for sub in command.get_subcommands_mut() {
            let help = sub.render_help().to_string();
            let (own, global) = help.split_once("\nGlobal options:\n").unwrap_or_else(|| panic!("{help}"));
            assert!(!own.contains("--no-autostart"), "{help}");
            let options: Vec<&str> = global.lines().take_while(|line| !line.is_empty()).collect();
            assert!(options[0].contains("--socket") && options.iter().any(|line| line.contains("--color")), "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        }
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for (path, sub) in all() {
            for line in examples(&sub) {
                let words = shlex::split(&line).unwrap_or_else(|| panic!("{path}: {line}"));
                let stages = words.split(|word| matches!(word.as_str(), "|" | "&&" | ">" | "<"));
                for words in stages.filter(|words| words.first().is_some_and(|word| word == "toolctl")) {
                    let words: Vec<OsString> = words.iter().map(Into::into).collect();
                    let words = crate::cmd::kill::with_plain_signals(&words, &command());
                    if let Err(wrong) = command().try_get_matches_from(words) {
                        panic!("{path}: {line}: {wrong}");
                    }
                }
            }
        }
    }
}
