//! The tables `[mcp.NAME]`: servers of the Model Context Protocol whose tools can be called.

use super::Invalid;
use super::policy::{Policy, Profile, Sandbox, expand, find_profile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toold_proto::tools::Effect;
use toold_tools::{check_provider, identifier};

/// The time at which a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpStart {
    /// With the first call, and for its first list of tools.
    #[default]
    Lazy,
    /// With the daemon.
    Eager,
}

/// The source of a header's value. The value itself is in no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderSource {
    /// The variable of the daemon's environment that has the value.
    pub env: String,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The program and its arguments. Either this or `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a server that is reached by HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Variables that are not secret, with their values.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of variables of the daemon that it gets too.
    #[serde(default)]
    pub env_pass: Vec<String>,
    /// Headers of its requests. Only with `url`.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderSource>,
    /// The variable of the daemon's environment with the token of the header `Authorization: Bearer`. Only with `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_env: Option<String>,
    /// Its working directory. `~/` is the home directory. Default: that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The profile that confines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The tools that can be called. None: all that it lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Effects of tools whose own annotations are wrong or missing.
    #[serde(default)]
    pub effect_override: BTreeMap<String, Effect>,
    #[serde(default)]
    pub start: McpStart,
    /// Time without a call after which it is ended.
    #[serde(default = "McpConfig::default_idle_ms")]
    pub idle_ms: u64,
    /// Time in which it has to answer the handshake and list its tools.
    #[serde(default = "McpConfig::default_start_timeout_ms")]
    pub start_timeout_ms: u64,
    /// Time that a call may take. None: that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl McpConfig {
    fn default_idle_ms() -> u64 {
        600_000
    }

    fn default_start_timeout_ms() -> u64 {
        60_000
    }

    /// Returns a server with this command and nothing else.
    pub fn of_command(command: &[&str]) -> McpConfig {
        McpConfig {
            command: command.iter().map(|arg| (*arg).into()).collect(),
            url: None,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            headers: BTreeMap::new(),
            bearer_env: None,
            cwd: None,
            sandbox: None,
            tools: None,
            effect_override: BTreeMap::new(),
            start: McpStart::Lazy,
            idle_ms: McpConfig::default_idle_ms(),
            start_timeout_ms: McpConfig::default_start_timeout_ms(),
            timeout_ms: None,
        }
    }

    /// Returns the first wrong key, and the reason.
    fn first_invalid(&self) -> Option<(&'static str, String)> {
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        let is_header = |name: &String| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        };
        let has_nul = |text: &String| text.contains('\0');
        let is_http = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        let checks = [
            (self.command.is_empty() && self.url.is_none(), "command", "give command or url"),
            (!self.command.is_empty() && self.url.is_some(), "command", "give either command or url, not both"),
            (self.command.first().is_some_and(String::is_empty), "command", "its first text must name a program"),
            (self.command.iter().any(has_nul), "command", "must not contain a NUL character"),
            (self.url.as_deref().is_some_and(|url| !is_http(url)), "url", "must begin with http:// or https://"),
            (self.url.is_none() && !self.headers.is_empty(), "headers", "only a server with url has headers"),
            (self.url.is_none() && self.bearer_env.is_some(), "bearer_env", "only a server with url has a token"),
            (self.bearer_env.as_ref().is_some_and(|name| !is_name(name)), "bearer_env", "must name a variable"),
            (!self.headers.keys().all(is_header), "headers", "a name must be that of an HTTP header"),
            (!self.headers.values().all(|h| is_name(&h.env)), "headers", "env must name a variable"),
            (!self.env.keys().all(is_name), "env", "a name must not be empty and have no `=`"),
            (self.env.values().any(has_nul), "env", "must not contain a NUL character"),
            (!self.env_pass.iter().all(is_name), "env_pass", "a name must not be empty and have no `=`"),
            (self.idle_ms == 0, "idle_ms", "must be at least 1"),
            (self.start_timeout_ms == 0, "start_timeout_ms", "must be at least 1"),
            (self.timeout_ms == Some(0), "timeout_ms", "must be at least 1"),
        ];
        let first = checks.into_iter().find(|(is_bad, _, _)| *is_bad).map(|(_, key, why)| (key, why.to_string()));
        first.or_else(|| {
            let cwd = self.cwd.as_ref().filter(|cwd| !expand(cwd).is_absolute())?;
            Some(("cwd", format!("must be an absolute path or begin with ~/, not {cwd:?}")))
        })
    }
}

/// Returns the first value that cannot be used.
pub(super) fn first_invalid(
    servers: &BTreeMap<String, McpConfig>,
    policy: &Policy,
    sandbox: &Sandbox,
    profiles: &BTreeMap<String, Profile>,
) -> Option<Invalid> {
    let invalid = |key: String, why: String| Some(Invalid { key: key.into(), why: why.into() });
    for (name, server) in servers {
        if let Err(e) = check_provider(name) {
            return invalid(format!("mcp.{name}"), e.to_string());
        }
        let is_same = |other: &&String| *other != name && identifier(other) == identifier(name);
        if let Some(other) = servers.keys().find(is_same) {
            return invalid(
                format!("mcp.{name}"),
                format!("is {} in a script, as mcp.{other} is; rename one", identifier(name)),
            );
        }
        if let Some((key, why)) = server.first_invalid() {
            return invalid(format!("mcp.{name}.{key}"), why);
        }
        let Some(asked) = &server.sandbox else { continue };
        let key = format!("mcp.{name}.sandbox");
        let Some(profile) = find_profile(asked, profiles) else {
            return invalid(key, format!("there is no profile {asked:?}"));
        };
        let max = find_profile(&policy.max, profiles);
        if let Some(wider) = max.and_then(|max| profile.wider_than(&max, sandbox.caches)) {
            return invalid(key, format!("{asked} is wider than policy.max, {}, in {wider}", policy.max));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn check(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
        match config.first_invalid() {
            Some(invalid) => Err(format!("{}: {}", invalid.key, invalid.why)),
            None => Ok(config),
        }
    }

    #[test]
    fn a_server_needs_a_command_or_a_url_and_every_other_key_has_a_default() {
        let config = check("[mcp.files]\ncommand = [\"files-server\", \"/srv\"]").expect("valid");
        assert_eq!(config.mcp["files"], McpConfig::of_command(&["files-server", "/srv"]));
        let all = check(
            "[mcp.issues]\nurl = \"https://mcp.example.org/\"\nheaders = { X-Key = { env = \"KEY\" } }\nbearer_env = \"TOKEN\"\n\
             env = { LANG = \"C\" }\nenv_pass = [\"HTTPS_PROXY\"]\ncwd = \"~/src\"\nsandbox = \"workspace-write\"\ntools = [\"list\"]\n\
             effect_override = { list = \"read\" }\nstart = \"eager\"\nidle_ms = 1\nstart_timeout_ms = 2\ntimeout_ms = 3",
        );
        let server = &all.expect("valid").mcp["issues"];
        assert_eq!(server.headers, BTreeMap::from([("X-Key".into(), HeaderSource { env: "KEY".into() })]));
        assert_eq!(server.bearer_env.as_deref(), Some("TOKEN"));
        assert_eq!((server.start, server.effect_override["list"]), (McpStart::Eager, Effect::Read));
    }

    #[test]
    fn a_value_that_cannot_be_used_is_refused_with_its_key() {
        let refuse = |text: &str| check(&format!("[mcp.x]\n{text}")).expect_err("refused");
        assert_eq!(refuse(""), "mcp.x.command: give command or url");
        assert!(refuse("command = [\"a\"]\nurl = \"http://h\"").starts_with("mcp.x.command: give either"));
        assert!(refuse("command = [\"\"]").starts_with("mcp.x.command: its first text"));
        assert!(refuse("url = \"ftp://h\"").starts_with("mcp.x.url"));
        assert!(refuse("command = [\"a\"]\nheaders = { A = { env = \"K\" } }").starts_with("mcp.x.headers"));
        assert!(refuse("command = [\"a\"]\nbearer_env = \"K\"").starts_with("mcp.x.bearer_env"));
        assert!(refuse("url = \"http://h\"\nheaders = { \"a b\" = { env = \"K\" } }").starts_with("mcp.x.headers"));
        assert!(refuse("url = \"http://h\"\nheaders = { A = \"value\" }").contains("struct HeaderSource"));
        assert!(refuse("command = [\"a\"]\nenv_pass = [\"A=1\"]").starts_with("mcp.x.env_pass"));
        assert!(refuse("command = [\"a\"]\ncwd = \"src\"").starts_with("mcp.x.cwd"));
        assert!(refuse("command = [\"a\"]\nsandbox = \"tight\"").starts_with("mcp.x.sandbox: there is no profile"));
        assert!(refuse("command = [\"a\"]\nidle_ms = 0").starts_with("mcp.x.idle_ms"));
        assert!(refuse("command = [\"a\"]\neffect_override = { a = \"delete\" }").contains("unknown variant `delete`"));
        assert!(refuse("comand = [\"a\"]").contains("comand"));
        let wider =
            "[policy]\ndefault = \"read-only\"\nmax = \"read-only\"\n[mcp.x]\ncommand = [\"a\"]\nsandbox = \"full\"";
        assert!(check(wider).expect_err("refused").starts_with("mcp.x.sandbox: full is wider than policy.max"));
        let same = "[mcp.a-b]\ncommand = [\"a\"]\n[mcp.a_b]\ncommand = [\"a\"]";
        assert_eq!(check(same).expect_err("refused"), "mcp.a-b: is a_b in a script, as mcp.a_b is; rename one");
        for name in ["native", "Upper", "9", "\"a.b\"", "\"a/b\""] {
            let error = check(&format!("[mcp.{name}]\ncommand = [\"a\"]")).expect_err("refused");
            assert!(error.starts_with("mcp."), "{error}");
        }
    }
}
