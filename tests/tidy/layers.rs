//! Layers: a module of the daemon uses itself and those above it in `lib.rs`.

use crate::none;
use crate::source::{Source, sources};

/// The modules of the daemon, the lowest first.
fn order() -> Vec<String> {
    let lib = sources("daemon/src").into_iter().find(|source| source.path == "daemon/src/lib.rs").expect("a lib.rs");
    let named = lib.text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    named.filter_map(|rest| rest.strip_suffix(';')).map(String::from).collect()
}

/// The module a file belongs to: `daemon/src/log/reader.rs` is of `log`, `daemon/src/listener.rs` of `listener`.
fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("daemon/src/")?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|name| !matches!(*name, "lib" | "bin"))
}

/// The modules that a source names after `crate::`, with their lines, also in `use crate::{a, b::c}`.
fn uses(source: &Source) -> Vec<(usize, String)> {
    let code: Vec<(usize, &str)> = source.code().collect();
    let mut found = Vec::new();
    for (i, (number, line)) in code.iter().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            let after = &line[at + "crate::".len()..];
            match after.strip_prefix('{') {
                None => found.push((*number, first_name(after))),
                Some(group) => {
                    let rest: Vec<&str> = code[i + 1..].iter().map(|(_, line)| *line).collect();
                    let group = format!("{group} {}", rest.join(" "));
                    found.extend(members(&group).into_iter().map(|name| (*number, name)));
                }
            }
        }
    }
    found
}

fn first_name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first name of every member of a group, up to its closing brace.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(first_name(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(first_name(&group[start..at]));
                start = at + 1;
            }
            // Part of a name.
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn a_module_uses_itself_and_those_above_it() {
    let order = order();
    assert!(order.len() > 5, "the layers are found: {order:?}");
    let rank = |name: &str| order.iter().position(|module| module == name);
    let mut broken = Vec::new();
    for source in sources("daemon/src") {
        let Some(user) = module(&source.path) else { continue };
        let Some(own) = rank(user) else {
            broken.push(format!("{}: `{user}` is not in lib.rs", source.path));
            continue;
        };
        for (line, used) in uses(&source) {
            if rank(&used).is_some_and(|other| other > own) {
                broken.push(format!("{}:{line}: `{user}` uses `{used}`, which is above it in the layers", source.path));
            }
        }
    }
    none("a module uses itself and those before it in daemon/src/lib.rs", broken);
}

#[test]
fn a_group_names_each_of_its_modules() {
    let text = "use crate::{log::{Log, Page},\n    sys}; // crate::rpc\nlet x = crate::store::record::open(crate::clock::wall_ms);";
    let source = Source { path: "daemon/src/proc/x.rs".into(), text: text.into() };
    let found: Vec<(usize, String)> = uses(&source);
    let expected = [(1, "log"), (1, "sys"), (3, "store"), (3, "clock")];
    assert_eq!(found, expected.map(|(line, name)| (line, name.to_string())));
}
