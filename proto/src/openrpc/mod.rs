//! The OpenRPC 1.x document that `rpc.discover` returns, generated from the lists of methods and events.

mod components;
mod notifications;

pub use notifications::{CANCEL_REQUEST, EVENTS_EVENT};

use crate::api::{METHODS, MethodDescription};
use crate::error::ErrorKind;
use crate::process::Process;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Returns the whole document. A version always returns the same bytes.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let methods: Vec<Value> = METHODS.iter().map(|m| method(m, &mut generator)).collect();
    let notifications = notifications::notifications(&mut generator);
    generator.subschema_for::<Process>();
    let schemas = components::components(generator.take_definitions(true));
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "toold",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Owns background processes. JSON-RPC 2.0 on a local Unix socket, framed by lines, Content-Length, HTTP or WebSocket.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "methods": methods,
        "x-notifications": notifications,
        "components": { "schemas": schemas },
    })
}

fn method(m: &MethodDescription, generator: &mut SchemaGenerator) -> Value {
    let example = m.example();
    let example_params: Vec<Value> = example
        .as_object()
        .map(|o| o.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect())
        .unwrap_or_default();
    let mut example = json!({ "name": format!("{} example", m.name), "params": example_params });
    if let Some(result) = m.example_result() {
        example["result"] = json!({ "name": "result", "value": result });
    }
    json!({
        "name": m.name,
        "summary": m.summary(),
        "description": m.description(),
        "paramStructure": "by-name",
        "params": params(m, generator),
        "result": { "name": "result", "schema": (m.result)(generator) },
        "errors": m.errors.iter().map(|k| error(*k)).collect::<Vec<_>>(),
        "examples": [example],
    })
}

/// Lists the properties of the parameter struct, each as a parameter of its own.
fn params(m: &MethodDescription, generator: &mut SchemaGenerator) -> Vec<Value> {
    let schema = (m.params)(generator).to_value();
    let required: Vec<&str> =
        schema["required"].as_array().map(|a| a.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let one = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|o| o.remove("description")).unwrap_or(Value::Null);
        let mut value = json!({ "name": name, "required": required.contains(&name.as_str()), "schema": schema });
        if !description.is_null() {
            value["description"] = description;
        }
        value
    };
    // OpenRPC wants the required ones first.
    let mut all: Vec<Value> = properties.iter().map(one).collect();
    all.sort_by_key(|p| p["required"] != true);
    all
}

fn error(kind: ErrorKind) -> Value {
    json!({ "code": kind.code(), "message": kind.meaning(), "data": { "kind": kind.name() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_SUMMARY_LEN: usize = 80;

    #[test]
    fn every_example_is_json_and_names_only_real_parameters() {
        for m in METHODS {
            let doc = document();
            let method =
                doc["methods"].as_array().expect("a list").iter().find(|d| d["name"] == m.name).expect("listed");
            let names: Vec<&str> =
                method["params"].as_array().expect("a list").iter().filter_map(|p| p["name"].as_str()).collect();
            for name in m.example().as_object().expect("an object").keys() {
                assert!(names.contains(&name.as_str()), "{}: {name}", m.name);
            }
        }
    }

    #[test]
    fn every_method_has_a_summary_a_description_and_an_example_with_its_result() {
        for m in METHODS {
            let (name, summary, description) = (m.name, m.summary(), m.description());
            let is_sentence = summary.ends_with('.') && summary.len() <= MAX_SUMMARY_LEN;
            assert!(
                is_sentence,
                "{name}: the first line of the doc is one sentence of at most {MAX_SUMMARY_LEN} bytes"
            );
            assert!(!description.is_empty(), "{name}: the doc needs a second line, the description");
            assert_ne!(summary, description, "{name}");
            assert!(m.example_result().is_some(), "{name}: the example needs its result, after `=>`");
        }
    }

    #[test]
    fn every_parameter_and_field_of_an_example_is_in_its_schema() {
        let document = document();
        for m in METHODS {
            let result = m.example_result().expect("the test before");
            let described = document["methods"].as_array().expect("a list").iter().find(|d| d["name"] == m.name);
            let schema = &described.expect("listed")["result"]["schema"];
            for name in result.as_object().into_iter().flatten().map(|(name, _)| name) {
                assert!(has_property(&document, schema, name), "{}: {name}", m.name);
            }
        }
    }

    /// Returns true if a schema, or one of those that it refers to, has the property or any property.
    fn has_property(document: &Value, schema: &Value, name: &str) -> bool {
        if let Some(path) = schema["$ref"].as_str() {
            return has_property(document, document.pointer(&path[1..]).expect("a component"), name);
        }
        let parts = schema["allOf"].as_array();
        *schema == json!(true)
            || schema["properties"][name] != Value::Null
            || parts.is_some_and(|parts| parts.iter().any(|part| has_property(document, part, name)))
    }

    #[test]
    fn the_document_is_the_one_in_the_repository() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openrpc.json");
        let now = format!("{}\n", serde_json::to_string_pretty(&document()).expect("a value prints"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &now).expect("the repository is writable");
        }
        let golden = std::fs::read_to_string(path).unwrap_or_default();
        assert!(golden == now, "the protocol changed: review the difference, then run with UPDATE_GOLDEN=1");
    }
}
