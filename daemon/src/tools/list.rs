//! `tools.list`: the tools that a caller may use, with their signatures for scripts. `toold_tools` chooses and formats.

use super::dispatcher::Dispatcher;
use super::provider::Provider;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::tools::{
    Signatures, Tool, ToolEntries, ToolsDetail, ToolsListParams, ToolsListResult, ToolsRefreshResult, Toolset,
};
use toold_proto::{ErrorKind, RpcError};

/// The time that a list waits for providers whose tools are not known yet.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

impl Dispatcher {
    /// Lets a provider list its tools again.
    pub async fn refresh(&self, name: &str) -> Result<ToolsRefreshResult, RpcError> {
        let Some(provider) = self.providers.all(None).into_iter().find(|provider| provider.name() == name) else {
            return Err(RpcError::new(ErrorKind::NotFound, format!("there is no provider {name:?}")));
        };
        let names = || provider.tools().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let before = names();
        provider.clone().refresh().await?;
        let tools = names();
        let missing = |of: &[String], other: &[String]| -> Vec<String> {
            of.iter().filter(|name| !other.contains(name)).cloned().collect()
        };
        let (added, removed) = (missing(&tools, &before), missing(&before, &tools));
        Ok(ToolsRefreshResult { tools, added, removed })
    }

    /// Lists tools. `only`: those that a script may use. A provider whose tools were never listed is asked for them.
    pub async fn list(&self, call: &ToolsListParams, only: Option<&[String]>) -> Result<ToolsListResult, RpcError> {
        let providers = self.providers.all(call.session_key.as_deref());
        if let Some(name) = &call.provider
            && !providers.iter().any(|provider| provider.name() == name)
        {
            return Err(RpcError::new(ErrorKind::NotFound, format!("there is no provider {name:?}")));
        }
        let is_wanted =
            |provider: &&Arc<dyn Provider>| call.provider.as_deref().is_none_or(|name| provider.name() == name);
        let wanted: Vec<&Arc<dyn Provider>> = providers.iter().filter(is_wanted).collect();
        let load = join_all(wanted.iter().map(|provider| (*provider).clone().load()));
        // Those that take longer are in a later list.
        let _ = tokio::time::timeout(LOAD_TIMEOUT, load).await;
        let is_enabled = |tool: &Tool| only.is_none_or(|only| only.contains(&tool.name));
        let tools = wanted.iter().flat_map(|provider| provider.tools());
        let enabled: Vec<Tool> = tools.filter(|tool| is_enabled(tool)).map(|tool| (*tool).clone()).collect();
        // Scripts have the tools under their own names only.
        let signatures = |tool: &Tool| (call.toolset == Toolset::Toold).then(|| signatures(tool));
        let mut listed = toold_tools::list(call, &enabled, &self.script_tools, signatures);
        if let ToolEntries::Listed(tools) = &mut listed.tools
            && call.detail == ToolsDetail::Full
            && call.toolset == Toolset::Toold
        {
            tools.iter_mut().for_each(|tool| tool.timeout_ms = tool.timeout_ms.or(self.call_timeout_ms));
        }
        Ok(listed)
    }
}

fn signatures(tool: &Tool) -> Signatures {
    Signatures {
        python: toold_stubs::python_signature(tool),
        javascript: toold_stubs::javascript_signature(tool),
        shell: toold_stubs::shell_signature(tool),
    }
}
