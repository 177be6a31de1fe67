//! Lists of tools in the form of a model's API, with names that the API allows.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use toold_proto::tools::{Effect, Tool, ToolState, ToolsFormat};

/// Characters of a name, as every API allows them: `[a-zA-Z0-9_-]{1,64}`.
const MAX_API_NAME_LEN: usize = 64;
/// Characters of the suffix that makes a name unique: an underscore and eight hexadecimal digits.
const SUFFIX_LEN: usize = 9;

/// Tools for a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Formatted {
    /// For the field `tools` of a request.
    pub definitions: Vec<Value>,
    /// The tool of each name in `definitions` that is not the tool's own.
    pub names: BTreeMap<String, String>,
}

/// Renders tools for a model. One that is unavailable is left out: a model would only try it. `json` has no definitions.
pub fn format(format: ToolsFormat, tools: &[Tool]) -> Formatted {
    let tools: Vec<&Tool> = tools.iter().filter(|tool| tool.state != ToolState::Unavailable).collect();
    let api_names = api_names(tools.iter().map(|tool| tool.name.as_str()));
    let mut formatted = Formatted::default();
    for (tool, name) in tools.into_iter().zip(api_names) {
        let parameters = object_schema(&tool.input_schema);
        let description = &tool.description;
        formatted.definitions.push(match format {
            ToolsFormat::Json => return Formatted::default(),
            ToolsFormat::Responses => json!({
                "type": "function", "name": name, "description": description, "parameters": parameters, "strict": false,
            }),
            ToolsFormat::Chat => json!({
                "type": "function", "function": { "name": name, "description": description, "parameters": parameters },
            }),
            ToolsFormat::Messages => json!({ "name": name, "description": description, "input_schema": parameters }),
            ToolsFormat::Mcp => mcp(tool, &name, parameters),
        });
        if name != tool.name {
            formatted.names.insert(name, tool.name.clone());
        }
    }
    formatted
}

/// Returns a name of an API for each tool, in their order. The names differ, and a name depends on no order: of two tools that
/// would get the same one, each that is not the name itself gets a suffix of its own.
pub fn api_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for name in names.clone() {
        *wanted.entry(api_name(name)).or_default() += 1;
    }
    names
        .map(|name| {
            let plain = api_name(name);
            if plain == name || wanted.get(&plain) == Some(&1) { plain } else { suffixed(&plain, name) }
        })
        .collect()
}

/// Returns the name with a double underscore for each dot, and an underscore for each other character that an API refuses.
fn api_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let plain: String = name.replace('.', "__").chars().map(allowed).collect();
    if plain.is_empty() || plain.len() > MAX_API_NAME_LEN { suffixed(&plain, name) } else { plain }
}

fn suffixed(plain: &str, name: &str) -> String {
    // FNV-1a: the name of a tool stays the same in every version.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let kept: String = plain.chars().take(MAX_API_NAME_LEN - SUFFIX_LEN).collect();
    format!("{kept}_{hash:08x}")
}

/// Returns a schema with `type` and `properties`, which the APIs demand even of a tool without parameters.
fn object_schema(schema: &Value) -> Value {
    let mut keywords = schema.as_object().cloned().unwrap_or_default();
    keywords.entry("type").or_insert_with(|| "object".into());
    keywords.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(keywords)
}

fn mcp(tool: &Tool, name: &str, parameters: Value) -> Value {
    let mut definition = json!({
        "name": name,
        "description": tool.description,
        "inputSchema": parameters,
        "annotations": {
            "readOnlyHint": tool.effect == Effect::Read,
            "idempotentHint": tool.idempotent,
            "destructiveHint": matches!(tool.effect, Effect::Write | Effect::Exec),
            "openWorldHint": matches!(tool.effect, Effect::Network | Effect::Exec),
        },
    });
    if let Some(schema) = &tool.output_schema {
        definition["outputSchema"] = object_schema(schema);
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::native;
    use crate::toolset::toolset;
    use proptest::prelude::*;
    use toold_proto::tools::Toolset;

    fn names(list: &[&str]) -> Vec<String> {
        api_names(list.iter().copied())
    }

    #[test]
    fn names_have_only_the_characters_of_an_api() {
        assert_eq!(
            names(&["terminal", "linear.create-issue", "x.a/b"]),
            ["terminal", "linear__create-issue", "x__a_b"]
        );
        let long = format!("p.{}", "n".repeat(80));
        let short = names(&[&long]).remove(0);
        assert_eq!(short.len(), MAX_API_NAME_LEN);
        assert!(short.starts_with("p__nnn"), "{short}");
    }

    #[test]
    fn two_tools_never_share_a_name_and_the_order_does_not_matter() {
        let there = names(&["a.b/c", "a.b_c", "a__b_c"]);
        let back = names(&["a__b_c", "a.b_c", "a.b/c"]);
        assert_eq!(there.iter().rev().collect::<Vec<_>>(), back.iter().collect::<Vec<_>>());
        assert_eq!(there[2], "a__b_c");
        assert!(
            there[0].starts_with("a__b_c_") && there[1].starts_with("a__b_c_") && there[0] != there[1],
            "{there:?}"
        );
    }

    #[test]
    fn an_unavailable_tool_is_left_out_and_a_starting_one_is_not() {
        let mut tools = native();
        tools[0].state = ToolState::Unavailable;
        tools[1].state = ToolState::Starting;
        let formatted = format(ToolsFormat::Messages, &tools);
        assert_eq!(formatted.definitions.len(), tools.len() - 1);
        assert_eq!(formatted.definitions[0]["name"], "read_file");
    }

    #[test]
    fn a_tool_without_parameters_has_an_empty_object() {
        let mut tool = native().remove(0);
        (tool.name, tool.input_schema) = ("x.y".into(), json!({}));
        let formatted = format(ToolsFormat::Chat, &[tool]);
        assert_eq!(formatted.definitions[0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
        assert_eq!(formatted.names, BTreeMap::from([("x__y".into(), "x.y".into())]));
    }

    #[test]
    fn the_lists_are_those_in_the_repository() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/lists.jsonl");
        let mut foreign = native().remove(0);
        (foreign.name, foreign.provider) = ("linear.create-issue".into(), "linear".into());
        (foreign.description, foreign.output_schema) = ("Create an issue.".into(), None);
        foreign.input_schema =
            json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
        let enabled = [native(), vec![foreign]].concat();
        let in_scripts: Vec<String> = native().into_iter().map(|tool| tool.name).collect();
        let mut now = String::new();
        for set in [Toolset::Toold, Toolset::Hermes, Toolset::Codex] {
            let tools = toolset(set, &enabled, &in_scripts);
            tools.iter().for_each(|tool| {
                now.push_str(&format!("{}\n", json!({"toolset": set, "format": "json", "tool": tool})))
            });
            for form in [ToolsFormat::Responses, ToolsFormat::Chat, ToolsFormat::Messages, ToolsFormat::Mcp] {
                let Formatted { definitions, names } = format(form, &tools);
                for tool in definitions {
                    now.push_str(&format!("{}\n", json!({"toolset": set, "format": form, "tool": tool})));
                }
                now.push_str(&format!("{}\n", json!({"toolset": set, "format": form, "names": names})));
            }
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &now).expect("the repository is writable");
        }
        let golden = std::fs::read_to_string(path).unwrap_or_default();
        assert!(golden == now, "the lists changed: review the difference, then run with UPDATE_GOLDEN=1");
    }

    proptest! {
        #[test]
        fn every_set_of_names_gets_distinct_valid_names(list in prop::collection::hash_set("[a-c][a-c._/-]{0,3}|x{60,80}", 1..20)) {
            let given = api_names(list.iter().map(String::as_str));
            let distinct: std::collections::HashSet<&String> = given.iter().collect();
            prop_assert_eq!(distinct.len(), list.len());
            for name in &given {
                prop_assert!(!name.is_empty() && name.len() <= MAX_API_NAME_LEN);
                prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
            }
        }
    }
}
