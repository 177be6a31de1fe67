//! Flat schemas: an object of plain properties, without references, unions and combinators, which some agents refuse.

use serde_json::{Map, Value, json};

/// The depth below which a schema is not looked at: any value passes there, and the daemon checks it.
const MAX_DEPTH: usize = 12;
const COMBINATORS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Returns a flat form of the schema of arguments. The daemon checks the arguments against the exact one.
pub fn flatten(schema: &Value) -> Value {
    let flat = flat(schema, schema, 0);
    let mut object = flat.as_object().cloned().unwrap_or_default();
    object.insert("type".into(), "object".into());
    object.entry("properties").or_insert_with(|| json!({}));
    object.insert("additionalProperties".into(), false.into());
    Value::Object(object)
}

fn flat(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(object) = schema.as_object() else { return json!({}) };
    if depth > MAX_DEPTH {
        return json!({});
    }
    if let Some(target) = object.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let mut resolved = found.map_or_else(|| json!({}), |found| flat(found, root, depth + 1));
        if let (Some(description), Some(resolved)) = (object.get("description"), resolved.as_object_mut()) {
            resolved.insert("description".into(), description.clone());
        }
        return resolved;
    }
    let mut out = Map::new();
    for (key, value) in object {
        match (key.as_str(), value) {
            ("$defs" | "definitions" | "$schema" | "$id" | "title", _) => {}
            (key, _) if COMBINATORS.contains(&key) => {}
            ("properties", Value::Object(properties)) => {
                let flat = properties.iter().map(|(name, value)| (name.clone(), flat(value, root, depth + 1)));
                out.insert(key.clone(), Value::Object(flat.collect()));
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                out.insert(key.clone(), flat(value, root, depth + 1));
            }
            ("type", Value::Array(types)) => {
                if let Some(first) = types.iter().find(|kind| **kind != "null") {
                    out.insert(key.clone(), first.clone());
                }
            }
            _ => drop(out.insert(key.clone(), value.clone())),
        }
    }
    for keyword in COMBINATORS {
        let variants: Vec<Value> = object
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|one| flat(one, root, depth + 1))
            .collect();
        merge(&mut out, variants, keyword == "allOf");
    }
    Value::Object(out)
}

/// Merges variants: one alone is it; objects give their properties; of others nothing is demanded.
fn merge(out: &mut Map<String, Value>, variants: Vec<Value>, are_all: bool) {
    let mut real: Vec<Map<String, Value>> = variants
        .into_iter()
        .filter_map(|variant| variant.as_object().cloned())
        .filter(|variant| variant.get("type") != Some(&json!("null")) && variant.get("const") != Some(&Value::Null))
        .collect();
    if real.len() == 1 {
        for (key, value) in real.remove(0) {
            out.entry(key).or_insert(value);
        }
        return;
    }
    for variant in real.iter().filter(|variant| variant.contains_key("properties")) {
        let properties = out.entry("properties").or_insert_with(|| json!({}));
        for (name, value) in variant["properties"].as_object().into_iter().flatten() {
            if let Some(properties) = properties.as_object_mut() {
                properties.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        out.insert("type".into(), "object".into());
        if let Some(required) = variant.get("required").and_then(Value::as_array).filter(|_| are_all) {
            let all = out.entry("required").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|all| all.extend(required.iter().cloned()));
        }
    }
    let types: Vec<&Value> = real.iter().filter_map(|variant| variant.get("type")).collect();
    if let Some(first) =
        types.first().filter(|first| types.len() == real.len() && types.iter().all(|kind| kind == *first))
    {
        out.entry("type").or_insert((*first).clone());
        let values: Vec<Value> = real
            .iter()
            .flat_map(|variant| {
                variant
                    .get("enum")
                    .and_then(Value::as_array)
                    .cloned()
                    .or_else(|| Some(vec![variant.get("const")?.clone()]))
            })
            .flatten()
            .collect();
        if values.len() >= real.len() {
            out.entry("enum").or_insert(Value::Array(values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_unions_and_combinators_become_plain_properties() {
        let schema = json!({
            "$defs": {"Size": {"type": "integer", "minimum": 1}},
            "type": "object",
            "oneOf": [
                {"properties": {"path": {"type": "string"}}, "required": ["path"]},
                {"properties": {"url": {"type": "string"}}, "required": ["url"]},
            ],
            "properties": {
                "size": {"$ref": "#/$defs/Size", "description": "how big"},
                "mode": {"anyOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]},
                "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "count": {"type": ["integer", "null"]},
            },
        });
        assert_eq!(
            flatten(&schema),
            json!({
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "description": "how big"},
                    "mode": {"type": "string", "enum": ["a", "b"]},
                    "name": {"type": "string"},
                    "count": {"type": "integer"},
                    "path": {"type": "string"},
                    "url": {"type": "string"},
                },
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"});
        let text = flatten(&schema).to_string();
        assert!(!text.contains("$ref") && text.len() < 4000, "{text}");
    }
}
