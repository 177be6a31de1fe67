//! The protocol as generators of clients see it: named types, methods with parameters, kinds of errors.

use crate::error::ErrorKind;
use crate::repeatable::{Repeat, repeat};
use serde_json::Value;

/// The component whose fields the `Process` of a client has.
pub const PROCESS: &str = "Process";

pub enum Type {
    Any,
    Null,
    Bool,
    Integer,
    Number,
    Text,
    Literals(Vec<String>),
    Named(String),
    List(Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
}

pub struct Field {
    pub name: String,
    pub kind: Type,
    pub required: bool,
    pub doc: String,
}

pub enum Shape {
    Object { base: Option<String>, fields: Vec<Field> },
    Alias(Type),
}

pub struct Definition {
    pub name: String,
    pub doc: String,
    pub shape: Shape,
}

pub struct ClientMethod {
    /// Its name on the wire.
    pub wire: String,
    pub summary: String,
    pub description: String,
    pub params: Vec<Field>,
    pub result: Type,
    pub repeat: Repeat,
}

impl ClientMethod {
    /// Returns its name in a client: `events.next` is `events_next`.
    pub fn name(&self) -> String {
        self.wire.replace('.', "_")
    }
}

pub struct Model {
    /// Objects first, then aliases; both by name.
    pub definitions: Vec<Definition>,
    pub methods: Vec<ClientMethod>,
    /// The common fields of all events.
    pub event_fields: Vec<Field>,
}

impl Model {
    pub fn of(document: &Value) -> Model {
        let mut builder = Builder { definitions: Vec::new() };
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            builder.define(name, schema);
        }
        let methods = document["methods"].as_array().into_iter().flatten().map(|m| builder.method(m)).collect();
        let mut definitions = builder.definitions;
        definitions.sort_by_key(|d| (matches!(d.shape, Shape::Alias(_)), d.name.clone()));
        let event_fields = common_event_fields(&definitions);
        Model { definitions, methods, event_fields }
    }

    pub fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|d| d.name == name)
    }

    /// Returns true if a result has the fields of a process.
    pub fn is_process(&self, result: &Type) -> bool {
        let Type::Named(name) = result else { return false };
        name == PROCESS
            || self
                .definition(name)
                .is_some_and(|d| matches!(&d.shape, Shape::Object { base: Some(base), .. } if base == PROCESS))
    }

    pub fn kinds(&self) -> impl Iterator<Item = (String, ErrorKind)> {
        ErrorKind::ALL.into_iter().map(|kind| (camel(kind.name()), kind))
    }
}

/// Returns the fields that every alternative of `Event` has, without `type`, which differs.
fn common_event_fields(definitions: &[Definition]) -> Vec<Field> {
    let events: Vec<&Vec<Field>> = definitions
        .iter()
        .filter(|d| d.name.ends_with("Event"))
        .filter_map(|d| match &d.shape {
            Shape::Object { fields, .. } => Some(fields),
            Shape::Alias(_) => None,
        })
        .collect();
    let is_common = |field: &&Field| events.iter().all(|fields| fields.iter().any(|f| f.name == field.name));
    let first = events.first().copied().into_iter().flatten();
    let copy = |field: &Field| Field {
        name: field.name.clone(),
        kind: if field.name == "type" { Type::Text } else { plain(&field.kind) },
        required: true,
        doc: field.doc.clone(),
    };
    first.filter(is_common).map(copy).collect()
}

/// Copies a type of a common event field: texts and numbers, or null.
fn plain(kind: &Type) -> Type {
    match kind {
        Type::Text => Type::Text,
        Type::Integer => Type::Integer,
        Type::Null => Type::Null,
        Type::Union(parts) => Type::Union(parts.iter().map(plain).collect()),
        Type::Any | Type::Bool | Type::Number | Type::Literals(_) | Type::Named(_) | Type::List(_) | Type::Map(_) => {
            Type::Any
        }
    }
}

struct Builder {
    definitions: Vec<Definition>,
}

impl Builder {
    fn define(&mut self, name: &str, schema: &Value) {
        let shape = self.shape(name, schema);
        self.definitions.push(Definition { name: name.to_owned(), doc: text(&schema["description"]), shape });
    }

    fn shape(&mut self, name: &str, schema: &Value) -> Shape {
        if let Some(parts) = schema["allOf"].as_array() {
            let base = parts.iter().find_map(|part| part["$ref"].as_str()).map(last);
            let own = parts.iter().find(|part| part["properties"].is_object());
            let fields = own.map(|own| self.fields(name, own)).unwrap_or_default();
            return Shape::Object { base, fields };
        }
        match schema["properties"].is_object() {
            true => Shape::Object { base: None, fields: self.fields(name, schema) },
            false => Shape::Alias(self.kind(name, schema)),
        }
    }

    fn fields(&mut self, owner: &str, schema: &Value) -> Vec<Field> {
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut fields = Vec::new();
        for (name, property) in properties {
            fields.push(Field {
                name: name.clone(),
                kind: self.kind(&format!("{owner}{}", camel(name)), property),
                required: required.iter().any(|r| *r == name),
                doc: text(&property["description"]),
            });
        }
        fields
    }

    /// Returns the type of a schema. An object without a name of its own is defined as `place`.
    fn kind(&mut self, place: &str, schema: &Value) -> Type {
        if let Some(reference) = schema["$ref"].as_str() {
            return Type::Named(last(reference));
        }
        if let Some(value) = schema["const"].as_str() {
            return Type::Literals(vec![value.to_owned()]);
        }
        if let Some(values) = schema["enum"].as_array() {
            return Type::Literals(values.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        if let Some([one]) = schema["allOf"].as_array().map(Vec::as_slice) {
            return self.kind(place, one);
        }
        if let Some(parts) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            return union(parts.iter().map(|part| self.alternative(place, part)).collect());
        }
        match &schema["type"] {
            Value::Array(names) => union(names.iter().map(|name| self.simple(place, name, schema)).collect()),
            name => self.simple(place, name, schema),
        }
    }

    /// Returns the type of one alternative. An object is named after its first field: `UntilMatch`.
    fn alternative(&mut self, place: &str, schema: &Value) -> Type {
        match schema["properties"].as_object().and_then(|properties| properties.keys().next()) {
            Some(first) => self.kind(&format!("{place}{}", camel(first)), schema),
            None => self.kind(place, schema),
        }
    }

    fn simple(&mut self, place: &str, name: &Value, schema: &Value) -> Type {
        match name.as_str() {
            Some("null") => Type::Null,
            Some("boolean") => Type::Bool,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("string") => Type::Text,
            Some("array") => Type::List(Box::new(self.kind(&format!("{place}Item"), &schema["items"]))),
            Some("object") if schema["properties"].is_object() => {
                self.define(place, schema);
                Type::Named(place.to_owned())
            }
            Some("object") => Type::Map(Box::new(self.kind(&format!("{place}Value"), &schema["additionalProperties"]))),
            // A schema without a type: anything.
            _ => Type::Any,
        }
    }

    fn method(&mut self, method: &Value) -> ClientMethod {
        let wire = text(&method["name"]);
        let owner: String = wire.split('.').map(camel).collect();
        let mut params = Vec::new();
        for param in method["params"].as_array().into_iter().flatten() {
            let name = text(&param["name"]);
            params.push(Field {
                kind: self.kind(&format!("{owner}{}", camel(&name)), &param["schema"]),
                required: param["required"] == true,
                doc: text(&param["description"]),
                name,
            });
        }
        let repeat = repeat(&wire, params.iter().map(|p| p.name.as_str()));
        ClientMethod {
            summary: text(&method["summary"]),
            description: text(&method["description"]),
            result: self.kind(&format!("{owner}Result"), &method["result"]["schema"]),
            repeat,
            params,
            wire,
        }
    }
}

/// Joins alternatives: literals to one, null last.
fn union(parts: Vec<Type>) -> Type {
    let (mut literals, mut others, mut has_null) = (Vec::new(), Vec::new(), false);
    for part in parts {
        match part {
            Type::Literals(values) => literals.extend(values),
            Type::Null => has_null = true,
            part => others.push(part),
        }
    }
    if !literals.is_empty() {
        others.insert(0, Type::Literals(literals));
    }
    if has_null {
        others.push(Type::Null);
    }
    match others.len() {
        1 => others.remove(0),
        _ => Type::Union(others),
    }
}

/// Returns true if null is one of the values.
pub fn is_nullable(kind: &Type) -> bool {
    match kind {
        Type::Null | Type::Any => true,
        Type::Union(parts) => parts.iter().any(is_nullable),
        Type::Bool | Type::Integer | Type::Number | Type::Text => false,
        Type::Literals(_) | Type::Named(_) | Type::List(_) | Type::Map(_) => false,
    }
}

/// Returns `already_exited` as `AlreadyExited`.
pub fn camel(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

/// Joins the lines of a description.
pub fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn last(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or_default().to_owned()
}
