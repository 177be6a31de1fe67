//! `help`: prints a command's help, or a topic.

use super::Context;
use crate::error::{CliError, DONE};
use crate::help::{self, topics};
use crate::render::Style;
use crate::render::wrap::page;

/// The longest line: longer ones are hard to read on any terminal.
const MAX_WIDTH: usize = 100;
/// The longest line of a topic in a file or a pager: it fits a terminal of the usual width.
const PIPED_WIDTH: usize = 78;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A command, a topic, or `topics` for a list of them
    #[arg(value_name = "TOPIC")]
    names: Vec<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let style = cx.console.style;
    let text = match args.names.first().map(String::as_str) {
        Some("topics") => topics::list(),
        Some(name) => topic(name).map_or_else(|| of_command(&args.names, style), |text| Ok(on(&text, style)))?,
        None => of_command(&[], style)?,
    };
    cx.console.print(&text)?;
    Ok(DONE)
}

/// Returns a topic's text. `events` is a command too, so its text names the command's help.
fn topic(name: &str) -> Option<String> {
    let topic = topics::find(name)?;
    let command = help::command().find_subcommand(name).map(|_| format!("\nThe command: `toolctl {name} --help`.\n"));
    Some(format!("{}{}", topic.text, command.unwrap_or_default()))
}

/// Returns a topic's text in lines that fit.
fn on(text: &str, style: Style) -> String {
    page(text, style.width.map_or(PIPED_WIDTH, |width| width.min(MAX_WIDTH)))
}

fn of_command(names: &[String], style: Style) -> Result<String, CliError> {
    let mut command = help::display_command();
    command.build();
    let mut at = &mut command;
    for name in names {
        at = at.find_subcommand_mut(name).filter(|sub| !sub.is_hide_set()).ok_or_else(|| {
            CliError::Usage(format!(
                "there is no command or topic `{name}`; `toolctl help` and `toolctl help topics` list them"
            ))
        })?;
    }
    let text = at.render_long_help();
    Ok(if style.colour { text.ansi().to_string() } else { text.to_string() })
}

#[cfg(test)]
mod tests {
    use super::{Style, on};
    use crate::cli::test_run;
    use crate::help::topics::TOPICS;
    use crate::render::text::columns;
    use crate::testing::FakeDaemon;

    #[test]
    fn topics_are_listed_and_printed_and_a_command_has_its_own_help() {
        let fake = FakeDaemon::start(vec![]);
        let (code, list, _) = test_run(&fake, &["help", "topics"]);
        assert_eq!(code, 0);
        for topic in &TOPICS {
            assert!(list.contains(topic.name) && list.contains(topic.about), "{list}");
            let (code, text, _) = test_run(&fake, &["help", topic.name]);
            let printed = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(code == 0 && printed(&text).starts_with(&printed(topic.text)), "{text}");
            // The broken code printed up to 104 columns, which a terminal broke anywhere.
            assert!(text.lines().all(|line| columns(line) <= 78), "{text}");
            for width in [30, 40, 80, 200] {
                let text = on(topic.text, Style { width: Some(width), colour: false });
                assert!(text.lines().all(|line| columns(line) <= width.min(100)), "{text}");
                assert_eq!(printed(&text), printed(topic.text), "lines break at blanks at {width}: {text}");
            }
        }
        let (_, codes, _) = test_run(&fake, &["help", "exit-codes"]);
        for printed in
            ["run, script, attach, wait and notify:", "exec --ready-…: the same", "126 ", "127 ", "130 after Ctrl-C"]
        {
            assert!(codes.contains(printed), "{printed} is missing: {codes}");
        }
        let (code, text, _) = test_run(&fake, &["help", "service", "install"]);
        assert!(code == 0 && text.contains("Usage: toolctl service install"), "{text}");
        let (code, _, printed) = test_run(&fake, &["help", "nonsense"]);
        assert!(code == 2 && printed.contains("`nonsense`"), "{printed}");
    }
}
