//! Arguments of a tool as they are typed: `key=value`, `key=@file`, `key:=json`. Pure but for the file.

use serde_json::Value;
use std::path::PathBuf;

/// One argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub key: String,
    pub source: ArgumentSource,
}

/// The place that an argument has its value from.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentSource {
    Text(String),
    File(PathBuf),
    Json(Value),
}

/// Parses one argument of the command line.
pub fn parse(typed: &str) -> Result<Given, String> {
    let wrong = || format!("`{typed}` is not KEY=VALUE, KEY=@FILE or KEY:=JSON");
    let (key, value) = typed.split_once('=').ok_or_else(wrong)?;
    let (key, source) = match (key.strip_suffix(':'), value.strip_prefix('@')) {
        (Some(key), _) => {
            let value = serde_json::from_str(value).map_err(|e| format!("`{typed}`: this is not JSON: {e}"))?;
            (key, ArgumentSource::Json(value))
        }
        (None, Some(path)) => (key, ArgumentSource::File(path.into())),
        (None, None) => (key, ArgumentSource::Text(value.into())),
    };
    if key.is_empty() {
        return Err(wrong());
    }
    Ok(Given { key: key.into(), source })
}

/// Returns the value of an argument, of the type that the schema of the tool has for it.
pub fn value(key: &str, source: ArgumentSource, schema: Option<&Value>) -> Result<Value, String> {
    let text = match source {
        ArgumentSource::Json(value) => return Ok(value),
        ArgumentSource::Text(text) => text,
        ArgumentSource::File(path) => {
            std::fs::read_to_string(&path).map_err(|e| format!("{key}=@{}: {e}", path.display()))?
        }
    };
    let property = schema.and_then(|schema| schema.get("properties")?.get(key));
    // The daemon refuses a name that the tool does not have, and names those it has.
    let Some(property) = property else { return Ok(Value::String(text)) };
    let types = types(property);
    if types.contains(&"string") {
        return Ok(Value::String(text));
    }
    let read = serde_json::from_str::<Value>(text.trim()).ok();
    match read {
        Some(value) if types.is_empty() || types.iter().any(|name| is_of(&value, name)) => Ok(value),
        None if types.is_empty() => Ok(Value::String(text)),
        Some(_) | None => Err(format!("{key}: expected {}, got `{text}`", types.join(" or "))),
    }
}

/// Returns the names of the types that a schema allows. None: any, or a form that is not read here.
fn types(schema: &Value) -> Vec<&str> {
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let mut found: Vec<&str> = alternatives.flat_map(types).collect();
    match schema.get("type") {
        Some(Value::String(name)) => found.push(name),
        Some(Value::Array(names)) => found.extend(names.iter().filter_map(Value::as_str)),
        Some(_) | None => {}
    }
    let literals = schema.get("enum").and_then(Value::as_array);
    if found.is_empty() && literals.is_some_and(|all| all.iter().all(Value::is_string)) {
        found.push("string");
    }
    found
}

fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && number.is_i64() | number.is_u64(),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed(line: &str) -> Result<Value, String> {
        let schema = json!({"type": "object", "properties": {
            "text": {"type": "string"}, "mode": {"enum": ["a", "b"]}, "n": {"type": "integer"}, "x": {"type": "number"},
            "flag": {"type": "boolean"}, "list": {"type": "array"}, "object": {"type": "object"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "label": {"type": ["string", "null"]}, "any": {}
        }});
        let Given { key, source } = parse(line)?;
        value(&key, source, Some(&schema))
    }

    #[test]
    fn a_value_has_the_type_of_the_schema() {
        for (line, expected) in [
            ("text=7", json!("7")),
            ("text=a=b", json!("a=b")),
            ("text=", json!("")),
            ("mode=a", json!("a")),
            ("n=7", json!(7)),
            ("x=0.5", json!(0.5)),
            ("flag=true", json!(true)),
            ("list=[\"a\"]", json!(["a"])),
            ("object={\"a\":1}", json!({"a": 1})),
            ("maybe=3", json!(3)),
            ("maybe=null", json!(null)),
            ("label=null", json!("null")),
            ("any=7", json!(7)),
            ("any=seven", json!("seven")),
            ("unknown=7", json!("7")),
            ("text:=7", json!(7)),
        ] {
            assert_eq!(typed(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn a_value_of_another_type_and_an_argument_without_a_key_are_refused() {
        assert_eq!(typed("n=seven"), Err("n: expected integer, got `seven`".into()));
        assert_eq!(typed("n=0.5"), Err("n: expected integer, got `0.5`".into()));
        assert_eq!(typed("list=a"), Err("list: expected array, got `a`".into()));
        assert_eq!(typed("maybe=x"), Err("maybe: expected integer or null, got `x`".into()));
        for line in ["text", "=x", ":=1"] {
            assert!(typed(line).is_err_and(|why| why.contains("is not KEY=VALUE")), "{line}");
        }
        assert!(typed("n:=x").is_err_and(|why| why.contains("not JSON")));
    }

    #[test]
    fn a_file_gives_its_content() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "7\n").expect("it can be written");
        assert_eq!(typed(&format!("text=@{}", file.path().display())), Ok(json!("7\n")));
        assert_eq!(typed(&format!("n=@{}", file.path().display())), Ok(json!(7)));
        assert!(typed("text=@/no/such").is_err_and(|why| why.starts_with("text=@/no/such: ")));
    }
}
