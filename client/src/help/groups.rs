//! The commands by what they are for, as `toolctl --help` lists them.

/// What a person wants, and the commands for it.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["run", "exec"]),
    ("Look", &["list", "poll", "log", "inspect", "events"]),
    ("Wait", &["wait", "notify"]),
    ("Talk to it", &["attach", "write", "submit", "close", "resize"]),
    ("End", &["kill", "signal", "forget"]),
    ("The daemon", &["info", "shutdown", "service", "doctor"]),
    ("About toolctl", &["help", "completions", "man"]),
];

/// clap's template of the first help, with the commands in their groups. It knows no groups of commands itself.
pub fn template(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(|sub| sub.get_about()).map(|about| about.to_string());
        format!("  {name:<11}  {}\n", about.unwrap_or_default())
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{header}{title}:{header:#}\n{}\n", names.iter().map(line).collect::<String>())
    };
    let groups: String = GROUPS.iter().map(group).collect();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}{}:{header:#}\n{{options}}{{after-help}}",
        crate::cli::GLOBAL
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_on_one_line() {
        let command = crate::help::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut visible: Vec<&str> =
            command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name()).collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
        let help = command.clone().term_width(80).render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        assert!(help.contains("\nStart:\n  run ") && help.contains("\nGlobal options:\n"), "{help}");
    }
}
