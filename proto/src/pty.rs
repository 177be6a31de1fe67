//! The `pty` parameter: a boolean or a size.
//!
//! Its own deserializer rejects any other value with a message that names the accepted forms. A serde
//! untagged enum would only report that no variant matched.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PtySize {
    pub rows: u32,
    pub cols: u32,
}

/// The terminal of a new process: none, one of the default size, or one of this size.
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
