//! Tests of the list of verbs.

use super::*;
use crate::help;

/// The macro makes a missing field a compile error; this checks what the fields lead to.
#[test]
fn every_verb_has_a_group_two_examples_a_manual_page_and_a_way_to_be_parsed() {
    let command = help::command();
    let pages = cmd::man::own_pages().expect("pages");
    for verb in VERBS.iter().filter(|verb| verb.name != "__complete") {
        let name = verb.name;
        let sub = command.find_subcommand(name).unwrap_or_else(|| panic!("{name} is not a subcommand"));
        assert!(!sub.is_hide_set() && !verb.group.is_empty(), "{name} has no group");
        assert!(verb.examples.iter().filter(|line| line.contains(&format!("toolctl {name}"))).count() >= 2, "{name}");
        assert!(pages.iter().any(|page| page.file == format!("toolctl-{name}.1")), "{name} has no manual page");
        let inside = std::iter::once(sub).chain(sub.get_subcommands());
        let takes_ids =
            inside.flat_map(|sub| sub.get_arguments()).any(|arg| matches!(arg.get_id().as_str(), "id" | "ids"));
        assert_eq!(takes_ids, verb.ids != ProcessFilter::NoIds, "{name}: what do its ids complete to?");
        let argv: Vec<Vec<OsString>> = help::command_lines(&verb.examples.join("\n"))
            .into_iter()
            .filter(|argv| argv.get(1).is_some_and(|token| token == name))
            .collect();
        let single = argv.iter().filter(|argv| parse_single_verb(argv).is_some()).count();
        match verb.parse {
            Parse::Single => assert_eq!(single, argv.len(), "{name} is not parsed alone"),
            Parse::All => assert_eq!(single, 0, "{name}"),
        }
    }
    assert_eq!(command.get_subcommands().count(), VERBS.len());
}
