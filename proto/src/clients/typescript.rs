//! The types and the methods of the TypeScript client.

use super::HEADER;
use super::model::{ClientMethod, Definition, Field, Model, Shape, Type, camel, is_nullable, one_line};
use crate::repeatable::Repeat;

/// Parameters that take a process in place of its id.
const IDS: [&str; 3] = ["id", "ids", "after"];

/// The names that the package exports beside the kinds of errors.
const OWN_NAMES: [&str; 11] = [
    "CalledProcessError",
    "ConnectionLost",
    "DaemonUnreachable",
    "Event",
    "OutputLost",
    "Process",
    "RpcError",
    "Subscription",
    "Toold",
    "TooldError",
    "WaitTimeout",
];

fn annotation(kind: &Type) -> String {
    match kind {
        Type::Any => "unknown".into(),
        Type::Null => "null".into(),
        Type::Bool => "boolean".into(),
        Type::Integer | Type::Number => "number".into(),
        Type::Text => "string".into(),
        Type::Literals(values) => values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(" | "),
        Type::Named(name) => name.clone(),
        Type::List(item) if matches!(**item, Type::Union(_) | Type::Literals(_)) => {
            format!("Array<{}>", annotation(item))
        }
        Type::List(item) => format!("{}[]", annotation(item)),
        Type::Map(value) => format!("Record<string, {}>", annotation(value)),
        Type::Union(parts) => parts.iter().map(annotation).collect::<Vec<_>>().join(" | "),
    }
}

fn header(subject: &str) -> String {
    format!("// {subject}\n// {HEADER}\n")
}

/// `types.d.ts`: parameters' parts, results and events.
pub fn types(model: &Model) -> String {
    let mut out = header("The types of parameters, results and events.");
    for definition in &model.definitions {
        out += &definition_text(definition);
    }
    for method in model.methods.iter().filter(|m| !m.params.is_empty()) {
        let optional = |field: &Field| !field.required;
        out += &format!("\n/** The parameters of `{}`. */\nexport interface {} {{\n", method.wire, params_name(method));
        for param in &method.params {
            out += &doc(&param.doc, "  ");
            let mark = if optional(param) { "?" } else { "" };
            out += &format!("  {}{mark}: {};\n", param.name, param_type(method, param));
        }
        out += "}\n";
    }
    out
}

fn params_name(method: &ClientMethod) -> String {
    format!("{}Params", method.wire.split('.').map(camel).collect::<String>())
}

fn param_type(method: &ClientMethod, param: &Field) -> String {
    let own = annotation(&param.kind);
    match (method.wire.as_str(), param.name.as_str()) {
        ("events.unsubscribe", "subscription") => "number | { readonly subscription: number }".into(),
        (_, name) if IDS.contains(&name) => match &param.kind {
            Type::List(_) => "Array<string | { readonly id: string }>".into(),
            Type::Union(parts) if parts.iter().any(|part| matches!(part, Type::List(_))) => {
                "Array<string | { readonly id: string }> | null".into()
            }
            kind if is_nullable(kind) => "string | { readonly id: string } | null".into(),
            _ => "string | { readonly id: string }".into(),
        },
        _ => own,
    }
}

fn definition_text(definition: &Definition) -> String {
    let Definition { name, doc: about, shape } = definition;
    let about = doc(about, "");
    match shape {
        Shape::Alias(kind) => format!("\n{about}export type {name} = {};\n", annotation(kind)),
        Shape::Object { base, fields } => {
            let extends = base.as_ref().map(|base| format!(" extends {base}")).unwrap_or_default();
            let fields: String = fields.iter().map(field).collect();
            format!("\n{about}export interface {name}{extends} {{\n{fields}}}\n")
        }
    }
}

fn field(field: &Field) -> String {
    let mark = if field.required { "" } else { "?" };
    format!("{}  {}{mark}: {};\n", doc(&field.doc, "  "), field.name, annotation(&field.kind))
}

fn doc(text: &str, indent: &str) -> String {
    match one_line(text) {
        text if text.is_empty() => text,
        text => format!("{indent}/** {} */\n", text.replace("*/", "* /")),
    }
}

/// `methods.d.ts`: one method for each method of the daemon.
pub fn methods(model: &Model) -> String {
    let mut out = header("One method for each method of the daemon.");
    out += "import type * as types from \"./types\";\n";
    out += "import type { CallOptions, Process, Subscription, ToolInvoker } from \"./index\";\n";
    out += "\nexport interface Methods {\n";
    for method in &model.methods {
        out += &signature(model, method);
    }
    out + "}\n"
}

/// `kinds.d.ts`: a class of errors for each kind.
pub fn kinds(model: &Model) -> String {
    let mut out = header("A class of errors for each kind.") + "import { RpcError } from \"./index\";\n";
    for (name, kind) in model.kinds() {
        out += &format!("\n{}export class {name} extends RpcError {{}}\n", doc(&format!("{}.", kind.meaning()), ""));
    }
    out
}

/// `index.mjs`: the package for `import`.
pub fn module(model: &Model) -> String {
    let kinds = model.kinds().map(|(name, _)| name);
    let mut names: Vec<String> = OWN_NAMES.into_iter().map(str::to_owned).chain(kinds).collect();
    names.sort();
    let names: String = names.iter().map(|name| format!("  {name},\n")).collect();
    header("The package for `import`.")
        + &format!("import toold from \"./index.js\";\n\nexport const {{\n{names}}} = toold;\n")
}

fn signature(model: &Model, method: &ClientMethod) -> String {
    let about = doc(&format!("{} {}", method.summary, method.description), "  ");
    let result = match method.wire.as_str() {
        "events.subscribe" => "Subscription".into(),
        _ if model.is_process(&method.result) => match &method.result {
            Type::Named(name) => format!("Process & types.{name}"),
            _ => "Process".into(),
        },
        _ => qualified(&method.result),
    };
    let params = format!("types.{}", params_name(method));
    let own = match method.wire.as_str() {
        "exec" => {
            let command = format!("command: string | string[], params?: {params}, options?: CallOptions");
            return format!(
                "{about}  exec({command}): Promise<{result}>;\n{about}  exec(params: {params}, options?: CallOptions): Promise<{result}>;\n"
            );
        }
        "tools.register" => format!("params: {params} & {{ invoke: ToolInvoker }}, options?: CallOptions"),
        _ if method.params.is_empty() => "params?: Record<string, never>, options?: CallOptions".into(),
        _ if method.params.iter().any(|p| p.required) => format!("params: {params}, options?: CallOptions"),
        _ => format!("params?: {params}, options?: CallOptions"),
    };
    format!("{about}  {}({own}): Promise<{result}>;\n", method.name())
}

/// Writes a result type as seen from `methods.d.ts`.
fn qualified(kind: &Type) -> String {
    match kind {
        Type::Named(name) => format!("types.{name}"),
        _ => annotation(kind),
    }
}

/// `methods.js`: the table of methods and of kinds, as Node runs it.
pub fn table(model: &Model) -> String {
    let mut out = header("The methods of the daemon, and the kinds of its errors.");
    out += "\"use strict\";\n\n// `repeat`: a lost call may be sent again, always or with that parameter.\nexports.METHODS = {\n";
    for method in &model.methods {
        let repeat = match method.repeat {
            Repeat::Always => "true".to_owned(),
            Repeat::With(key) => format!("{key:?}"),
            Repeat::Never => "false".to_owned(),
        };
        let process = model.is_process(&method.result);
        let ClientMethod { wire, .. } = method;
        out += &format!("  {}: {{ method: {wire:?}, repeat: {repeat}, process: {process} }},\n", method.name());
    }
    out += "};\n\nexports.KINDS = {\n";
    for (name, kind) in model.kinds() {
        out += &format!("  {}: {name:?},\n", kind.name());
    }
    out + "};\n"
}
