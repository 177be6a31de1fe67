//! The messages that OpenRPC does not have: those without an answer, and the request that the daemon sends. Hence the extension
//! field `x-notifications`.

use crate::event::Notification;
use crate::tools::{TOOLS_INVOKE, TOOLS_REPLACED, ToolsInvokeParams, ToolsReplacedParams};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The method of the message that a subscription sends.
pub const EVENTS_EVENT: &str = "events.event";

/// The method of the message that cancels a call.
pub const CANCEL_REQUEST: &str = "$/cancelRequest";

/// The parameters of `events.event`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: jsonrpsee writes the message")]
struct EventMessageParams {
    /// The number that `events.subscribe` returned.
    subscription: u64,
    result: Notification,
}

/// The whole message of a subscription.
struct EventMessage;

impl JsonSchema for EventMessage {
    fn schema_name() -> Cow<'static, str> {
        "EventMessage".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The notification that a subscription sends, as it is on the wire.",
            "type": "object",
            "properties": {
                "jsonrpc": { "type": "string", "const": "2.0" },
                "method": { "type": "string", "const": EVENTS_EVENT },
                "params": g.subschema_for::<EventMessageParams>(),
            },
            "required": ["jsonrpc", "method", "params"],
        })
    }
}

/// Describes every message that is not a call of a client.
pub(super) fn notifications(generator: &mut SchemaGenerator) -> Value {
    let example = json!({
        "type": "output", "id": "proc_0123456789ab", "cursor": 0, "next_cursor": 6, "stream": "stdout", "data": "hello\n",
        "name": "web", "at": "2026-11-16T03:28:50.123Z",
    });
    let message = generator.subschema_for::<EventMessage>();
    json!([{
        "name": EVENTS_EVENT,
        "summary": "An event or a push of a subscription.",
        "description": "Sent for a subscription of `events.subscribe` until `events.unsubscribe` or the end of the connection.",
        "x-sender": "daemon",
        "x-message": message,
        "paramStructure": "by-name",
        "params": [
            {
                "name": "subscription",
                "description": "The number that `events.subscribe` returned.",
                "required": true,
                "schema": generator.subschema_for::<u64>(),
            },
            {
                "name": "result",
                "description": "The event or the push.",
                "required": true,
                "schema": generator.subschema_for::<Notification>(),
            },
        ],
        "examples": [{
            "name": "output of a process",
            "params": [{ "name": "subscription", "value": 1 }, { "name": "result", "value": example }],
        }],
    }, {
        "name": CANCEL_REQUEST,
        "summary": "Cancel a call of this connection.",
        "description": "Ends a `wait`, a `poll` with `wait_ms`, an `events.next` or the wait of an `exec`: the call is answered with the error `cancelled`, and nothing happens to processes. Other calls, and those of other connections, are not affected.",
        "x-sender": "client",
        "paramStructure": "by-name",
        "params": [{
            "name": "id",
            "description": "The id of the request.",
            "required": true,
            "schema": { "oneOf": [{ "type": "integer" }, { "type": "string" }] },
        }],
        "examples": [{ "name": "cancel a wait", "params": [{ "name": "id", "value": 7 }] }],
    }, invoke(generator), replaced(generator)])
}

/// Describes the request for a call of a client's tool.
fn invoke(generator: &mut SchemaGenerator) -> Value {
    let schema = generator.root_schema_for::<ToolsInvokeParams>().to_value();
    let example = json!({
        "call": "proc_0123456789ab/5f3a0c12-7", "name": "open_file", "args": { "path": "/home/me/web/src/main.rs" },
        "session_key": "chat-42", "task_id": null, "deadline": "2026-11-16T03:33:50.123Z",
    });
    let example = example.as_object().into_iter().flatten();
    json!({
        "name": TOOLS_INVOKE,
        "summary": "Run a tool that this connection offers.",
        "description": "A request: it has an `id`, and the client answers it with the result of the tool or with an error, whose message and data the caller gets. Sent to the connection of `tools.register`; `$/cancelRequest` with that `id` ends it. A second answer, a late one and one to an unknown `id` are ignored.",
        "x-sender": "daemon",
        "x-request": true,
        "paramStructure": "by-name",
        "params": fields(&schema),
        "result": { "name": "result", "schema": true },
        "examples": [{
            "name": "open a file",
            "params": example.map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
            "result": { "name": "result", "value": { "opened": true } },
        }],
    })
}

/// Describes the notification for a client whose provider was taken over.
fn replaced(generator: &mut SchemaGenerator) -> Value {
    let schema = generator.root_schema_for::<ToolsReplacedParams>().to_value();
    json!({
        "name": TOOLS_REPLACED,
        "summary": "Another connection offers the tools of a provider of this connection now.",
        "description": "Sent to the connection from which `tools.register` with `takeover` took a provider. Its open calls have ended there, and their answers are ignored.",
        "x-sender": "daemon",
        "paramStructure": "by-name",
        "params": fields(&schema),
        "examples": [{
            "name": "a second client took the name over",
            "params": [
                { "name": "provider", "value": "editor" },
                { "name": "by", "value": { "uid": 1000, "pid": 4712, "program": "/usr/bin/agent" } },
            ],
        }],
    })
}

/// Lists the fields of a struct as parameters.
fn fields(schema: &Value) -> Vec<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let field = |(name, schema): (&String, &Value)| json!({ "name": name, "required": required.iter().any(|r| r == name), "schema": schema });
    schema["properties"].as_object().into_iter().flatten().map(field).collect()
}
