//! The config file: every limit is a key with a default. An unknown key is refused by name.

pub mod mcp;
pub mod policy;
pub mod script;

use mcp::McpConfig;
use policy::{Fs, Patch, Policy, Profile, Sandbox};
use script::{Kernels, Redact, Script};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toold_fetch_templates::WebConfig;

/// The most searches at the same time: each takes one of the daemon's 16 blocking threads, and other work needs some.
pub const MAX_SEARCHES: u64 = 12;

/// The way shims are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimMode {
    /// Forked from the zygote; executed if the zygote has exited.
    Zygote,
    /// Always executed.
    Exec,
}

/// Limits on finished processes, counted from their exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    pub max_age_ms: u64,
    pub max_count: u64,
    pub max_bytes: u64,
}

/// Limits on watch matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    pub min_interval_ms: u64,
    pub strike_limit: u64,
    pub global_max: u64,
    pub global_window_ms: u64,
    pub global_cooldown_ms: u64,
}

/// The journal of events and its consumers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Maximum size of the journal; the oldest events are dropped first.
    pub max_bytes: u64,
    pub max_age_ms: u64,
    pub segment_bytes: u64,
    /// Time after which an unused consumer is removed.
    pub consumer_ttl_ms: u64,
    pub max_consumers: u64,
    /// Minimum `heartbeat_ms`.
    pub min_heartbeat_ms: u64,
    /// Output that a subscriber may be behind before it gets `lagged`.
    pub lag_bytes: u64,
    /// Publish an event for each call of a tool.
    pub calls: bool,
}

/// The longest texts of an `exec`, in bytes. A record keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exec {
    /// `argv` or `command`.
    pub max_argv_bytes: u64,
    /// `env`, names and values.
    pub max_env_bytes: u64,
    /// `cwd` or `shell`.
    pub max_path_bytes: u64,
    pub max_name_bytes: u64,
    /// `task_id`, `session_key` or `request_id`. Every event carries the first two.
    pub max_key_bytes: u64,
    pub max_labels_bytes: u64,
    pub max_watch_bytes: u64,
}

/// The environment of processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Env {
    /// Names that `clean` also passes.
    pub pass: Vec<String>,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Number of its processes that run at the same time.
    pub slots: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub max_message_bytes: u64,
    pub max_nesting: u64,
    pub max_connections: u64,
    pub max_requests_in_flight: u64,
    pub max_batch: u64,
    pub max_subscriptions: u64,
    pub max_outgoing_bytes: u64,
    pub first_byte_ms: u64,
    /// Web pages that may use HTTP and WebSocket: values of the header `Origin`.
    pub allowed_origins: Vec<String>,
    pub max_running: u64,
    /// Processes that wait for their turn in queues or for others.
    pub max_pending: u64,
    pub max_wait_ms: u64,
    pub log_max_bytes: u64,
    /// The longest time for which a shim holds its program back without a daemon that knows the reader.
    pub hold_timeout_ms: u64,
    /// Maximum size of the daemon's own log where `toolctl` started it. One older file is kept beside it.
    pub daemon_log_max_bytes: u64,
    /// Computing time of a search per MiB of output. A slower pattern is ended.
    pub max_search_ms_per_mib: u64,
    /// Searches that compute at the same time; others take turns with them.
    pub max_searches: u64,
    /// Time between SIGTERM and SIGKILL when a timeout ends a tree.
    pub timeout_grace_ms: u64,
    pub shim: ShimMode,
    /// A process is durable before it starts, and its exit before it is published.
    pub survive_power_cut: bool,
    pub retention: Retention,
    pub watch: Watch,
    pub events: Events,
    pub exec: Exec,
    pub env: Env,
    /// Queues by name.
    pub queues: BTreeMap<String, QueueConfig>,
    pub policy: Policy,
    pub sandbox: Sandbox,
    /// Profiles by name.
    pub profile: BTreeMap<String, Profile>,
    pub fs: Fs,
    pub patch: Patch,
    pub script: Script,
    pub kernel: Kernels,
    pub redact: Redact,
    /// The web tools.
    pub web: WebConfig,
    /// Servers of the Model Context Protocol by name.
    pub mcp: BTreeMap<String, McpConfig>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { max_age_ms: 86_400_000, max_count: 1000, max_bytes: 4 << 30 }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            min_interval_ms: 15_000,
            strike_limit: 3,
            global_max: 15,
            global_window_ms: 10_000,
            global_cooldown_ms: 30_000,
        }
    }
}

impl Default for Events {
    fn default() -> Self {
        Events {
            max_bytes: 256 << 20,
            max_age_ms: 7 * 86_400_000,
            segment_bytes: 4 << 20,
            consumer_ttl_ms: 7 * 86_400_000,
            max_consumers: 1024,
            min_heartbeat_ms: 60_000,
            lag_bytes: 1 << 20,
            calls: false,
        }
    }
}

impl Default for Exec {
    fn default() -> Self {
        Exec {
            max_argv_bytes: 2 << 20,
            max_env_bytes: 2 << 20,
            max_path_bytes: 4096,
            max_name_bytes: 64,
            max_key_bytes: 4096,
            max_labels_bytes: 65_536,
            max_watch_bytes: 65_536,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_message_bytes: 16 << 20,
            max_nesting: 128,
            max_connections: 1024,
            max_requests_in_flight: 256,
            max_batch: 256,
            max_subscriptions: 64,
            max_outgoing_bytes: toold_proto::DEFAULT_MAX_OUTGOING_BYTES,
            first_byte_ms: 30_000,
            allowed_origins: Vec::new(),
            max_running: 4096,
            max_pending: 10_000,
            max_wait_ms: 3_600_000,
            log_max_bytes: 256 << 20,
            hold_timeout_ms: 60_000,
            daemon_log_max_bytes: 4 << 20,
            max_search_ms_per_mib: 5000,
            max_searches: 4,
            timeout_grace_ms: 5000,
            shim: ShimMode::Zygote,
            survive_power_cut: true,
            retention: Retention::default(),
            watch: Watch::default(),
            events: Events::default(),
            exec: Exec::default(),
            env: Env::default(),
            queues: BTreeMap::new(),
            policy: Policy::default(),
            sandbox: Sandbox::default(),
            profile: BTreeMap::new(),
            fs: Fs::default(),
            patch: Patch::default(),
            script: Script::default(),
            kernel: Kernels::default(),
            redact: Redact::default(),
            web: WebConfig::default(),
            mcp: BTreeMap::new(),
        }
    }
}

const QUEUE_NAME_RULE: &str = "a name must be letters, digits or . _ - : @ +, and not begin with -";

fn is_queue_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-:@+".contains(&b);
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain)
}

/// A key whose value cannot be used, and the reason.
#[derive(Debug)]
pub struct Invalid {
    pub key: Cow<'static, str>,
    pub why: Cow<'static, str>,
}

/// The reason why a config was refused, and the place.
#[derive(Debug)]
pub enum ConfigError {
    Read { path: PathBuf, source: std::io::Error },
    Parse { path: PathBuf, source: Box<toml::de::Error> },
    Value { path: PathBuf, invalid: Invalid },
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigError::Read { path, source } => write!(f, "read {}: {source}", path.display()),
            ConfigError::Parse { path, source } => write!(f, "{}: {source}", path.display()),
            ConfigError::Value { path, invalid: Invalid { key, why } } => write!(f, "{}: {key}: {why}", path.display()),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Loads the config at `path`. A path that was given must exist; the default one need not.
    pub fn load(path: &Path, must_exist: bool) -> Result<Config, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !must_exist => return Ok(Config::default()),
            Err(source) => return Err(ConfigError::Read { path: path.into(), source }),
        };
        let config: Config = toml::from_str(&text)
            .map_err(|source| ConfigError::Parse { path: path.into(), source: Box::new(source) })?;
        match config.first_invalid() {
            Some(invalid) => Err(ConfigError::Value { path: path.into(), invalid }),
            None => Ok(config),
        }
    }

    /// Returns the first invalid value.
    fn first_invalid(&self) -> Option<Invalid> {
        let checks = [
            (self.max_message_bytes < 1024, "max_message_bytes", "must be at least 1024"),
            (self.max_message_bytes > 1 << 30, "max_message_bytes", "must be at most 1073741824"),
            (self.max_nesting < 8, "max_nesting", "must be at least 8"),
            (self.max_connections == 0, "max_connections", "must be at least 1"),
            (self.max_requests_in_flight == 0, "max_requests_in_flight", "must be at least 1"),
            (self.max_batch == 0, "max_batch", "must be at least 1"),
            (self.max_outgoing_bytes < 65_536, "max_outgoing_bytes", "must be at least 65536"),
            (self.first_byte_ms == 0, "first_byte_ms", "must be at least 1"),
            (self.max_wait_ms == 0, "max_wait_ms", "must be at least 1"),
            (self.events.segment_bytes < 65_536, "events.segment_bytes", "must be at least 65536"),
            (self.events.max_bytes < self.events.segment_bytes, "events.max_bytes", "must be at least segment_bytes"),
            (self.events.max_consumers == 0, "events.max_consumers", "must be at least 1"),
            (self.events.min_heartbeat_ms == 0, "events.min_heartbeat_ms", "must be at least 1"),
            (self.max_search_ms_per_mib == 0, "max_search_ms_per_mib", "must be at least 1"),
            (self.max_searches == 0, "max_searches", "must be at least 1"),
            (self.max_searches > MAX_SEARCHES, "max_searches", "must be at most 12"),
            (self.queues.values().any(|queue| queue.slots == 0), "queues", "slots must be at least 1"),
            (self.queues.keys().any(|name| !is_queue_name(name)), "queues", QUEUE_NAME_RULE),
            (self.exec.max_argv_bytes == 0, "exec.max_argv_bytes", "must be at least 1"),
            (self.exec.max_path_bytes == 0, "exec.max_path_bytes", "must be at least 1"),
            (self.exec.max_name_bytes == 0, "exec.max_name_bytes", "must be at least 1"),
            (self.exec.max_key_bytes == 0, "exec.max_key_bytes", "must be at least 1"),
            (self.log_max_bytes < 65_536, "log_max_bytes", "must be at least 65536"),
            (self.hold_timeout_ms == 0, "hold_timeout_ms", "must be at least 1"),
            (self.fs.read_max_chars == 0, "fs.read_max_chars", "must be at least 1"),
            (self.patch.max_bytes == 0, "patch.max_bytes", "must be at least 1"),
            (self.daemon_log_max_bytes < 65_536, "daemon_log_max_bytes", "must be at least 65536"),
        ];
        let first = checks.into_iter().find(|(bad, _, _)| *bad);
        let first = first.map(|(_, key, why)| Invalid { key: key.into(), why: why.into() });
        let first = first.or_else(|| policy::first_invalid(&self.policy, &self.sandbox, &self.profile));
        let first = first.or_else(|| script::first_invalid(&self.script, &self.kernel, &self.redact));
        let first = first.or_else(|| mcp::first_invalid(&self.mcp, &self.policy, &self.sandbox, &self.profile));
        first.or_else(|| {
            let wrong = self.web.check().err()?;
            let (key, why) = wrong.split_once(": ")?;
            Some(Invalid { key: key.to_owned().into(), why: why.to_owned().into() })
        })
    }

    /// Returns every key with its value, tables as `table.key`.
    pub fn effective(&self) -> BTreeMap<String, serde_json::Value> {
        let mut flat = BTreeMap::new();
        if let Ok(serde_json::Value::Object(all)) = serde_json::to_value(self) {
            for (key, value) in all {
                match value {
                    serde_json::Value::Object(table) => {
                        flat.extend(table.into_iter().map(|(k, v)| (format!("{key}.{k}"), v)));
                    }
                    plain => {
                        flat.insert(key, plain);
                    }
                }
            }
        }
        flat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str) -> String {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("writable");
        Config::load(&path, true).expect_err("refused").to_string()
    }

    #[test]
    fn the_documented_keys_load_and_everything_else_is_refused_by_name() {
        let documented = "max_message_bytes = 16777216\nmax_running = 4096\nmax_wait_ms = 3600000\n\
            log_max_bytes = 268435456\n[retention]\nmax_age_ms = 86400000\nmax_count = 1000\nmax_bytes = 4294967296\n\
            [watch]\nmin_interval_ms = 15000\nstrike_limit = 3\nglobal_max = 15\nglobal_window_ms = 10000\n\
            global_cooldown_ms = 30000\n[env]\npass = []\n";
        let parsed: Config = toml::from_str(documented).expect("valid");
        assert_eq!(parsed, Config::default());
        assert!(refuse("max_runing = 3").contains("max_runing"));
        assert!(refuse("[retention]\nmax_agee_ms = 3").contains("max_agee_ms"));
        assert!(refuse("max_running = \"many\"").contains("max_running"));
        assert!(refuse("max_batch = 0").contains("max_batch"));
        assert!(refuse("[queues.build]\nslots = 0").contains("slots must be at least 1"));
        assert!(refuse("[queues.build]\nslot = 1").contains("slot"));
        assert!(refuse("[queues.\"a b\"]\nslots = 1").contains("a name must be letters"));
    }
}
