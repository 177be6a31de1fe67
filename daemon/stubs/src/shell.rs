//! Signatures for the shell: a command line of `toolctl tool`.

use crate::schema::{Parameters, Type};
use serde_json::Value;
use toold_proto::tools::Tool;

/// Returns a call in a shell: `toolctl tool NAME key=value …`, optional arguments in brackets.
pub fn shell_signature(tool: &Tool) -> String {
    let mut found = format!("toolctl tool {}", tool.name);
    for parameter in Parameters::new(&tool.input_schema).list {
        let value = match (&parameter.kind, &parameter.default) {
            (Type::Literal(values), _) => values.iter().map(text).collect::<Vec<_>>().join("|"),
            (_, Some(default)) => text(default),
            (Type::String, _) => "TEXT".into(),
            (Type::Integer | Type::Number, _) => "N".into(),
            (Type::Boolean, _) => "true|false".into(),
            (Type::Array(_) | Type::Object | Type::Any, _) => "JSON".into(),
        };
        let pair = format!("{}={value}", parameter.name);
        found += &if parameter.required { format!(" {pair}") } else { format!(" [{pair}]") };
    }
    found
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
