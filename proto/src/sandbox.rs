//! The confinement of processes, as it crosses the socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct Denial {
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
    pub list: Vec<Denial>,
}
