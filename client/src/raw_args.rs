//! A command line as it was typed, read without clap: which arguments are ours, and what the global flags among them are. Usage
//! errors, help and completions need that of a line that clap does not understand.

use crate::console::Colour;
use clap::{Arg, ValueEnum};
use std::ffi::{OsStr, OsString};

/// The positions of what is found in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawArgs<'a> {
    argv: &'a [OsString],
    /// Our own options, without their values.
    flags: Vec<usize>,
    /// Arguments of the verb that are neither options nor their values.
    operands: Vec<usize>,
    /// The verb, in front of its own subcommands.
    pub verb: Option<usize>,
    /// The program of `run` or `exec`, or where it would be.
    pub program: Option<usize>,
    /// A number below zero, as the value of an option that takes a number.
    pub negative: Option<usize>,
    /// The end of our own arguments: `--`, or that program.
    pub end: usize,
}

impl<'a> RawArgs<'a> {
    /// Reads a command line whose first argument is our own name.
    pub fn read(argv: &'a [OsString], command: &clap::Command) -> RawArgs<'a> {
        let mut line = RawArgs {
            argv,
            flags: Vec::new(),
            operands: Vec::new(),
            verb: None,
            program: None,
            negative: None,
            end: argv.len(),
        };
        let mut inside = command;
        let mut at = 1;
        while at < argv.len() {
            // Arguments that are not UTF-8 are neither an option nor a verb.
            let token = argv[at].to_str().unwrap_or_default();
            let runs = inside.get_positionals().any(|arg| arg.is_trailing_var_arg_set());
            if token == "--" {
                line.end = at;
                line.program = runs.then_some(at + 1);
                break;
            }
            if token.len() > 1 && token.starts_with('-') {
                line.flags.push(at);
                if let Some(arg) = takes_the_next(token, inside, command) {
                    at += 1;
                    let below = argv.get(at).and_then(|value| value.to_str()).is_some_and(is_negative);
                    line.negative = line.negative.or((below && measures(arg)).then_some(at));
                }
            } else if let Some(sub) = inside.find_subcommand(token) {
                inside = sub;
                line.verb.get_or_insert(at);
            } else if runs {
                (line.end, line.program) = (at, Some(at));
                break;
            } else {
                line.operands.push(at);
            }
            at += 1;
        }
        line.end = line.end.min(argv.len());
        line
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|at| self.argv[*at] == flag)
    }

    /// Reports whether the verb has an argument that is not an option.
    pub fn has_operand(&self) -> bool {
        !self.operands.is_empty()
    }

    /// Reports whether JSON is wanted, also if `--json` has a value, which it does not take.
    pub fn wants_json(&self) -> bool {
        self.has("--json") || self.value("--json").is_some()
    }

    /// Returns the last value of an option.
    pub fn value(&self, flag: &str) -> Option<&'a OsStr> {
        self.flags.iter().rev().find_map(|at| {
            let token = &self.argv[*at];
            if token == flag {
                return self.argv.get(at + 1).map(OsString::as_os_str);
            }
            Some(OsStr::new(token.to_str()?.strip_prefix(flag)?.strip_prefix('=')?))
        })
    }

    /// Returns the value of `--color`; clap reports an invalid one.
    pub fn colour(&self) -> Colour {
        let given = self.value("--color").and_then(|value| Colour::from_str(value.to_str()?, false).ok());
        given.unwrap_or_default()
    }
}

fn is_negative(value: &str) -> bool {
    value.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reports whether the value of an option is a number, by its value name in the help.
fn measures(arg: &Arg) -> bool {
    let number = |name: &clap::builder::Str| matches!(name.as_str(), "N" | "TIME" | "SIZE" | "PERCENT");
    arg.get_value_names().is_some_and(|names| names.iter().any(number))
}

/// Returns the option whose value is the next argument.
fn takes_the_next<'c>(token: &str, inside: &'c clap::Command, command: &'c clap::Command) -> Option<&'c Arg> {
    let known = || inside.get_arguments().chain(command.get_arguments());
    let arg = match token.strip_prefix("--") {
        Some(long) => known().find(|arg| {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|others| others.contains(&long))
        }),
        // Of several letters only the last can have its value behind it.
        None => known().find(|arg| arg.get_short().is_some() && arg.get_short() == token.chars().next_back()),
    };
    arg.filter(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    /// Returns where verb, program and end are, and the values of `--json` and `--color`.
    fn read(line: &str) -> (Option<usize>, Option<usize>, usize, bool, Colour) {
        let argv = argv(line);
        let line = RawArgs::read(&argv, &crate::help::command());
        (line.verb, line.program, line.end, line.has("--json"), line.colour())
    }

    #[test]
    fn our_own_arguments_end_where_the_programs_command_begins() {
        use Colour::{Always, Auto, Never};
        assert_eq!(read("toolctl --color never list --json"), (Some(3), None, 5, true, Never));
        assert_eq!(read("toolctl list --nonsense --color=always"), (Some(1), None, 4, false, Always));
        assert_eq!(read("toolctl run ls --json --color=never"), (Some(1), Some(2), 2, false, Auto));
        assert_eq!(read("toolctl run --name x --json ls --color=never"), (Some(1), Some(5), 5, true, Auto));
        assert_eq!(read("toolctl exec -t --watch --json -- --color=never"), (Some(1), Some(6), 5, false, Auto));
        assert_eq!(read("toolctl service logs -n 5 -- --json"), (Some(1), None, 5, false, Auto));
        assert_eq!(read("toolctl log kill --color blue"), (Some(1), None, 5, false, Auto));
    }
}
