//! The schemas of events and pushes: the common fields and those of each type in one flat object.

use super::{EVENTS, EventDescription};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The fields with which every event begins. No type may have a field of these names.
pub const COMMON_FIELDS: [&str; 6] = ["seq", "at", "type", "id", "session_key", "task_id"];

/// One event, as the text that is in the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub Box<RawValue>);

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.0.get() == other.0.get()
    }
}

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let types: Vec<Value> = EVENTS.iter().filter(|e| e.code.is_some()).map(|e| reference(e, g)).collect();
        json_schema!({
            "description": "An event. `type` tells which one. A client must accept types and fields that it does not know.",
            "oneOf": types,
        })
    }
}

/// Anything that a subscription sends: an event or a push.
pub struct Notified;

impl JsonSchema for Notified {
    fn schema_name() -> Cow<'static, str> {
        "Notified".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let pushes: Vec<Value> = EVENTS.iter().filter(|e| e.code.is_none()).map(|e| reference(e, g)).collect();
        let event = g.subschema_for::<Event>().to_value();
        json_schema!({
            "description": "An event, or a push that is not in the journal.",
            "oneOf": std::iter::once(event).chain(pushes).collect::<Vec<Value>>(),
        })
    }
}

/// `watch_match` becomes `WatchMatchEvent`: a component name that no method's result has.
fn component(event: &EventDescription) -> String {
    let words = event.name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    words.collect::<String>() + if event.code.is_some() { "Event" } else { "Push" }
}

/// Defines the component of a type, and returns a reference to it.
fn reference(event: &EventDescription, g: &mut SchemaGenerator) -> Value {
    let name = component(event);
    if !g.definitions().contains_key(&name) {
        let schema = object(event, g);
        g.definitions_mut().insert(name.clone(), schema);
    }
    json!({ "$ref": format!("#{}/{name}", g.settings().definitions_path) })
}

/// The schema of a whole event or push: common fields, then those of its type.
pub(super) fn object(event: &EventDescription, g: &mut SchemaGenerator) -> Value {
    let fields = (event.fields)(g).to_value();
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut common = |name: &str, schema: Value| {
        properties.insert(name.to_owned(), schema);
        required.push(json!(name));
    };
    let kind = json!({ "type": "string", "const": event.name });
    if event.code.is_some() {
        common("seq", json!({ "type": "integer", "minimum": 1, "description": "The event's number." }));
        common("at", json!({ "type": "string", "format": "date-time" }));
        common("type", kind);
        common(
            "id",
            json!({ "type": ["string", "null"], "description": "The process. Null if the event is not about one." }),
        );
        common("session_key", json!({ "type": ["string", "null"] }));
        common("task_id", json!({ "type": ["string", "null"] }));
    } else {
        common("type", kind);
    }
    properties.extend(fields["properties"].as_object().cloned().unwrap_or_default());
    // A field that is null when it has no value is always there. The generator of the document describes what a reader
    // accepts, and has such a field as optional.
    let mut written = SchemaSettings::draft07().for_serialize().into_generator();
    let fields = (event.fields)(&mut written).to_value();
    required.extend(fields["required"].as_array().cloned().unwrap_or_default());
    json!({
        "type": "object",
        "description": event.doc.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim(),
        "properties": properties,
        "required": required,
        "examples": [example(event)],
    })
}

/// Returns the example with its common fields.
pub(super) fn example(event: &EventDescription) -> Value {
    let fields: Map<String, Value> = serde_json::from_str(event.example).expect("a test reads every example");
    let mut whole = Map::new();
    if let Some(code) = event.code {
        // The breaker's events are about no process.
        let process = !event.name.starts_with("watch_overflow");
        whole.insert("seq".into(), json!(1210 + u64::from(code)));
        whole.insert("at".into(), json!("2026-11-16T03:28:50.123Z"));
        whole.insert("type".into(), json!(event.name));
        whole.insert("id".into(), json!(process.then_some("proc_0123456789ab")));
        whole.insert("session_key".into(), json!(process.then_some("chat-42")));
        whole.insert("task_id".into(), Value::Null);
    } else {
        whole.insert("type".into(), json!(event.name));
    }
    whole.extend(fields);
    Value::Object(whole)
}
