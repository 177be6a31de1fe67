//! The verbs in groups, as `toolctl --help` lists them.

use crate::verbs::VERBS;

/// Builds clap's template of `toolctl --help` with the verbs in their groups. clap has no groups of subcommands.
pub fn template(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let visible: Vec<_> = VERBS.iter().filter(|verb| !verb.group.is_empty()).collect();
    let line = |name: &str| {
        let about = command.find_subcommand(name).and_then(|sub| sub.get_about()).map(|about| about.to_string());
        format!("  {name:<11}  {}\n", about.unwrap_or_default())
    };
    let groups = visible.chunk_by(|verb, next| verb.group == next.group).map(|group| {
        let lines: String = group.iter().map(|verb| line(verb.name)).collect();
        format!("{header}{}:{header:#}\n{lines}\n", group[0].group)
    });
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{header}{}:{header:#}\n{{options}}{{after-help}}",
        groups.collect::<String>(),
        crate::cli::GLOBAL
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_stands_once_and_every_verb_fits_on_one_line() {
        let mut groups: Vec<&str> = VERBS.iter().map(|verb| verb.group).collect();
        groups.dedup();
        let all = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), all, "the verbs of a group must follow each other: {groups:?}");
        let help = crate::help::command().term_width(80).render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        assert!(help.contains("\nStart:\n  run ") && help.contains("\nGlobal options:\n"), "{help}");
        let listed = |verb: &&crate::verbs::VerbInfo| help.contains(&format!("\n  {:<11}  ", verb.name));
        assert_eq!(VERBS.iter().filter(listed).count(), VERBS.len() - 1, "all but __complete: {help}");
    }
}
