//! Tools: named functions that a script, an agent, an MCP client or a person may call.

use crate::approval::Caller;
use crate::params::params;
use crate::results::result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The kind of effect that a call of a tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It changes files or other state.
    Write,
    /// It runs programs.
    Exec,
    /// It uses the network.
    Network,
}

/// The readiness of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    Ready,
    /// Its provider starts at the first call, or is starting.
    Starting,
    /// It cannot be called now; `why` has the reason.
    Unavailable,
}

/// A named function, as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `[a-z][a-z0-9_]*`, or `provider.name` for a tool that is not native.
    pub name: String,
    /// `native`, or the name of the client or MCP server that has it.
    pub provider: String,
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub input_schema: Value,
    /// The JSON schema of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    pub effect: Effect,
    /// A call may be repeated without another effect.
    pub idempotent: bool,
    /// Calls may run at the same time.
    pub parallel: bool,
    /// The time that a call of it may take, unless the call has a limit of its own. None: the default of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub state: ToolState,
    /// The reason why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A set of tools with names and texts that certain models know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// The native tools and those of all providers.
    #[default]
    Toold,
    /// Those of the Hermes agent: `terminal`, `process`, `execute_code` and the tools for files and the web.
    Hermes,
    /// Those of codex: `exec_command`, `write_stdin`, `shell`, `apply_patch` and others.
    Codex,
}

/// The form of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsFormat {
    /// The form of toold, in `tools`.
    #[default]
    Json,
    /// `tools` of OpenAI's Responses API.
    Responses,
    /// `tools` of OpenAI's Chat Completions API.
    Chat,
    /// `tools` of Anthropic's Messages API.
    Messages,
    /// `tools` of MCP's `tools/list`.
    Mcp,
}

/// The amount of detail in a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolsDetail {
    /// Everything but schemas and signatures, with the first line of the description.
    #[default]
    Summary,
    /// Only names.
    Names,
    /// Everything.
    Full,
}

params!(ToolsListParams {
    /// Only tools of this provider: `native`, a client's or an MCP server's.
    provider: Option<String>,
    /// Only tools with this effect.
    effect: Option<Effect>,
    /// Only tools whose name or description has all of these terms, in any case.
    query: Option<String>,
    /// The detail of `tools`. Other formats are always full.
    detail: ToolsDetail,
    /// The session that calls. Only tools that it may call are listed.
    session_key: Option<String>,
    toolset: Toolset,
    format: ToolsFormat,
});

result!(
    /// The call of a tool in the languages of scripts.
    Signatures {
        python: String,
        javascript: String,
        shell: String,
    }
);

/// A tool in the detail that was asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListedTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub provider: Option<String>,
    /// With `summary` the first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Effect")]
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub parallel: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ToolState")]
    pub state: Option<ToolState>,
    /// The reason why it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub why: Option<String>,
    /// Only with `full`, like all that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Signatures")]
    pub signatures: Option<Signatures>,
}

/// Tools in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolEntries {
    /// In the form of toold.
    Listed(Vec<ListedTool>),
    /// In another `format`.
    Formatted(Vec<Value>),
}

/// Fields of a tool in the forms of other programs.
const FOREIGN_FIELDS: [&str; 4] = ["type", "function", "parameters", "inputSchema"];

impl<'de> Deserialize<'de> for ToolEntries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ToolEntries, D::Error> {
        let entries = Vec::<Value>::deserialize(deserializer)?;
        // Only the forms of other programs have these. That of Anthropic has no other fields than ours.
        let is_foreign = |entry: &Value| FOREIGN_FIELDS.iter().any(|field| entry.get(field).is_some());
        if entries.iter().any(is_foreign) {
            return Ok(ToolEntries::Formatted(entries));
        }
        let listed = entries.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        listed.map(ToolEntries::Listed).map_err(serde::de::Error::custom)
    }
}

impl ToolEntries {
    /// Returns the tools in the form of toold. Those in another form are left out.
    pub fn listed(&self) -> &[ListedTool] {
        match self {
            ToolEntries::Listed(tools) => tools,
            ToolEntries::Formatted(_) => &[],
        }
    }
}

result!(ToolsListResult {
    /// The tools. With another `format` than `json` they are ready for the field `tools` of a request to a model.
    tools: ToolEntries,
    /// With another `format`: the name for `tools.call` of each name in `tools` that differs from it. An API has fewer characters for names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<String, String>,
});

params!(ToolsCallParams {
    required {
        /// As `tools.list` has it: `terminal`, `linear.create_issue`.
        name: String,
    }
    /// Checked against the tool's `input_schema`.
    args: Map<String, Value>,
    /// The time that the call may take. Default: that of the tool, or `script.call_timeout_ms`.
    timeout_ms: Option<u64>,
    session_key: Option<String>,
    task_id: Option<String>,
    /// The directory of relative paths in `args`. Absolute.
    cwd: Option<String>,
    /// The same id again returns the same result, and nothing is done twice.
    request_id: Option<String>,
    /// The toolset of `name`. The result of `codex` is a text and that of `hermes` an object, in the form that their models know, also
    /// for a call that failed. An error of the call itself has that form in `data.text`.
    toolset: Toolset,
});

result!(ToolsCallResult {
    /// The result of the tool, by its `output_schema` if it has one.
    result: Value,
    /// The call, in the journal and for the provider.
    call: String,
});

params!(
    /// A tool that a client offers.
    ToolDefinition {
        required {
            /// The name without that of the provider.
            name: String,
            /// The JSON schema of its arguments, an object.
            input_schema: Value,
        }
        /// For models. The first line is a summary.
        description: String,
        /// The JSON schema of its result.
        output_schema: Option<Value>,
        /// Default: `write`.
        effect: Option<Effect>,
        /// A call may be repeated without another effect: after a reconnect it is sent again.
        idempotent: bool,
        /// Calls may be sent while others are running. Default: true.
        parallel: Option<bool>,
        /// The time that a call may take, unless it has a limit of its own.
        timeout_ms: Option<u64>,
    }
);

params!(ToolsRegisterParams {
    required {
        /// `[a-z][a-z0-9_]*`. The tools are `provider.name`.
        provider: String,
        /// All tools of the provider. They replace those of an earlier registration.
        #[schemars(title = "ToolDefinitions")]
        tools: Vec<ToolDefinition>,
    }
    /// Only this session may call them. Default: all.
    session_key: Option<String>,
    /// The time that calls wait for a connection that was lost. Default: 5000.
    reconnect_ms: Option<u64>,
    /// Replace another live connection that has the name.
    takeover: bool,
});

result!(ToolsRegisterResult {
    provider: String,
    /// The full names.
    tools: Vec<String>,
    /// True if another live connection had the name.
    replaced: bool,
});

params!(ToolsUnregisterParams {
    required {
        provider: String,
    }
});

result!(ToolsUnregisterResult {
    /// The full names that are not listed any more.
    tools: Vec<String>,
    /// Calls in flight that ended.
    ended: u64,
});

params!(ToolsRefreshParams {
    required {
        /// An MCP server.
        provider: String,
    }
});

result!(ToolsRefreshResult {
    /// The full names of all of its tools.
    tools: Vec<String>,
    /// Names that are new.
    added: Vec<String>,
    /// Names that are gone.
    removed: Vec<String>,
});

/// The method of the request that asks a client to run one of its tools.
pub const TOOLS_INVOKE: &str = "tools.invoke";

result!(
    /// The parameters of `tools.invoke`.
    ToolsInvokeParams {
        /// Unique for ever. The same call has the same one if it is sent again.
        call: String,
        /// The tool, without the name of the provider.
        name: String,
        args: Map<String, Value>,
        session_key: Option<String>,
        task_id: Option<String>,
        /// The time at which the call ends unanswered. RFC 3339, UTC. Null: none.
        deadline: Option<String>,
    }
);

/// The state of a provider of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderState {
    /// Its tools can be called.
    Ready,
    /// Its connection has ended. Calls wait for it for `reconnect_ms`, and its tools stay listed.
    Gone,
    /// Another connection took its name over.
    Replaced,
    /// It was unregistered, or forgotten after it had gone.
    Removed,
}

/// The method of the notification to a client whose provider another connection has taken over.
pub const TOOLS_REPLACED: &str = "tools.replaced";

result!(
    /// The parameters of `tools.replaced`.
    ToolsReplacedParams {
        /// The provider that this connection no longer serves.
        provider: String,
        /// The client that serves it now.
        by: Caller,
    }
);

result!(
    /// A client that serves tools, in `daemon.info`.
    ToolProviderInfo {
        provider: String,
        /// `ready` or `gone`.
        state: ProviderState,
        /// Number of its tools.
        tools: u64,
        /// The session that it serves. Null: every session.
        session_key: Option<String>,
        /// The client that serves it, or served it last.
        client: Caller,
        /// Calls that were sent to it and have no answer yet.
        in_flight: u64,
        /// Answers of its connections that no open call had asked for: sent twice, late or with an unknown id.
        ignored_answers: u64,
    }
);
