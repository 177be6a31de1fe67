//! Parameters of a tool, from the JSON schema of its arguments.

use crate::identifier::member;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// References to definitions that are followed. A longer chain is a circle.
const MAX_REFERENCES: usize = 8;
/// Values of an enumeration that a signature lists.
const MAX_LITERALS: usize = 24;

/// A type as signatures show it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Any,
    String,
    Integer,
    Number,
    Boolean,
    Array(Box<Type>),
    Object,
    Literal(Vec<Value>),
}

/// A parameter of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    /// Its name in the schema.
    pub name: String,
    pub identifier: String,
    pub kind: Type,
    pub nullable: bool,
    pub required: bool,
    /// A default that is not null.
    pub default: Option<Value>,
    pub description: Option<String>,
}

/// Parameters of a tool: the required ones first, then in the order of the schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameters {
    pub list: Vec<Parameter>,
    /// Arguments that the schema does not name are taken too.
    pub open: bool,
}

impl Parameters {
    pub fn new(schema: &Value) -> Parameters {
        let schema_object = resolve(schema, schema);
        let empty = Map::new();
        let properties = schema_object.get("properties").and_then(Value::as_object);
        let required: BTreeSet<&str> = schema_object
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(BTreeSet::new, |names| names.iter().filter_map(Value::as_str).collect());
        let mut list: Vec<Parameter> = Vec::new();
        for (name, property) in properties.unwrap_or(&empty) {
            let taken = |identifier: &str| list.iter().any(|other| other.identifier == identifier);
            list.push(parameter(schema, name, property, required.contains(name.as_str()), taken));
        }
        list.sort_by_key(|parameter| !parameter.required);
        let open = match schema_object.get("additionalProperties") {
            None => {
                properties.is_none()
                    && schema_object
                        .as_object()
                        .is_some_and(|schema| schema.keys().any(|key| key != "type" && key != "$schema"))
            }
            Some(more) => *more != Value::Bool(false),
        };
        Parameters { list, open }
    }

    pub fn names(&self, name: &str) -> bool {
        self.list.iter().any(|parameter| parameter.identifier == name)
    }
}

fn parameter(schema: &Value, name: &str, property: &Value, required: bool, taken: impl Fn(&str) -> bool) -> Parameter {
    let base = member(name);
    let mut identifier = base.clone();
    let mut number = 2;
    while taken(&identifier) {
        identifier = format!("{base}_{number}");
        number += 1;
    }
    let (kind, nullable) = kind(schema, property);
    let text = |key: &str| property.get(key).or_else(|| resolve(schema, property).get(key));
    let default = text("default").filter(|value| !value.is_null()).cloned();
    let description = text("description").and_then(Value::as_str).map(str::to_string);
    Parameter { name: name.into(), identifier, kind, nullable, required, default, description }
}

/// Follows `$ref` to a definition of the same schema.
fn resolve<'a>(schema: &'a Value, mut value: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return value };
        match reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer)) {
            Some(target) => value = target,
            None => return value,
        }
    }
    &Value::Null
}

/// Returns the type of a property, and true if null is one of its values.
pub(crate) fn kind(schema: &Value, property: &Value) -> (Type, bool) {
    let property = resolve(schema, property);
    if let Some(value) = property.get("const") {
        return literals(std::slice::from_ref(value));
    }
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return literals(values);
    }
    match property.get("type") {
        Some(Value::String(name)) => (named(schema, property, name), name == "null"),
        Some(Value::Array(names)) => {
            let nullable = names.iter().any(|name| name == "null");
            let rest: Vec<&str> = names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            (if let [name] = rest[..] { named(schema, property, name) } else { Type::Any }, nullable)
        }
        _ => union(schema, property),
    }
}

fn named(schema: &Value, property: &Value, name: &str) -> Type {
    match name {
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        "object" => Type::Object,
        // An array of arrays of a circle would not end.
        "array" => match property.get("items").map(|items| resolve(schema, items)) {
            Some(items) if items.get("type").is_some_and(|kind| kind != "array") || items.get("enum").is_some() => {
                Type::Array(Box::new(kind(schema, items).0))
            }
            _ => Type::Array(Box::new(Type::Any)),
        },
        _ => Type::Any,
    }
}

/// Returns the type of `anyOf` or `oneOf` if all but null have the same.
fn union(schema: &Value, property: &Value) -> (Type, bool) {
    let Some(members) = ["anyOf", "oneOf"].iter().find_map(|key| property.get(*key)?.as_array()) else {
        return (Type::Any, false);
    };
    let mut found: Option<Type> = None;
    let mut nullable = false;
    for member in members {
        let member = resolve(schema, member);
        if member.get("type").is_some_and(|kind| kind == "null") {
            nullable = true;
            continue;
        }
        // A union of unions is rare, and could be a circle.
        let (kind, null) =
            if member.get("type").is_some() || member.get("enum").is_some() || member.get("const").is_some() {
                kind(schema, member)
            } else {
                (Type::Any, false)
            };
        nullable |= null;
        found = Some(match found {
            None => kind,
            Some(Type::Literal(mut all)) if matches!(kind, Type::Literal(_)) => {
                if let Type::Literal(more) = kind {
                    all.extend(more);
                }
                Type::Literal(all)
            }
            Some(before) if before == kind => before,
            Some(_) => Type::Any,
        });
    }
    (found.unwrap_or(Type::Any), nullable)
}

fn literals(values: &[Value]) -> (Type, bool) {
    let nullable = values.iter().any(Value::is_null);
    let rest: Vec<Value> = values.iter().filter(|value| !value.is_null()).cloned().collect();
    let plain = |value: &Value| value.is_string() || value.is_boolean() || value.is_i64();
    if !rest.is_empty() && rest.len() <= MAX_LITERALS && rest.iter().all(plain) {
        return (Type::Literal(rest), nullable);
    }
    let all = |is: fn(&Value) -> bool| !rest.is_empty() && rest.iter().all(is);
    let kind = if all(Value::is_string) {
        Type::String
    } else if all(Value::is_i64) {
        Type::Integer
    } else {
        Type::Any
    };
    (kind, nullable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_come_with_types_defaults_and_the_required_ones_first() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "default": 5, "description": "at most"},
                "query": {"type": "string"},
                "from": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                "mode": {"$ref": "#/$defs/mode"}
            },
            "required": ["query"],
            "$defs": {"mode": {"enum": ["a", "b"]}}
        });
        let found = Parameters::new(&schema);
        let shown: Vec<_> = found.list.iter().map(|p| (p.identifier.as_str(), p.required, p.nullable)).collect();
        assert_eq!(
            shown,
            [("query", true, false), ("limit", false, false), ("from_", false, true), ("mode", false, false)]
        );
        assert_eq!(found.list[1].default, Some(json!(5)));
        assert_eq!(found.list[3].kind, Type::Literal(vec![json!("a"), json!("b")]));
        assert!(!found.open);
    }

    #[test]
    fn a_circle_of_references_ends() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert_eq!(Parameters::new(&schema).list[0].kind, Type::Any);
        let schema = json!({"properties": {"a": {"$ref": "#/properties/a/items"}, "b": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/properties/b"}}}}});
        assert_eq!(Parameters::new(&schema).list.len(), 2);
    }
}
