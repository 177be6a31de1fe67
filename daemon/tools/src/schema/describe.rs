//! Expectations of a schema in English, for the messages of a check.

use serde_json::Value;

/// Characters of a list of values in a message.
const MAX_LIST_LEN: usize = 400;
/// Alternatives of a schema that are described.
const MAX_ALTERNATIVES: usize = 8;

/// Describes the values that a schema accepts, in short: `a string or null`. None: its keywords give no short description.
pub fn describe(schema: &Value) -> Option<String> {
    describe_to(schema, 3)
}

fn describe_to(schema: &Value, depth: usize) -> Option<String> {
    let choices = |name: &str| schema.get(name).and_then(Value::as_array).filter(|list| list.len() <= MAX_ALTERNATIVES);
    if let Some(values) = choices("enum") {
        return Some(list(values));
    }
    if let Some(value) = schema.get("const") {
        return Some(list(std::slice::from_ref(value)));
    }
    let parts: Vec<String> = match (schema.get("type"), choices("anyOf").or(choices("oneOf"))) {
        (Some(Value::String(name)), _) => vec![type_name(name)],
        (Some(Value::Array(names)), _) => names.iter().take(7).filter_map(Value::as_str).map(type_name).collect(),
        (_, Some(alternatives)) if depth > 0 => {
            alternatives.iter().map(|schema| describe_to(schema, depth - 1)).collect::<Option<_>>()?
        }
        _ => Vec::new(),
    };
    let mut distinct: Vec<String> = Vec::new();
    distinct.extend(schema.get("nullable").filter(|nullable| **nullable == Value::Bool(true)).map(|_| "null".into()));
    for part in parts.into_iter().rev() {
        if !distinct.contains(&part) {
            distinct.insert(0, part);
        }
    }
    (!distinct.is_empty()).then(|| distinct.join(" or "))
}

/// Lists values as JSON: `"a"`, or `one of "a", "b"`.
pub fn list(values: &[Value]) -> String {
    let mut text = String::from(if values.len() == 1 { "" } else { "one of " });
    for (i, value) in values.iter().enumerate() {
        let value = value.to_string();
        if text.len() + value.len() > MAX_LIST_LEN {
            text.push_str(if i == 0 { "a certain value" } else { ", …" });
            break;
        }
        text.push_str(if i == 0 { "" } else { ", " });
        text.push_str(&value);
    }
    text
}

/// Returns the type of a value, with its article.
pub fn article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn type_name(name: &str) -> String {
    match name {
        "null" => "null".into(),
        "integer" | "array" | "object" => format!("an {name}"),
        other => format!("a {other}"),
    }
}
