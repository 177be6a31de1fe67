//! Merges our part into a user's config: what is there stays, what is missing is added, what cannot be read is refused. Pure.

use super::json_edit;
use serde_json::Value;

/// The command in a hook by which ours is recognised.
const HOOK_COMMAND: &str = "toolctl hook";
/// The name of our entry among the servers.
const SERVER: &str = "toold";

/// A config with our part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    /// The parts of ours that the user had already.
    pub kept: Vec<String>,
    pub added: Vec<String>,
}

/// Merges a JSON snippet. Of `hooks` each event is a part, of another section each entry.
pub fn json(old: &str, snippet: &str) -> Result<Merged, String> {
    let ours: Value = serde_json::from_str(snippet).map_err(|e| e.to_string())?;
    if old.trim().is_empty() {
        return Ok(Merged { text: snippet.to_owned(), kept: Vec::new(), added: parts_of(&ours) });
    }
    let theirs: Value = serde_json::from_str(old).map_err(|e| format!("it is not plain JSON: {e}"))?;
    let mut merged = Merged { text: old.to_owned(), kept: Vec::new(), added: Vec::new() };
    for (section, entries) in ours.as_object().into_iter().flatten() {
        for (key, value) in entries.as_object().into_iter().flatten() {
            let part = format!("{section}.{key}");
            let is_there = match section.as_str() {
                "hooks" => mentions_hook(&theirs[section][key]),
                _ => theirs[section].get(key).is_some(),
            };
            if is_there {
                merged.kept.push(part);
                continue;
            }
            let taken = match value {
                Value::Array(elements) => elements.iter().try_fold(merged.text.clone(), |text, element| {
                    json_edit::add_element(&text, &[section, key], element)
                }),
                value => json_edit::add_member(&merged.text, &[section], key, value),
            };
            merged.text = taken.ok_or_else(|| format!("{part} has no place in it: {section} is of another kind"))?;
            merged.added.push(part);
        }
    }
    serde_json::from_str::<Value>(&merged.text).map_err(|e| format!("it cannot be extended: {e}"))?;
    Ok(merged)
}

/// Returns the names of the parts of a JSON snippet.
fn parts_of(ours: &Value) -> Vec<String> {
    let sections = ours.as_object().into_iter().flatten();
    let parts = |(section, entries): (&String, &Value)| {
        let keys: Vec<String> =
            entries.as_object().into_iter().flatten().map(|(key, _)| format!("{section}.{key}")).collect();
        keys
    };
    sections.flat_map(parts).collect()
}

fn mentions_hook(hooks: &Value) -> bool {
    match hooks {
        Value::String(text) => text.contains(HOOK_COMMAND),
        Value::Array(all) => all.iter().any(mentions_hook),
        Value::Object(all) => all.values().any(mentions_hook),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Merges a TOML snippet: paragraphs with one table each, which are appended. `read` parses TOML.
pub fn toml(old: &str, snippet: &str, read: impl Fn(&str) -> Result<Value, String>) -> Result<Merged, String> {
    let is_empty = old.trim().is_empty();
    let theirs = if is_empty { Value::Null } else { read(old)? };
    let mut merged = Merged { text: old.to_owned(), kept: Vec::new(), added: Vec::new() };
    for paragraph in snippet.split("\n\n") {
        let header = paragraph.lines().find(|line| line.starts_with('[')).unwrap_or_default();
        let part = header.trim_matches(['[', ']']).to_owned();
        let found = part.split('.').fold(&theirs, |value, key| &value[key]);
        if if part.starts_with("hooks.") { mentions_hook(found) } else { !found.is_null() } {
            merged.kept.push(part);
            continue;
        }
        if !merged.text.is_empty() {
            merged.text.truncate(merged.text.trim_end().len());
            merged.text.push_str("\n\n");
        }
        merged.text.push_str(paragraph.trim_end());
        merged.text.push('\n');
        merged.added.push(part);
    }
    if merged.added.is_empty() || is_empty {
        return Ok(merged);
    }
    read(&merged.text)
        .map_err(|_| format!("{} has no place in it: it is of another kind there", merged.added.join(", ")))?;
    Ok(merged)
}

/// Merges a YAML snippet of one section with one entry. Only the plain shape of a block mapping is understood.
pub fn yaml(old: &str, snippet: &str) -> Result<Merged, String> {
    let (section, entry) = snippet.split_once('\n').unwrap_or((snippet, ""));
    let part = format!("{}.{SERVER}", section.trim_end_matches(':'));
    let is_key = |line: &str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        let is_name = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        is_name && (line.len() == key.len() + 1 || line[key.len() + 1..].starts_with([' ', '\r']))
    };
    let is_plain = |line: &str| line.is_empty() || line.starts_with([' ', '#']) || is_key(line);
    if let Some(odd) = old.lines().find(|line| !is_plain(line) || line.contains('\t')) {
        return Err(format!("the line {odd:?} is not of the plain kind that can be extended safely"));
    }
    let lines: Vec<&str> = old.lines().collect();
    let Some(at) = lines.iter().position(|line| line.trim_end() == section) else {
        if lines.iter().any(|line| line.starts_with(section)) {
            return Err(format!("{section} is not a block there"));
        }
        let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        return Ok(Merged { text: format!("{old}{gap}{snippet}"), kept: Vec::new(), added: vec![part] });
    };
    let block = lines[at + 1..].iter().take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let children: Vec<&&str> =
        block.filter(|line| line.starts_with(' ') && !line.trim_start().starts_with('#')).collect();
    let indent = children.first().map_or(2, |line| line.len() - line.trim_start().len());
    let is_ours = |line: &&&str| line.trim_end() == format!("{}{SERVER}:", " ".repeat(indent));
    if children.iter().any(is_ours) {
        return Ok(Merged { text: old.to_owned(), kept: vec![part], added: Vec::new() });
    }
    let entry = entry.lines().map(|line| format!("{}{}\n", " ".repeat(indent - 2), line));
    if indent < 2 || children.first().is_some_and(|line| !line.trim_end().ends_with(':')) {
        return Err(format!("{section} is not a block of servers there"));
    }
    let head: usize = old.split_inclusive('\n').take(at + 1).map(str::len).sum();
    let gap = if old[..head].ends_with('\n') { "" } else { "\n" };
    let text = format!("{}{gap}{}{}", &old[..head], entry.collect::<String>(), &old[head..]);
    Ok(Merged { text, kept: Vec::new(), added: vec![part] })
}

#[cfg(test)]
mod tests {
    use super::super::embedded;
    use super::super::toml_reader;
    use super::*;

    fn merge_toml(old: &str, snippet: &str) -> Result<Merged, String> {
        toml(old, snippet, toml_reader::read)
    }

    #[test]
    fn a_merge_keeps_what_is_there_and_the_second_one_adds_nothing() {
        let gemini = embedded::file("agents/gemini/settings.json");
        let codex = embedded::file("agents/codex/config.toml");
        let hermes = embedded::file("agents/hermes/config.yaml");
        type Merge = fn(&str, &str) -> Result<Merged, String>;
        let cases: [(Merge, &str, &str); 6] = [
            (json, gemini, ""),
            (json, gemini, "{\n\"theme\": \"dark\",\n\"hooks\": {\n\"AfterTool\": [{\"hooks\": []}\n]}\n}\n"),
            (merge_toml, codex, ""),
            (merge_toml, codex, "model = \"x\" # mine\n\n[[hooks.Stop]]\nhooks = []"),
            (yaml, hermes, ""),
            (yaml, hermes, "# mine\nmodel:\n  default: x\nmcp_servers:\n    other:\n        command: y\n"),
        ];
        for (merge, snippet, old) in cases {
            let first = merge(old, snippet).expect("it is taken");
            assert!(first.kept.is_empty() && !first.added.is_empty(), "{first:?}");
            assert!(old.lines().all(|line| first.text.contains(line)), "{}", first.text);
            let second = merge(&first.text, snippet).expect("it is taken");
            assert_eq!((second.text, second.added), (first.text, Vec::<String>::new()));
            let sorted = |mut parts: Vec<String>| {
                parts.sort();
                parts
            };
            assert_eq!(sorted(second.kept), sorted(first.added));
        }
    }

    #[test]
    fn entries_of_the_user_win() {
        let old = "[mcp_servers.toold]\ncommand = \"/opt/toolctl\"\n";
        let merged = toml(old, embedded::file("agents/codex/config.toml"), toml_reader::read).expect("it is taken");
        assert_eq!(merged.kept, ["mcp_servers.toold"]);
        assert!(
            merged.text.starts_with(old) && merged.text.matches("mcp_servers.toold").count() == 1,
            "{}",
            merged.text
        );
        let yaml_old = "mcp_servers:\n  toold:\n    command: /opt/toolctl\n";
        let merged = yaml(yaml_old, embedded::file("agents/hermes/config.yaml")).expect("it is taken");
        assert_eq!((merged.text.as_str(), merged.added.len()), (yaml_old, 0));
    }

    #[test]
    fn a_config_that_cannot_be_read_is_refused() {
        let gemini = embedded::file("agents/gemini/settings.json");
        for old in ["// mine\n{}", "{\"a\": 1,}", "[]", "{\"hooks\": 3}", "{\"hooks\": {\"AfterTool\": {}}}"] {
            assert!(json(old, gemini).is_err(), "{old}");
        }
        let codex = embedded::file("agents/codex/config.toml");
        for old in ["a = ", "hooks = {}", "mcp_servers = {a = {}}", "[hooks]\nStop = 3"] {
            assert!(toml(old, codex, toml_reader::read).is_err(), "{old}");
        }
        let hermes = embedded::file("agents/hermes/config.yaml");
        for old in ["{a: 1}", "- x\n", "mcp_servers: {}\n", "a: |\n\tx\n", "--- \na: 1\n", "mcp_servers:\n  - x\n"] {
            assert!(yaml(old, hermes).is_err(), "{old}");
        }
    }
}
