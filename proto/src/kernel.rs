//! Kernels: scripts that keep their state and run cells, as they cross the socket.

use crate::env::EnvMode;
use crate::fields::{FieldSet, ProcessFields, ProcessParams, WriteSelected};
use crate::id::ProcId;
use crate::params::{Limits, View, params};
use crate::pattern::Pattern;
use crate::process::Process;
use crate::results::{KillStatus, result};
use crate::sandbox::SandboxSetting;
use crate::script::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

params!(process KernelOpenParams {
    /// `python` or `javascript`. Default: `python`.
    language: Option<Language>,
    /// The tools that its cells may call. Default: `script.tools` of the config. An empty list: none.
    tools: Option<Vec<String>>,
    /// A value for the cells.
    args: Option<Value>,
    /// Absolute. Default: that of the session, else the home directory.
    cwd: Option<String>,
    /// Variables that override all others. Values are in memory only.
    env: BTreeMap<String, String>,
    env_mode: EnvMode,
    sandbox: Option<SandboxSetting>,
    limits: Limits,
    /// Kill the kernel after this time, also without a daemon. Default and 0: never.
    timeout_ms: Option<i64>,
    /// End the kernel after this time without a cell. 0: never. Default: `kernel.idle_ms` of the config.
    idle_ms: Option<u64>,
    /// The time of one call, unless the call has its own. Default: 300000.
    call_timeout_ms: Option<i64>,
    /// The most calls of a cell that names no number. Default: 500.
    max_calls: Option<u64>,
    /// The most calls at the same time; others wait. Default: 16.
    max_parallel: Option<u64>,
    /// The most bytes of `output` of a cell. Default: 50000.
    max_output_bytes: Option<u64>,
    /// The most bytes of `stderr` of a cell. Default: 10000.
    max_stderr_bytes: Option<u64>,
    /// Hide secrets in the results of cells. Default: true.
    redact: Option<bool>,
    name: Option<String>,
    task_id: Option<String>,
    session_key: Option<String>,
    labels: BTreeMap<String, String>,
    /// Publish a `completion` event when the kernel ends.
    notify: bool,
    watch: Vec<Pattern>,
    /// The backend that runs it. Default: `local`.
    backend: Option<String>,
    /// The same key again returns the same kernel, and starts nothing.
    request_id: Option<String>,
});

result!(process KernelOpenResult {
    /// True if this call started nothing: an earlier one with the same `request_id` did.
    #[serde(default)]
    existing: bool,
});

/// The treatment of a cell for a kernel that is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// It runs after the others.
    #[default]
    Queue,
    /// The call fails with `unavailable`, and `data.reason` is `busy`.
    Error,
}

params!(
    process KernelRunParams {
        required { code: String }
        /// The kernel. Either this or `name`.
        id: Option<String>,
        name: Option<String>,
        /// Interrupt the cell after this time; it is counted from its begin. 0: never. Default: 300000.
        timeout_ms: Option<i64>,
        /// Wait up to this time for the end of the cell before answering. Default: 60000.
        yield_ms: Option<u64>,
        /// The most calls of the cell. Default: that of the kernel.
        max_calls: Option<u64>,
        if_busy: IfBusy,
        /// The same key again returns the same cell, and runs nothing.
        request_id: Option<String>,
    }
);

params!(
    KernelInterruptParams {
        /// The kernel. Either this or `name`.
        id: Option<String>,
        name: Option<String>,
        /// Kill the kernel if the cell has not ended after this time. Default: 2000.
        grace_ms: Option<u64>,
    }
);

params!(
    KernelResetParams {
        /// The kernel. Either this or `name`.
        id: Option<String>,
        name: Option<String>,
        /// The time in which a running cell ends by itself when it is interrupted. Default: 2000.
        grace_ms: Option<u64>,
    }
);

params!(
    KernelCloseParams {
        /// The kernel. Either this or `name`.
        id: Option<String>,
        name: Option<String>,
        /// The time between SIGTERM and SIGKILL. Default: 5000.
        grace_ms: Option<u64>,
    }
);

/// The result of `kernel.interrupt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelInterruptResult {
    pub id: ProcId,
    /// The cell that was interrupted. Null: none ran.
    pub cell: Option<u64>,
    /// False: the interpreter did not stop in time and was killed, or it ended by the signal.
    pub state_kept: bool,
}

/// The result of `kernel.reset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelResetResult {
    pub id: ProcId,
    /// The number that the reset has among the cells.
    pub cell: u64,
    /// The cell that ran and was interrupted. Null: none ran.
    pub interrupted: Option<u64>,
    /// The cells that waited and will not run.
    pub dropped: Vec<u64>,
}

/// The result of `kernel.close`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCloseResult {
    pub id: ProcId,
    pub status: KillStatus,
    /// Processes of the tree that survived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<i32>,
}

/// The kernel that a process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessKernel {
    /// Cells that have started.
    pub cells: u64,
    /// A cell runs or waits.
    pub busy: bool,
    pub language: Option<Language>,
}
