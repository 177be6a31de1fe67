//! Checks the definitions of tools that other programs offer: names, schemas, sizes, and names that a script cannot distinguish.

use crate::identifier::identifier;
use crate::native::{NATIVE_PROVIDER, is_native};
use crate::schema::resolve;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// Characters of a tool's name, as MCP has it.
pub const MAX_NAME_LEN: usize = 128;
/// Characters of a provider's name.
pub const MAX_PROVIDER_LEN: usize = 64;
/// Bytes of a description. A model reads all of it in every turn.
pub const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// Bytes of a schema as JSON.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Levels of a schema as JSON.
pub const MAX_SCHEMA_LEVELS: usize = 100;
/// Tools of one provider.
pub const MAX_PROVIDER_TOOLS: usize = 1024;

/// A tool as its provider describes it.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    pub name: &'a str,
    pub description: &'a str,
    pub input_schema: &'a Value,
    pub output_schema: Option<&'a Value>,
}

/// The reason why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinitionError {
    Provider {
        provider: String,
        problem: String,
    },
    Tool {
        name: String,
        problem: String,
    },
    /// Two tools that a script could not distinguish.
    SameIdentifier {
        first: String,
        second: String,
        identifier: String,
    },
    TooMany {
        tools: usize,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefinitionError::Provider { provider, problem } => write!(f, "provider {provider:?}: {problem}"),
            DefinitionError::Tool { name, problem } => write!(f, "tool {name:?}: {problem}"),
            DefinitionError::SameIdentifier { first, second, identifier } if first == second => {
                write!(f, "tool {first:?} is there twice, as {identifier}; remove one")
            }
            DefinitionError::SameIdentifier { first, second, identifier } => {
                write!(f, "tools {first:?} and {second:?} are both {identifier} in a script; rename one")
            }
            DefinitionError::TooMany { tools } => {
                write!(f, "{tools} tools; a provider has at most {MAX_PROVIDER_TOOLS}")
            }
        }
    }
}

impl std::error::Error for DefinitionError {}

/// Checks the name of a provider: `[a-z][a-z0-9_-]*`, not `native`, and not the name of a native tool in a script.
pub fn check_provider(provider: &str) -> Result<(), DefinitionError> {
    let refuse =
        |problem: &str| Err(DefinitionError::Provider { provider: shorten(provider), problem: problem.into() });
    if !provider.starts_with(|c: char| c.is_ascii_lowercase())
        || !provider.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
    {
        return refuse("a name has lower-case letters, digits, `_` and `-`, and begins with a letter");
    }
    if provider.len() > MAX_PROVIDER_LEN {
        return refuse("the name has more than 64 characters");
    }
    if provider == NATIVE_PROVIDER || is_native(&identifier(provider)) {
        return refuse("the name belongs to native tools; choose another one");
    }
    Ok(())
}

/// Checks all tools of a provider, and that a script can distinguish them.
pub fn check_definitions<'a>(definitions: impl IntoIterator<Item = Definition<'a>>) -> Result<(), DefinitionError> {
    let mut names: HashMap<String, &str> = HashMap::new();
    let mut tools = 0;
    for definition in definitions {
        tools += 1;
        check_definition(&definition)?;
        let identifier = identifier(definition.name);
        if let Some(first) = names.insert(identifier.clone(), definition.name) {
            let (first, second) = (first.into(), definition.name.into());
            return Err(DefinitionError::SameIdentifier { first, second, identifier });
        }
    }
    if tools > MAX_PROVIDER_TOOLS { Err(DefinitionError::TooMany { tools }) } else { Ok(()) }
}

/// Checks one tool by itself.
pub fn check_definition(definition: &Definition<'_>) -> Result<(), DefinitionError> {
    let refuse = |problem: String| Err(DefinitionError::Tool { name: shorten(definition.name), problem });
    let name = definition.name;
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
    {
        return refuse(
            "a name has letters, digits, `_`, `-`, `.` and `/`, and begins with a letter, a digit or `_`".into(),
        );
    }
    if name.len() > MAX_NAME_LEN {
        return refuse(format!("the name has more than {MAX_NAME_LEN} characters"));
    }
    if definition.description.len() > MAX_DESCRIPTION_BYTES {
        return refuse(format!("the description has more than {MAX_DESCRIPTION_BYTES} bytes"));
    }
    let schemas = [("input_schema", Some(definition.input_schema)), ("output_schema", definition.output_schema)];
    for (field, schema) in schemas {
        if let Some(Err(problem)) = schema.map(check_object_schema) {
            return refuse(format!("{field}: {problem}"));
        }
    }
    Ok(())
}

/// Checks that a schema is one of objects, within bounds, and that its local references lead somewhere.
fn check_object_schema(schema: &Value) -> Result<(), String> {
    match schema.as_object().map(|keywords| keywords.get("type")) {
        None => return Err("expected a schema of objects: {\"type\": \"object\", …}".into()),
        Some(Some(kind)) if kind != "object" => {
            return Err(format!("expected \"type\": \"object\", got {}", shorten(&kind.to_string())));
        }
        Some(_) => {}
    }
    let mut bytes = 0;
    let mut open = vec![(schema, 1)];
    while let Some((value, level)) = open.pop() {
        bytes += match value {
            Value::String(text) => text.len() + 2,
            Value::Object(members) => members.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
            Value::Array(_) | Value::Number(_) | Value::Bool(_) | Value::Null => 4,
        };
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!("the schema has more than {MAX_SCHEMA_BYTES} bytes"));
        }
        if level > MAX_SCHEMA_LEVELS {
            return Err(format!("the schema has more than {MAX_SCHEMA_LEVELS} levels"));
        }
        match value {
            Value::Object(members) => {
                // A property may have this name too; then its value is a schema, not a text.
                if let Some(reference) = members.get("$ref").and_then(Value::as_str)
                    && reference.starts_with("#/")
                    && resolve(schema, reference).is_none()
                {
                    return Err(format!("the reference {} leads nowhere", shorten(reference)));
                }
                open.extend(members.values().map(|member| (member, level + 1)));
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
    Ok(())
}

/// Returns the beginning of a foreign text, for a message.
fn shorten(text: &str) -> String {
    text.chars().take(MAX_NAME_LEN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::native;
    use serde_json::json;

    fn named<'a>(name: &'a str, schema: &'a Value) -> Definition<'a> {
        Definition { name, description: "", input_schema: schema, output_schema: None }
    }

    fn problem(name: &str, schema: Value) -> String {
        check_definition(&named(name, &schema)).expect_err("it is refused").to_string()
    }

    #[test]
    fn native_tools_and_names_of_mcp_are_accepted() {
        for tool in native() {
            let definition = Definition {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
                output_schema: tool.output_schema.as_ref(),
            };
            assert_eq!(check_definition(&definition), Ok(()));
        }
        let schema = json!({"type": "object"});
        for name in ["createIssue", "create-issue", "admin.tools.list", "2fa", "_x", "a/b"] {
            assert_eq!(check_definition(&named(name, &schema)), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_a_wire_or_a_shell_could_misread_are_refused() {
        for name in ["", "a b", "-rf", "../x", "naïve", "a\nb", &"x".repeat(129)] {
            assert!(problem(name, json!({"type": "object"})).contains("name has"), "{name}");
        }
    }

    #[test]
    fn a_schema_that_is_not_one_of_objects_is_refused_with_the_field() {
        assert_eq!(
            problem("a", json!({"type": "array"})),
            "tool \"a\": input_schema: expected \"type\": \"object\", got \"array\""
        );
        assert!(problem("a", json!(true)).contains("expected a schema of objects"));
        let reference = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/gone"}}});
        assert_eq!(problem("a", reference), "tool \"a\": input_schema: the reference #/$defs/gone leads nowhere");
    }

    #[test]
    fn sizes_are_bounded() {
        let mut deep = json!({});
        for _ in 0..MAX_SCHEMA_LEVELS {
            deep = json!({"not": deep});
        }
        deep["type"] = json!("object");
        assert!(problem("a", deep).contains("levels"));
        let large = json!({"type": "object", "description": "x".repeat(MAX_SCHEMA_BYTES)});
        assert!(problem("a", large).contains("bytes"));
    }

    #[test]
    fn two_names_with_one_identifier_are_refused_and_both_are_named() {
        let schema = json!({"type": "object"});
        let both = [named("create-issue", &schema), named("create_issue", &schema)];
        assert_eq!(
            check_definitions(both).expect_err("they are refused").to_string(),
            "tools \"create-issue\" and \"create_issue\" are both create_issue in a script; rename one"
        );
        assert_eq!(check_definitions([named("createIssue", &schema), named("create_issue", &schema)]), Ok(()));
    }

    #[test]
    fn a_provider_cannot_take_a_native_name() {
        for name in ["native", "terminal", "read-file", "read_file", "Linear", "", "a.b", "9x"] {
            assert!(check_provider(name).is_err(), "{name}");
        }
        for name in ["linear", "my-server", "db_2"] {
            assert_eq!(check_provider(name), Ok(()), "{name}");
        }
    }
}
