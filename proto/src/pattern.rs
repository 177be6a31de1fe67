//! A watch, `match` or `ready` pattern: a string or `{regex}`.
//!
//! Its own deserializer rejects any other value with a message that names the accepted forms. A serde
//! untagged enum would only report that no variant matched.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A plain substring or a regular expression.
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
