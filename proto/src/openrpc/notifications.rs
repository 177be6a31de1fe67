//! The messages without an answer: those that the daemon sends, and those that it takes. OpenRPC has only calls, hence the
//! extension field `x-notifications`.

use crate::event::Notification;
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

/// Describes every notification.
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
    }])
}
