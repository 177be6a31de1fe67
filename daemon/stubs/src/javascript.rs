//! The JavaScript stub: a function per tool behind the fixed part of `index.mjs`, and the types of all of them.

use crate::identifier::{importable, member, split};
use crate::schema::{Parameter, Parameters, Type, kind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use toold_proto::tools::Tool;

const HEAD: &str = include_str!("../javascript/index.mjs");
const DECLARATIONS: &str = include_str!("../javascript/index.d.ts");

/// Tools by the names that a script imports. Of names that collide the first is taken.
struct Names<'a> {
    native: Vec<(String, &'a Tool)>,
    providers: Vec<Provider<'a>>,
}

struct Provider<'a> {
    identifier: String,
    name: &'a str,
    tools: Vec<(String, &'a Tool)>,
}

impl<'a> Names<'a> {
    fn new(tools: &'a [Tool]) -> Names<'a> {
        let mut names = Names { native: Vec::new(), providers: Vec::new() };
        let mut taken = BTreeSet::new();
        for tool in tools.iter().filter(|tool| split(&tool.name).0.is_none()) {
            let name = importable(&tool.name);
            if taken.insert(name.clone()) {
                names.native.push((name, tool));
            }
        }
        for tool in tools {
            let (Some(provider), rest) = split(&tool.name) else { continue };
            let known = names.providers.iter().position(|known| known.name == provider);
            let at = match known {
                Some(at) => at,
                None if taken.insert(importable(provider)) => {
                    let identifier = importable(provider);
                    names.providers.push(Provider { identifier, name: provider, tools: Vec::new() });
                    names.providers.len() - 1
                }
                None => continue,
            };
            let list = &mut names.providers[at].tools;
            if !list.iter().any(|(name, _)| *name == member(rest)) {
                list.push((member(rest), tool));
            }
        }
        names
    }

    /// Lists what the object `tools` has.
    fn members(&self) -> Vec<&str> {
        let native = self.native.iter().map(|(name, _)| name.as_str());
        native.chain(self.providers.iter().map(|provider| provider.identifier.as_str())).collect()
    }
}

/// Generates `index.mjs` of the package `toold`.
pub fn javascript_module(tools: &[Tool]) -> String {
    let names = Names::new(tools);
    let mut text = String::from(HEAD);
    text.push('\n');
    for (name, tool) in &names.native {
        let _ = writeln!(text, "export const {name} = {};", expression(tool));
    }
    for provider in &names.providers {
        let path = quoted(&format!("{}.", provider.name));
        let _ = writeln!(text, "export const {} = namespace({path}, {{", provider.identifier);
        for (inner, tool) in &provider.tools {
            let _ = writeln!(text, "  {inner}: {},", expression(tool));
        }
        text += "});\n";
    }
    let _ = writeln!(text, "export const tools = namespace(\"\", {{ {} }});", names.members().join(", "));
    text
}

fn expression(tool: &Tool) -> String {
    let name = quoted(&tool.name);
    match Parameters::new(&tool.input_schema).list.first() {
        Some(first) => format!("tool({name}, {})", quoted(&first.name)),
        None => format!("tool({name})"),
    }
}

/// Generates `index.d.ts`, the types of the package.
pub fn javascript_declarations(tools: &[Tool]) -> String {
    let names = Names::new(tools);
    let mut text = String::from(DECLARATIONS);
    text.push('\n');
    for (name, tool) in &names.native {
        let _ = writeln!(text, "{}export const {name}: {};", comment(tool, ""), function_type(tool));
    }
    for provider in &names.providers {
        let _ = writeln!(text, "export const {}: {{", provider.identifier);
        for (inner, tool) in &provider.tools {
            let _ = writeln!(text, "{}  {inner}: {};", comment(tool, "  "), function_type(tool));
        }
        text += "};\n";
    }
    text += "export const tools: {\n";
    for name in names.members() {
        let _ = writeln!(text, "  {name}: typeof {name};");
    }
    text + "};\n"
}

/// Returns the signature of a tool: `terminal(args: { command: string; timeout?: number | null }): Promise<any>`.
pub fn javascript_signature(tool: &Tool) -> String {
    let parameters = Parameters::new(&tool.input_schema);
    let optional = if parameters.list.iter().any(|parameter| parameter.required) { "" } else { "?" };
    let name = crate::identifier(&tool.name);
    format!("{name}(args{optional}: {}): Promise<{}>", arguments(&parameters), result(tool))
}

fn function_type(tool: &Tool) -> String {
    let parameters = Parameters::new(&tool.input_schema);
    let all = arguments(&parameters);
    let optional = if parameters.list.iter().any(|parameter| parameter.required) { "" } else { " | void" };
    let first = match parameters.list.first() {
        // An object is taken for the arguments themselves.
        Some(first) if !matches!(first.kind, Type::Object | Type::Any) => {
            format!(", {}", annotation(&first.kind, false))
        }
        Some(_) | None => String::new(),
    };
    format!("ToolFunction<{all}{optional}, {}{first}>", result(tool))
}

fn arguments(parameters: &Parameters) -> String {
    let mut list: Vec<String> = parameters.list.iter().map(property).collect();
    if parameters.open {
        list.push("[more: string]: unknown".into());
    }
    if list.is_empty() { "{}".into() } else { format!("{{ {} }}", list.join("; ")) }
}

fn property(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let key = if is_plain && !name.starts_with(|c: char| c.is_ascii_digit()) { name.clone() } else { quoted(name) };
    let optional = if parameter.required { "" } else { "?" };
    format!("{key}{optional}: {}", annotation(&parameter.kind, parameter.nullable))
}

fn result(tool: &Tool) -> String {
    match tool.output_schema.as_ref().map(|schema| kind(schema, schema)) {
        Some((found, nullable)) if !matches!(found, Type::Object | Type::Any) => annotation(&found, nullable),
        // The fields of a result are in its documentation; `any` lets a script use them.
        Some(_) | None => "any".into(),
    }
}

fn annotation(kind: &Type, nullable: bool) -> String {
    let name = match kind {
        Type::Any => return "unknown".into(),
        Type::String => "string".into(),
        Type::Integer | Type::Number => "number".into(),
        Type::Boolean => "boolean".into(),
        Type::Array(items) => format!("Array<{}>", annotation(items, false)),
        Type::Object => "Record<string, unknown>".into(),
        Type::Literal(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | "),
    };
    if nullable { format!("{name} | null") } else { name }
}

fn comment(tool: &Tool, indent: &str) -> String {
    let text = tool.description.trim().replace("*/", "* /");
    let mut found = format!("{indent}/**\n");
    for line in text.lines() {
        let _ = writeln!(found, "{indent} * {line}");
    }
    for parameter in Parameters::new(&tool.input_schema).list {
        if let Some(description) = &parameter.description {
            let description = description.trim().replace("*/", "* /").replace('\n', " ");
            let _ = writeln!(found, "{indent} * @param args.{} {description}", parameter.name);
        }
    }
    found + indent + " */\n"
}

/// Returns a string as JavaScript writes it: JSON is a part of it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
