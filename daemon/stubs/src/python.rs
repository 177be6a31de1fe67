//! The Python stub: a function per tool, behind the fixed part of `toold_tools.py`.

use crate::identifier::{importable, member, split};
use crate::schema::{Parameter, Parameters, Type, kind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use toold_proto::tools::{Effect, Tool, ToolState};

const HEAD: &str = include_str!("../python/toold_tools.py");

/// Generates `toold_tools.py`. Of names that collide the first is taken.
pub fn python_module(tools: &[Tool]) -> String {
    let mut text = String::from(HEAD);
    let mut names = BTreeSet::new();
    for tool in tools.iter().filter(|tool| split(&tool.name).0.is_none()) {
        let name = importable(&tool.name);
        if names.insert(name.clone()) {
            let _ = write!(text, "\n\n{}\n\ntools.{name} = {name}\n", function(tool, &name, ""));
        }
    }
    let mut providers: Vec<&str> = Vec::new();
    for provider in tools.iter().filter_map(|tool| split(&tool.name).0) {
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    for provider in providers {
        let name = importable(provider);
        if names.insert(name.clone()) {
            text += &namespace(tools, provider, &name);
        }
    }
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let _ = write!(text, "\n\n__all__ += [{}]\n", names.join(", "));
    text
}

/// Generates the functions of a provider. They are local to a function, so that they hide no other's.
fn namespace(tools: &[Tool], provider: &str, name: &str) -> String {
    let mut text = format!("\n\ndef _provider_{name}():\n");
    let mut taken = BTreeSet::new();
    for tool in tools {
        let (Some(own), rest) = split(&tool.name) else { continue };
        let inner = member(rest);
        if own == provider && taken.insert(inner.clone()) {
            let _ = write!(text, "{}\n\n", function(tool, &inner, "    "));
        }
    }
    let _ = write!(
        text,
        "    return locals()\n\n\n{name} = tools.{name} = _Namespace({}, _provider_{name}())\n",
        quoted(&format!("{provider}."))
    );
    text
}

fn function(tool: &Tool, name: &str, indent: &str) -> String {
    let parameters = Parameters::new(&tool.input_schema);
    let mut facts = vec![quoted(&tool.name)];
    let required: Vec<String> = parameters.list.iter().filter(|p| p.required).map(|p| quoted(&p.identifier)).collect();
    if !required.is_empty() {
        facts.push(format!("({},)", required.join(", ")));
    }
    let renamed: Vec<String> = parameters
        .list
        .iter()
        .filter(|p| p.name != p.identifier)
        .map(|p| format!("{}: {}", quoted(&p.identifier), quoted(&p.name)))
        .collect();
    if !renamed.is_empty() {
        facts.push(format!("renamed={{{}}}", renamed.join(", ")));
    }
    if parameters.names("timeout") {
        facts.push("timed=False".into());
    }
    if let Some(more) = rest_name(&parameters) {
        facts.push(format!("more={}", quoted(&more)));
    }
    format!(
        "{indent}@_tool({})\n{indent}def {}:\n{indent}    {}\n{indent}    return locals()",
        facts.join(", "),
        header(name, tool, &parameters, quoted),
        docstring(&documentation(tool, &parameters), indent)
    )
}

/// Returns the name of the parameter that collects arguments which the schema does not name.
fn rest_name(parameters: &Parameters) -> Option<String> {
    let mut name = String::from("more");
    while parameters.names(&name) {
        name.push('_');
    }
    parameters.open.then_some(name)
}

/// Returns the signature of a tool: `terminal(command: str, timeout: Optional[float] = None) -> dict`.
pub fn python_signature(tool: &Tool) -> String {
    let name = crate::identifier(&tool.name);
    header(&name, tool, &Parameters::new(&tool.input_schema), str::to_string)
}

/// Writes a signature, each annotation as `note` shows it: in a module it is a string, so that nothing is imported for it.
fn header(name: &str, tool: &Tool, parameters: &Parameters, note: fn(&str) -> String) -> String {
    let mut list: Vec<String> = parameters.list.iter().map(|parameter| declaration(parameter, note)).collect();
    if !parameters.names("timeout") {
        list.push("*".into());
        list.push(format!("timeout: {} = None", note("Optional[float]")));
    }
    if let Some(more) = rest_name(parameters) {
        list.push(format!("**{more}: {}", note("Any")));
    }
    let result = match &tool.output_schema {
        Some(schema) => match kind(schema, schema) {
            (Type::Any, _) => "Any".to_string(),
            (found, nullable) => annotation(&found, nullable),
        },
        None => "dict".to_string(),
    };
    format!("{name}({}) -> {}", list.join(", "), note(&result))
}

fn declaration(parameter: &Parameter, note: fn(&str) -> String) -> String {
    let name = &parameter.identifier;
    if parameter.required {
        return format!("{name}: {}", note(&annotation(&parameter.kind, parameter.nullable)));
    }
    // A list or an object as a default would be shared by all calls; the daemon knows the default anyway.
    match parameter.default.as_ref().filter(|value| !value.is_array() && !value.is_object()) {
        Some(value) => {
            format!("{name}: {} = {}", note(&annotation(&parameter.kind, parameter.nullable)), literal(value))
        }
        None => format!("{name}: {} = None", note(&annotation(&parameter.kind, true))),
    }
}

fn annotation(kind: &Type, nullable: bool) -> String {
    let name = match kind {
        Type::Any => return "Any".into(),
        Type::String => "str".into(),
        Type::Integer => "int".into(),
        Type::Number => "float".into(),
        Type::Boolean => "bool".into(),
        Type::Array(_) => "list".into(),
        Type::Object => "dict".into(),
        Type::Literal(values) => {
            format!("Literal[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
    };
    if nullable { format!("Optional[{name}]") } else { name }
}

/// Returns a value that is not a list or an object as Python writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::String(text) => quoted(text),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => "None".into(),
    }
}

/// Returns a string as Python writes it. JSON's escapes are Python's, but for those of pairs of surrogates, which
/// `serde_json` does not write, and of `\/`.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn documentation(tool: &Tool, parameters: &Parameters) -> String {
    let mut text = tool.description.trim().to_string();
    if tool.state == ToolState::Unavailable {
        let _ = write!(text, "\n\nUnavailable: {}", tool.why.as_deref().unwrap_or("no reason given"));
    }
    let described: Vec<String> = parameters
        .list
        .iter()
        .filter_map(|p| Some(format!("    {}: {}", p.identifier, p.description.as_ref()?.trim().replace('\n', " "))))
        .collect();
    if !described.is_empty() {
        let _ = write!(text, "\n\nArgs:\n{}", described.join("\n"));
    }
    let keys = tool.output_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    if let Some(keys) = keys.filter(|keys| !keys.is_empty()) {
        let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
        let _ = write!(text, "\n\nReturns a dict: {}.", keys.join(", "));
    }
    let effect = match tool.effect {
        Effect::Read => "changes nothing",
        Effect::Write => "changes state",
        Effect::Exec => "runs programs",
        Effect::Network => "uses the network",
    };
    let _ = write!(text, "\n\nTool {}: {effect}.", tool.name);
    text
}

/// Returns a docstring literal, lines after the first indented as far as the function's body.
fn docstring(text: &str, indent: &str) -> String {
    let mut found = String::from("\"\"\"");
    for (i, line) in text.lines().enumerate() {
        if i > 0 {
            found.push('\n');
            if !line.is_empty() {
                found += indent;
                found += "    ";
            }
        }
        for c in line.chars() {
            match c {
                '\\' => found += "\\\\",
                '"' => found += "\\\"",
                '\t' => found.push(' '),
                c if c.is_control() => {
                    let _ = write!(found, "\\u{:04x}", c as u32);
                }
                c => found.push(c),
            }
        }
    }
    found + "\"\"\""
}
