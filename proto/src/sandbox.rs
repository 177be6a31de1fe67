//! The confinement of processes, as it crosses the socket.

use crate::params::is_default;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The rights of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileMode {
    /// Everything: no confinement.
    Full,
    /// Writes in its roots and in a private `/tmp`.
    WorkspaceWrite,
    /// Writes in a private `/tmp` only.
    ReadOnly,
}

/// The network of a confined process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None.
    Off,
    /// A loopback of its own, shared by all processes of one `session_key`.
    Loopback,
    /// That of the machine.
    Full,
}

/// Declares the measures with their names on the wire, in one list.
macro_rules! measures {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Something that a sandbox enforces.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Measure { $($(#[$doc])* #[serde(rename = $name)] $variant,)* }

        impl Measure {
            /// All measures.
            pub const ALL: &[Measure] = &[$(Measure::$variant),*];

            /// Returns its name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Measure::$variant => $name,)* }
            }
        }
    };
}

measures! {
    /// Writes outside the roots fail.
    FsWrite = "fs_write",
    /// Changes of mode, owner, times and attributes outside the roots fail.
    FsMetadata = "fs_metadata",
    /// Protected paths inside a root stay as they are.
    Protect = "protect",
    /// Hidden paths cannot be read.
    Hide = "hide",
    /// `/tmp` is private.
    Tmp = "tmp",
    /// Only the network of the profile is in reach.
    Network = "network",
    /// The loopback is that of the session.
    Loopback = "loopback",
    /// Sockets of the host that have a path are out of reach.
    UnixSockets = "unix_sockets",
    /// Abstract sockets of the host are out of reach.
    AbstractSockets = "abstract_sockets",
    /// Processes outside get no signals.
    Signals = "signals",
    /// Processes outside cannot be traced.
    Ptrace = "ptrace",
    /// A program with the set-user-ID bit gets no privileges.
    Setuid = "setuid",
}

/// The mechanisms of the kernel that confine a process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Mechanisms {
    /// The version of Landlock that is used. Null: it is not.
    pub landlock: Option<u32>,
    /// A filter of system calls is used.
    pub seccomp: bool,
    /// The namespaces of its own: `user`, `mnt`, `net`.
    pub namespaces: Vec<String>,
}

/// A measure that is not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotEnforced {
    pub what: Measure,
    /// The reason, for a person.
    pub why: String,
}

/// A call that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedCall {
    /// The system call: `openat`, `connect`, ...
    pub op: String,
    /// The file concerned, resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The address concerned, of a network call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The path that the program named, if it led to `path` by a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The error that the program got.
    pub errno: i32,
    pub count: u64,
    /// RFC 3339, UTC.
    pub first_at: String,
}

/// The calls that the sandbox refused, as the kernel reported them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Denials {
    /// The measures whose refusals are seen: `fs_write`, `network`.
    pub observed: Vec<String>,
    /// Refusals that are not seen: `fs_read`.
    pub unknown: Vec<String>,
    /// All refusals.
    pub count: u64,
    /// The first 64 that differ, oldest first.
    pub list: Vec<RefusedCall>,
}

/// The confinement of a process. `kind` and `enforced` are always there, the rest unless `kind` is `none`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sandbox {
    /// `none`: the process is not confined. `namespaces`: by mounts of its own, and by what `by` has beside them. `landlock`: by
    /// Landlock without namespaces.
    pub kind: String,
    /// The profile that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The directories that it may write in, beside its private `/tmp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
    /// Paths inside a root that stay read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect: Option<Vec<String>>,
    /// Protected names that did not exist at its start, or that a link leads to: they are not protected. `/**` at the end: the
    /// directory was too large to search for repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unprotected: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The measures that are in force: `fs_write`, `hide`, ...
    pub enforced: Vec<String>,
    /// The measures that this machine cannot enforce.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_enforced: Option<Vec<NotEnforced>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Mechanisms>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denials: Option<Denials>,
}

impl Sandbox {
    /// Returns the report on a process that is not confined.
    pub fn none() -> Sandbox {
        Sandbox { kind: "none".into(), ..Sandbox::default() }
    }
}

/// A profile by its name, by its keys, or by a name and the keys that differ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxOptions {
    /// The profile to begin with. Default: that of a call without `sandbox`, or `workspace-write` if that is `full`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub profile: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Option<ProfileMode>,
    /// Directories to write in, beside the working directory and those of the profile. Absolute.
    #[serde(default, skip_serializing_if = "is_default")]
    pub roots: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: Option<Network>,
    /// Measures without which nothing starts, beside those of the profile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub require: Vec<Measure>,
    /// Sockets of the host that stay in reach, beside those of the profile.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unix_sockets: Vec<String>,
    /// The caches of cargo, npm, go, uv and pip are roots.
    #[serde(default, skip_serializing_if = "is_default")]
    pub caches: Option<bool>,
}

/// The value of the parameter `sandbox`: the name of a profile, or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxSetting {
    Name(String),
    Options(Box<SandboxOptions>),
}

impl Serialize for SandboxSetting {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            SandboxSetting::Name(name) => s.serialize_str(name),
            SandboxSetting::Options(options) => options.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for SandboxSetting {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = SandboxSetting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a profile, or {profile, mode, roots, network, require, unix_sockets, caches}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<SandboxSetting, E> {
                Ok(SandboxSetting::Name(name.into()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SandboxSetting, A::Error> {
                let options = SandboxOptions::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(SandboxSetting::Options(Box::new(options)))
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for SandboxSetting {
    fn schema_name() -> Cow<'static, str> {
        "SandboxSetting".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [g.subschema_for::<String>(), g.subschema_for::<SandboxOptions>()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_and_an_object_read_back_as_they_are() {
        for value in [json!("ci"), json!({}), json!({"profile": "ci", "network": "loopback", "roots": ["/srv"]})] {
            let read: SandboxSetting = serde_json::from_value(value.clone()).expect("a profile");
            assert_eq!(serde_json::to_value(read).expect("it is printed"), value);
        }
        for wrong in [json!(3), json!({"mod": "full"}), json!({"network": "on"}), json!({"require": ["all"]})] {
            assert!(serde_json::from_value::<SandboxSetting>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_without_a_sandbox_is_reported_as_before() {
        let report = serde_json::to_value(Sandbox::none()).expect("it is printed");
        assert_eq!(report, json!({"kind": "none", "enforced": []}));
    }
}
