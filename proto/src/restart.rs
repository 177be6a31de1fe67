//! The `restart` parameter of `exec`: the name of a policy, or a policy with its numbers.
//!
//! Its own deserializer rejects any other value with a message that names the accepted forms.

use crate::params::is_default;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Maximum delay before a restart, if the call has no number.
pub const DEFAULT_MAX_BACKOFF_MS: u64 = 60_000;

/// The ends after which a process is started again. One that was killed by a client is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    #[default]
    No,
    /// After every end but exit code 0.
    OnFailure,
    Always,
}

impl RestartPolicy {
    pub const NAMES: [(&'static str, RestartPolicy); 3] =
        [("no", RestartPolicy::No), ("on-failure", RestartPolicy::OnFailure), ("always", RestartPolicy::Always)];

    pub fn name(self) -> &'static str {
        match self {
            RestartPolicy::No => "no",
            RestartPolicy::OnFailure => "on-failure",
            RestartPolicy::Always => "always",
        }
    }
}

/// A policy with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartOptions {
    pub policy: RestartPolicy,
    /// Restarts in a row before toold gives up. Default: 10.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max: Option<u32>,
    /// Delay before the first restart; it doubles with each. Default: 1000.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backoff_ms: Option<u64>,
    /// Maximum delay. Default: 60000.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_backoff_ms: Option<u64>,
}

/// The value of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestartSetting(pub RestartOptions);

impl Serialize for RestartSetting {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let RestartOptions { policy, .. } = self.0;
        if self.0 == (RestartOptions { policy, ..RestartOptions::default() }) {
            return policy.serialize(s);
        }
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for RestartSetting {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = RestartSetting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"no\", \"on-failure\", \"always\" or {policy, max, backoff_ms, max_backoff_ms}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<RestartSetting, E> {
                let known = RestartPolicy::NAMES.iter().find(|(known, _)| *known == name);
                let (_, policy) = known.ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))?;
                Ok(RestartSetting(RestartOptions { policy: *policy, ..RestartOptions::default() }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RestartSetting, A::Error> {
                RestartOptions::deserialize(de::value::MapAccessDeserializer::new(map)).map(RestartSetting)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for RestartSetting {
    fn schema_name() -> Cow<'static, str> {
        "RestartSetting".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [g.subschema_for::<RestartPolicy>(), g.subschema_for::<RestartOptions>()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_and_an_object_read_back_as_they_are() {
        for value in [
            json!("no"),
            json!("on-failure"),
            json!("always"),
            json!({"policy": "always", "max": 3}),
            json!({"policy": "on-failure", "backoff_ms": 5, "max_backoff_ms": 50}),
        ] {
            let read: RestartSetting = serde_json::from_value(value.clone()).expect("a policy");
            assert_eq!(serde_json::to_value(read).expect("it is printed"), value);
        }
        for wrong in [json!("never"), json!(true), json!({"max": 1}), json!({"policy": "always", "mx": 1}), json!(3)] {
            assert!(serde_json::from_value::<RestartSetting>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
