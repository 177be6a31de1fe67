//! The components of the document: each has a title, and a result that has the fields of a process refers to `Process`.

use serde_json::{Map, Value, json};

/// The component whose fields many results have.
const PROCESS: &str = "Process";

/// Returns the components as generators need them.
pub(super) fn components(schemas: Map<String, Value>) -> Map<String, Value> {
    let process = schemas.get(PROCESS).cloned().unwrap_or_default();
    let finish = |(name, schema): (String, Value)| {
        let schema = if name == PROCESS { schema } else { extend_process(&name, schema, &process) };
        let schema = titled(&name, schema);
        (name, schema)
    };
    schemas.into_iter().map(finish).collect()
}

/// Returns the schema with a title first. Without titles a generator joins the names of all fields to a name.
fn titled(name: &str, schema: Value) -> Value {
    let mut titled = Map::from_iter([("title".to_owned(), json!(name))]);
    // Another schema is `true`: anything.
    if let Value::Object(schema) = schema {
        titled.extend(schema);
    }
    Value::Object(titled)
}

/// Replaces the fields of a process by a reference, if the schema has all of them: `#[serde(flatten)]` repeats them.
fn extend_process(name: &str, schema: Value, process: &Value) -> Value {
    let shared = fields(process);
    if shared.is_empty() || !shared.keys().all(|field| fields(&schema).contains_key(field)) {
        return schema;
    }
    let own: Map<String, Value> =
        fields(&schema).into_iter().filter(|(field, _)| !shared.contains_key(field)).collect();
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let required: Vec<Value> =
        required.into_iter().filter(|field| field.as_str().is_some_and(|field| own.contains_key(field))).collect();
    let mut parts = vec![json!({ "$ref": format!("#/components/schemas/{PROCESS}") })];
    if !own.is_empty() {
        let title = format!("{name}Fields");
        parts.push(json!({ "title": title, "type": "object", "properties": own, "required": required }));
    }
    let mut extended = Map::new();
    if let Some(description) = schema.get("description") {
        extended.insert("description".into(), description.clone());
    }
    extended.insert("allOf".into(), parts.into());
    Value::Object(extended)
}

fn fields(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::document;
    use crate::api::METHODS;
    use crate::event::EVENTS;
    use serde_json::Value;

    /// Returns the name of the type that generators make of a method: `events.next` becomes `EventsNext`.
    fn type_name(method: &str) -> String {
        let parts = method.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        parts.map(|part| part[..1].to_uppercase() + &part[1..]).collect()
    }

    fn visit(value: &Value, see: &mut dyn FnMut(&Value)) {
        see(value);
        match value {
            Value::Array(list) => list.iter().for_each(|one| visit(one, see)),
            Value::Object(map) => map.values().for_each(|one| visit(one, see)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_component_has_a_title_of_its_own_that_is_no_method() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().expect("components");
        let methods: Vec<String> = METHODS.iter().map(|m| type_name(m.name)).collect();
        let mut titles = Vec::new();
        for (name, schema) in schemas {
            visit(schema, &mut |part| titles.extend(part["title"].as_str().map(str::to_owned)));
            assert_eq!(schema["title"], name.as_str(), "{name}: the title is the name");
            let hint = "give the result a name that ends in `Result`, without `schemars(rename)`";
            assert!(!methods.contains(name), "{name} is also the name of a method: {hint}");
        }
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), count, "two schemas have the same title");
    }

    #[test]
    fn the_fields_of_a_process_are_in_one_component() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().expect("components");
        let has = |name: &str| schemas[name]["allOf"][0]["$ref"] == "#/components/schemas/Process";
        assert!(["ExecResult", "PollResult", "Waited", "Listed", "InspectResult"].into_iter().all(has));
        let repeated = schemas.iter().filter(|(_, schema)| schema["properties"]["core_dumped"].is_object());
        assert_eq!(repeated.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["Process"]);
    }

    #[test]
    fn events_are_alternatives_by_type_with_their_fields() {
        let document = document();
        let schemas = &document["components"]["schemas"];
        let event = schemas["Event"].as_object().expect("a component");
        assert!(event.keys().all(|key| ["title", "description", "oneOf"].contains(&key.as_str())), "{event:?}");
        let alternatives = event["oneOf"].as_array().expect("a list");
        let types: Vec<&Value> = alternatives
            .iter()
            .map(|one| {
                let name = one["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a reference");
                &schemas[name]["properties"]["type"]["const"]
            })
            .collect();
        assert_eq!(types, EVENTS.iter().filter(|e| e.code.is_some()).map(|e| e.name).collect::<Vec<_>>());
        assert!(schemas["ExitedEvent"]["properties"]["exit_code"].is_object());
    }

    #[test]
    fn every_reference_has_its_component() {
        let document = document();
        visit(&document, &mut |part| {
            if let Some(path) = part["$ref"].as_str() {
                let pointer = path.strip_prefix('#').expect("a reference within the document");
                assert!(document.pointer(pointer).is_some(), "{path}");
            }
        });
    }
}
