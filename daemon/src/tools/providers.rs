//! The table of providers: the native tools, those of clients, those of MCP servers.

use super::provider::Provider;
use std::sync::{Arc, OnceLock};
use toold_proto::tools::{Tool, Toolset};

/// The name of the provider of native tools.
pub const NATIVE: &str = "native";

/// Providers that come and go.
pub trait ProviderSource: Send + Sync {
    /// Returns the providers that calls of this session may use.
    fn providers(&self, session_key: Option<&str>) -> Vec<Arc<dyn Provider>>;

    /// Returns true if it has a provider of this name, of any session.
    fn has(&self, provider: &str) -> bool;

    /// Returns a provider that is not there now and may come: calls of it wait.
    fn expect(&self, _provider: &str, _session_key: Option<&str>) -> Option<Arc<dyn Provider>> {
        None
    }
}

/// All providers.
#[derive(Default)]
pub struct Providers {
    native: OnceLock<Arc<dyn Provider>>,
    sources: OnceLock<Vec<Arc<dyn ProviderSource>>>,
    toolsets: OnceLock<Vec<(Toolset, Arc<dyn Provider>)>>,
}

impl Providers {
    /// Sets the providers, once.
    pub fn set(&self, native: Arc<dyn Provider>, sources: Vec<Arc<dyn ProviderSource>>) {
        let _ = self.native.set(native);
        let _ = self.sources.set(sources);
    }

    /// Sets the providers of the toolsets, once. Each has the tools of one, under their names there.
    pub fn set_toolsets(&self, toolsets: Vec<(Toolset, Arc<dyn Provider>)>) {
        let _ = self.toolsets.set(toolsets);
    }

    /// Returns all providers for a session, the native one first.
    pub fn all(&self, session_key: Option<&str>) -> Vec<Arc<dyn Provider>> {
        let sources = self.sources.get().into_iter().flatten();
        let others = sources.flat_map(|source| source.providers(session_key));
        self.native.get().cloned().into_iter().chain(others).collect()
    }

    /// Returns true if a tool of this name exists, but not for every session.
    pub fn is_hidden(&self, name: &str) -> bool {
        let provider = name.split_once('.').map(|(provider, _)| provider);
        provider.is_some_and(|provider| self.sources.get().into_iter().flatten().any(|source| source.has(provider)))
    }

    /// Returns the provider of a tool whose caller had the right to use it before, if it is not there now: a client that has not
    /// come back since the daemon started.
    pub fn expect(&self, name: &str, session_key: Option<&str>) -> Option<Arc<dyn Provider>> {
        let (provider, _) = name.split_once('.')?;
        let sources = self.sources.get()?;
        if sources.iter().any(|source| source.has(provider)) {
            return None;
        }
        sources.iter().find_map(|source| source.expect(provider, session_key))
    }

    /// Returns the reason why the tools of the provider of this name are not known.
    pub fn trouble(&self, name: &str, session_key: Option<&str>) -> Option<String> {
        let (provider, _) = name.split_once('.')?;
        self.all(session_key).into_iter().find(|known| known.name() == provider)?.trouble()
    }

    /// Finds a tool by its name in a toolset.
    pub async fn find_in(
        &self,
        toolset: Toolset,
        name: &str,
        session_key: Option<&str>,
    ) -> Option<(Arc<dyn Provider>, Arc<Tool>)> {
        if toolset == Toolset::Toold {
            return self.find(name, session_key).await;
        }
        let (_, provider) = self.toolsets.get()?.iter().find(|(of, _)| *of == toolset)?;
        Some((provider.clone(), provider.tool(name)?))
    }

    /// Finds a tool by its full name. A provider whose tools are not known yet is asked for them.
    pub async fn find(&self, name: &str, session_key: Option<&str>) -> Option<(Arc<dyn Provider>, Arc<Tool>)> {
        let provider = match name.split_once('.') {
            None => self.native.get().cloned(),
            Some((provider, _)) => {
                self.all(session_key).into_iter().find(|known| known.name() == provider && provider != NATIVE)
            }
        }?;
        if let Some(tool) = provider.tool(name) {
            return Some((provider, tool));
        }
        provider.clone().load().await;
        provider.tool(name).map(|tool| (provider, tool))
    }
}
