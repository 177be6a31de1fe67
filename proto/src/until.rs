//! The `until` and `ready` parameters: a string or an object with one key.
//!
//! Its own deserializer rejects any other value with a message that names the accepted forms. A serde
//! untagged enum would only report that no variant matched.

use crate::pattern::Pattern;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The condition of a `wait`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Until {
    /// The process has ended.
    #[default]
    Exit,
    /// Both output streams are at their end.
    Closed,
    /// A line of the output matches.
    Match(Pattern),
    /// A process of the tree listens on this TCP port.
    Port(u16),
    /// The process has written nothing for this many milliseconds.
    Quiet(u64),
    /// The program waits for input.
    Input,
}

/// The conditions that are an object: exactly one of these fields.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionObject {
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pattern: Option<Pattern>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quiet_ms: Option<u64>,
}

impl Serialize for Until {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Until::Exit => s.serialize_str("exit"),
            Until::Closed => s.serialize_str("closed"),
            Until::Input => s.serialize_str("input"),
            Until::Match(pattern) => {
                ConditionObject { pattern: Some(pattern.clone()), ..ConditionObject::default() }.serialize(s)
            }
            Until::Port(port) => ConditionObject { port: Some(*port), ..ConditionObject::default() }.serialize(s),
            Until::Quiet(ms) => ConditionObject { quiet_ms: Some(*ms), ..ConditionObject::default() }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Until {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Until;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "\"exit\", \"closed\", \"input\", {match: pattern}, {port: number} or {quiet_ms: milliseconds}",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Until, E> {
                match text {
                    "exit" => Ok(Until::Exit),
                    "closed" => Ok(Until::Closed),
                    "input" => Ok(Until::Input),
                    // The error names the accepted values.
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Until, A::Error> {
                let condition = ConditionObject::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match (condition.pattern, condition.port, condition.quiet_ms) {
                    (Some(pattern), None, None) => Ok(Until::Match(pattern)),
                    (None, Some(port), None) => Ok(Until::Port(port)),
                    (None, None, Some(ms)) => Ok(Until::Quiet(ms)),
                    // None of them, or more than one.
                    _ => Err(de::Error::custom("give exactly one of match, port, quiet_ms")),
                }
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Until {
    fn schema_name() -> Cow<'static, str> {
        "Until".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let object = |name: &str, schema: Schema| json_schema!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false });
        let pattern = object("match", g.subschema_for::<Pattern>());
        let port = object("port", json_schema!({ "type": "integer", "minimum": 1, "maximum": 65535 }));
        let quiet = object("quiet_ms", json_schema!({ "type": "integer", "minimum": 1 }));
        json_schema!({ "oneOf": [{ "enum": ["exit", "closed", "input"] }, pattern, port, quiet] })
    }
}
