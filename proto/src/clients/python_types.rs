//! `toold.types`, the exceptions and the attributes of the Python client.

use super::HEADER;
use super::model::{Definition, Field, Model, PROCESS, Shape, Type, one_line};

/// Names that Python keeps for itself and that are field or parameter names on the wire.
const KEYWORDS: [&str; 1] = ["from"];

/// The direction of a value: a parameter may be any sequence or mapping, a result has lists and dictionaries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Param,
    Result,
}

/// Writes a type as an annotation.
pub fn annotation(kind: &Type, direction: Direction) -> String {
    let of = |kind: &Type| annotation(kind, direction);
    match kind {
        Type::Any => "Any".into(),
        Type::Null => "None".into(),
        Type::Bool => "bool".into(),
        Type::Integer => "int".into(),
        Type::Number => "float".into(),
        Type::Text => "str".into(),
        Type::Literals(values) => {
            format!("Literal[{}]", values.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", "))
        }
        Type::Named(name) => name.clone(),
        Type::List(item) if direction == Direction::Param => format!("Sequence[{}]", of(item)),
        Type::List(item) => format!("List[{}]", of(item)),
        Type::Map(value) if direction == Direction::Param => format!("Mapping[str, {}]", of(value)),
        Type::Map(value) => format!("Dict[str, {}]", of(value)),
        Type::Union(parts) => format!("Union[{}]", parts.iter().map(of).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns a name that Python accepts: `from` is `from_`.
pub fn safe(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// The module `toold.types`.
pub fn types(model: &Model) -> String {
    let mut out = format!("\"\"\"The types of parameters, results and events.\n\n{HEADER}\n\"\"\"\n\n");
    out += "from __future__ import annotations\n\nfrom typing import Any, Dict, List, Literal, TypedDict, Union\n\n";
    let names: Vec<String> = model.definitions.iter().map(|d| format!("    {:?},\n", d.name)).collect();
    out += &format!("__all__ = [\n{}]\n", names.concat());
    let mut written = Vec::new();
    for definition in &model.definitions {
        write_with_base(model, definition, &mut written, &mut out);
    }
    out
}

/// Writes a definition after those that must exist when Python reads it: its base, and the parts of an alias.
fn write_with_base(model: &Model, definition: &Definition, written: &mut Vec<String>, out: &mut String) {
    if written.contains(&definition.name) {
        return;
    }
    written.push(definition.name.clone());
    let mut before = Vec::new();
    match &definition.shape {
        Shape::Object { base, .. } => before.extend(base.clone()),
        Shape::Alias(kind) => names(kind, &mut before),
    }
    for name in before {
        if let Some(needed) = model.definition(&name) {
            write_with_base(model, needed, written, out);
        }
    }
    *out += &definition_text(definition);
}

fn names(kind: &Type, found: &mut Vec<String>) {
    match kind {
        Type::Named(name) => found.push(name.clone()),
        Type::List(item) | Type::Map(item) => names(item, found),
        Type::Union(parts) => parts.iter().for_each(|part| names(part, found)),
        Type::Any | Type::Null | Type::Bool | Type::Integer | Type::Number | Type::Text | Type::Literals(_) => {}
    }
}

fn definition_text(definition: &Definition) -> String {
    let Definition { name, doc, shape } = definition;
    match shape {
        Shape::Alias(kind) => {
            let doc = comment(doc, "");
            format!("\n\n{doc}{name} = {}\n", annotation(kind, Direction::Result))
        }
        Shape::Object { base, fields } => object(name, doc, base.as_deref(), fields),
    }
}

/// Writes a `TypedDict`. Python 3.9 has no `NotRequired`: the required fields are a class of their own before it, and so are
/// the fields whose names Python keeps for itself.
fn object(name: &str, doc: &str, base: Option<&str>, fields: &[Field]) -> String {
    let mut out = String::new();
    let mut bases: Vec<String> = base.map(str::to_owned).into_iter().collect();
    let (keywords, plain): (Vec<&Field>, Vec<&Field>) =
        fields.iter().partition(|field| KEYWORDS.contains(&field.name.as_str()));
    if !keywords.is_empty() {
        let of = |f: &&Field| format!("{:?}: {:?}", f.name, annotation(&f.kind, Direction::Result));
        let all = keywords.iter().map(of).collect::<Vec<_>>().join(", ");
        let total = if keywords.iter().all(|f| f.required) { "" } else { ", total=False" };
        out += &format!("\n\n_{name}Keywords = TypedDict(\"_{name}Keywords\", {{{all}}}{total})\n");
        bases.push(format!("_{name}Keywords"));
    }
    let (required, optional): (Vec<&Field>, Vec<&Field>) = plain.into_iter().partition(|field| field.required);
    if !required.is_empty() && !optional.is_empty() {
        let own = parents(&bases);
        out += &format!("\n\nclass _{name}Required({own}):\n{}", body(&required));
        bases = vec![format!("_{name}Required")];
    }
    let total = if optional.is_empty() { "" } else { ", total=False" };
    let last = if optional.is_empty() { &required } else { &optional };
    let own = parents(&bases);
    out += &format!("\n\nclass {name}({own}{total}):\n");
    if !doc.is_empty() {
        out += &format!("    \"\"\"{}\"\"\"\n", one_line(doc));
    }
    if !doc.is_empty() && !last.is_empty() {
        out += "\n";
    }
    if doc.is_empty() && last.is_empty() {
        out += "    pass\n";
    }
    out + &body(last)
}

fn parents(bases: &[String]) -> String {
    if bases.is_empty() { "TypedDict".into() } else { bases.join(", ") }
}

fn body(fields: &[&Field]) -> String {
    let one = |field: &&Field| {
        let doc = comment(&field.doc, "    ");
        format!("{doc}    {}: {}\n", field.name, annotation(&field.kind, Direction::Result))
    };
    fields.iter().map(one).collect()
}

fn comment(doc: &str, indent: &str) -> String {
    match one_line(doc) {
        doc if doc.is_empty() => doc,
        doc => format!("{indent}# {doc}\n"),
    }
}

/// The exceptions: one for each kind of error.
pub fn kinds(model: &Model) -> String {
    let mut out = format!("\"\"\"An exception for each kind of error.\n\n{HEADER}\n\"\"\"\n\n");
    out += "from typing import Dict, Type\n\nfrom .errors import RpcError\n";
    let mut table = String::new();
    for (name, kind) in model.kinds() {
        let meaning = capital(kind.meaning());
        out += &format!("\n\nclass {name}(RpcError):\n    \"\"\"{meaning}.\"\"\"\n\n    kind = {:?}\n", kind.name());
        table += &format!("    {:?}: {name},\n", kind.name());
    }
    out + &format!("\n\nKINDS: Dict[str, Type[RpcError]] = {{\n{table}}}\n")
}

fn capital(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

/// The attributes that a process and an event have on the wire, as a stub.
pub fn fields(model: &Model) -> String {
    let mut out = format!("\"\"\"The attributes of processes and events.\n\n{HEADER}\n\"\"\"\n\n");
    out += "from typing import Any, Dict, List, Literal, Union\n\nfrom .types import *\n";
    let process = match model.definition(PROCESS).map(|d| &d.shape) {
        Some(Shape::Object { fields, .. }) => fields.as_slice(),
        Some(Shape::Alias(_)) | None => &[],
    };
    for (name, fields) in [("ProcessFields", process), ("EventFields", &model.event_fields)] {
        out += &format!("\nclass {name}:\n");
        for field in fields {
            let doc = comment(&field.doc, "    ");
            let kind = annotation(&field.kind, Direction::Result);
            out += &format!("{doc}    @property\n    def {}(self) -> {kind}: ...\n", safe(&field.name));
        }
    }
    out
}
