//! Names: predicates change nothing, a type has one meaning per crate, retired names stay retired, one style of modules.

use crate::none;
use crate::source::{Source, all, files, relative, root, sources};
use regex::Regex;
use std::collections::BTreeMap;

/// Sources of each crate.
const CRATES: [&str; 15] = [
    "proto/src",
    "proto/ansi/src",
    "daemon/format/src",
    "daemon/policy/src",
    "daemon/shim/src",
    "daemon/tools/src",
    "daemon/redact/src",
    "daemon/stubs/src",
    "daemon/fetch/src",
    "daemon/src",
    "client/src",
    "client/mcp/src",
    "client/top/src",
    "client/web/src",
    "tests/support/src",
];

/// Names that each module of a directory may define: only together with the module do they name something.
const PER_MODULE: [(&str, &str); 1] = [("client/src/cmd/", "Args")];

/// Types of the old dialect. No type has one of these names again.
const RETIRED_TYPES: &str = "Told ToldSlot Voice WhoAsks Asks Heard Seat Places Ends Theirs Unanswered WriteEnd KillEnd \
    Tongue Word Words News Lent Boxes Lookout Picture Shown Looks Meanwhile Visitor Unstarted Silent Presence Way Single \
    Made Ahead Goal Printed Nothing Got Which Stretch Entered Link Kept Minder MindReader Scene Toy Oracle";

/// Modules of the old dialect. No file and no directory has one of these names again.
const RETIRED_MODULES: &str = "told tell voice asks asking minders loose made seat ends order single spoken presence pick \
    here long quiet words unions places whole boxes recent shown scene toy weight crowd roles same badinput badstart asks";

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

/// The types that a source defines and that other files can name.
fn exported_types(source: &Source, definition: &Regex) -> Vec<(usize, String)> {
    let lines = source.product_code();
    lines.filter_map(|(line, code)| Some((line, definition.captures(code)?[1].to_string()))).collect()
}

#[test]
fn a_predicate_changes_nothing() {
    let mutable = regex(r"fn ((?:is|has)_\w+)\s*(?:<[^>]*>)?\(\s*&(?:'\w+ )?mut self");
    let mut broken = Vec::new();
    for source in all() {
        let lines = source.code().filter_map(|(line, code)| Some((line, mutable.captures(code)?[1].to_string())));
        broken.extend(lines.map(|(line, name)| format!("{}:{line}: {name}", source.path)));
    }
    none("`is_*` and `has_*` take `&self`", broken);
}

#[test]
fn an_exported_type_name_is_defined_once_in_a_crate() {
    let definition = regex(r"^\s*pub(?:\([a-z: ]+\))? (?:struct|enum|trait|type|union) (\w+)");
    let mut broken = Vec::new();
    for dir in CRATES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for source in sources(dir) {
            for (line, name) in exported_types(&source, &definition) {
                // The list of verbs expects the options of a command as `kill::Args`.
                if PER_MODULE.iter().any(|(dir, allowed)| source.path.starts_with(dir) && *allowed == name) {
                    continue;
                }
                places.entry(name).or_default().push(format!("{}:{line}", source.path));
            }
        }
        let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
        broken.extend(twice.map(|(name, places)| format!("{dir} {name}: {}", places.join(", "))));
    }
    none("a type that leaves its file has one meaning per crate", broken);
}

#[test]
fn no_module_is_a_file_beside_its_own_directory() {
    let mut broken = Vec::new();
    for source in all() {
        let dir = root().join(source.path.trim_end_matches(".rs"));
        if dir.is_dir() && dir.read_dir().is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| is_rust(&e.path()))))
        {
            broken.push(source.path);
        }
    }
    none("a module with files of its own is `x/mod.rs`, not `x.rs` beside `x/`", broken);
}

fn is_rust(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|ext| ext == "rs")
}

#[test]
fn retired_names_stay_retired() {
    let types: Vec<&str> = RETIRED_TYPES.split_whitespace().collect();
    let modules: Vec<&str> = RETIRED_MODULES.split_whitespace().collect();
    let definition = regex(r"\b(?:struct|enum|trait|type|union) (\w+)");
    let mut broken = Vec::new();
    for source in all() {
        for (line, code) in source.code() {
            let name = definition.captures(code).map(|found| found[1].to_string());
            if let Some(name) = name.filter(|name| types.contains(&name.as_str())) {
                broken.push(format!("{}:{line}: {name}", source.path));
            }
        }
    }
    for path in files("").iter().filter(|path| is_rust(path)) {
        let name = relative(path);
        if name.trim_end_matches(".rs").split('/').any(|part| modules.contains(&part)) {
            broken.push(name);
        }
    }
    none("a name of the old dialect", broken);
}

/// The places that answer calls: `rpc`, and below it what scripts, agents and people call alike.
const ANSWERING: [&str; 9] = [
    "daemon/src/rpc/",
    "daemon/src/call_error/",
    "daemon/src/file_calls/",
    "daemon/src/tools/",
    "daemon/src/script/",
    "daemon/src/toolsets/",
    "daemon/tools/",
    "daemon/stubs/",
    "daemon/fetch/",
];

#[test]
fn answers_are_built_only_where_calls_are_answered() {
    let mut broken = Vec::new();
    let is_answering = |path: &str| ANSWERING.iter().any(|place| path.starts_with(place));
    for source in sources("daemon").iter().filter(|source| !is_answering(&source.path)) {
        for (line, code) in source.product_code() {
            let name = ["RpcError", "json!"].into_iter().find(|name| code.contains(name));
            if let Some(name) = name {
                broken.push(format!("{}:{line}: {name}", source.path));
            }
        }
    }
    none("`RpcError` and `json!` stay in `proto` and where calls are answered", broken);
}
