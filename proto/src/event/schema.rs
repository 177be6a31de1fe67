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
        // Nothing beside `oneOf`: a generator that finds properties here takes them for all of them.
        json_schema!({
            "description": "An event, by its `type`. The fields of the type follow the common ones. A client must accept types and fields that it does not know.",
            "oneOf": types,
        })
    }
}

/// The schema of everything that a subscription sends: an event or a push.
pub struct Notification;

impl JsonSchema for Notification {
    fn schema_name() -> Cow<'static, str> {
        "Notification".into()
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

/// Returns the component's name. `watch_match` becomes `WatchMatchEvent`: a component name that no method's result has.
fn component(event: &EventDescription) -> String {
    let parts = event.name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]);
    parts.collect::<String>() + if event.code.is_some() { "Event" } else { "Push" }
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

/// Returns the schemas of `COMMON_FIELDS`, with this one for `type`.
fn common_properties(kind: Value) -> Map<String, Value> {
    let id =
        json!({ "type": ["string", "null"], "description": "The process. Null if the event is about no process." });
    let schemas = [
        json!({ "type": "integer", "minimum": 1, "description": "The event's number." }),
        json!({ "type": "string", "format": "date-time", "description": "The time of the event. RFC 3339, UTC." }),
        kind,
        id,
        json!({ "type": ["string", "null"], "description": "The session of the process." }),
        json!({ "type": ["string", "null"], "description": "The task of the process." }),
    ];
    COMMON_FIELDS.map(str::to_owned).into_iter().zip(schemas).collect()
}

/// Returns the schema of a whole event or push: common fields, then those of its type.
pub(super) fn object(event: &EventDescription, g: &mut SchemaGenerator) -> Value {
    let fields = (event.fields)(g).to_value();
    let kind = json!({ "type": "string", "const": event.name });
    let mut properties =
        if event.code.is_some() { common_properties(kind) } else { Map::from_iter([("type".into(), kind)]) };
    let mut required: Vec<Value> = properties.keys().map(|name| json!(name)).collect();
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
