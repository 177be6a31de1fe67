//! Parameters that take more than one shape. Each refuses the rest with a sentence of its own,
//! where serde's untagged enums would only say that nothing matched.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The window of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PtySize {
    pub rows: u32,
    pub cols: u32,
}

/// No terminal, a terminal of the default size, or one of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pty {
    #[default]
    No,
    Default,
    Sized(PtySize),
}

impl Serialize for Pty {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Pty::No => s.serialize_bool(false),
            Pty::Default => s.serialize_bool(true),
            Pty::Sized(size) => size.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Pty {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Pty;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or {rows, cols}")
            }
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Pty, E> {
                Ok(if on { Pty::Default } else { Pty::No })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pty, A::Error> {
                PtySize::deserialize(de::value::MapAccessDeserializer::new(map)).map(Pty::Sized)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Pty {
    fn schema_name() -> Cow<'static, str> {
        "Pty".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [{ "type": "boolean" }, g.subschema_for::<PtySize>()] })
    }
}

/// A plain substring, or a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    Text(String),
    Regex(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegexObject {
    regex: String,
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Pattern::Text(text) => s.serialize_str(text),
            Pattern::Regex(regex) => RegexObject { regex: regex.clone() }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Pattern;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or {regex: \"...\"}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pattern, E> {
                Ok(Pattern::Text(text.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pattern, A::Error> {
                RegexObject::deserialize(de::value::MapAccessDeserializer::new(map)).map(|o| Pattern::Regex(o.regex))
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [
            { "type": "string" },
            { "type": "object", "properties": { "regex": { "type": "string" } }, "required": ["regex"], "additionalProperties": false }
        ] })
    }
}

/// What `wait` waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Until {
    /// The process has ended.
    #[default]
    Exit,
    /// Both output streams are at their end.
    Closed,
    /// A line of the output matches.
    Match(Pattern),
    /// Something of the tree listens on this TCP port.
    Port(u16),
    /// It has printed nothing for so many milliseconds.
    Quiet(u64),
}

/// The ways of waiting that are an object: exactly one of these.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
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
            Until::Match(pattern) => Condition { pattern: Some(pattern.clone()), ..Condition::default() }.serialize(s),
            Until::Port(port) => Condition { port: Some(*port), ..Condition::default() }.serialize(s),
            Until::Quiet(ms) => Condition { quiet_ms: Some(*ms), ..Condition::default() }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Until {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Until;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"exit\", \"closed\", {match: pattern}, {port: number} or {quiet_ms: milliseconds}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Until, E> {
                match text {
                    "exit" => Ok(Until::Exit),
                    "closed" => Ok(Until::Closed),
                    // Anything else is the caller's mistake, told by what was expected.
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Until, A::Error> {
                let condition = Condition::deserialize(de::value::MapAccessDeserializer::new(map))?;
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
        json_schema!({ "oneOf": [{ "enum": ["exit", "closed"] }, pattern, port, quiet] })
    }
}
