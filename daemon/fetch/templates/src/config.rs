//! The config keys `[web.search]` and `[web.extract]`, and the requests that they make.

use crate::preset;
use crate::request::{
    DEFAULT_MAX_BYTES, DEFAULT_TIMEOUT_MS, ExtractProvider, ExtractRequest, KEY_VAR, MAX_URLS, SearchRequest,
};
use crate::template::{ExtractTemplate, SearchTemplate};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toold_proto::{ErrorKind, RpcError};

/// `[web]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    pub search: SearchConfig,
    pub extract: ExtractConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchProviderName {
    Searxng,
    Brave,
    Tavily,
    Exa,
    Firecrawl,
    /// `[web.search.template]`
    Template,
}

/// `[web.search]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchConfig {
    /// Without one `web_search` is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SearchProviderName>,
    /// Address of the provider: needed for SearXNG, its own for the others.
    pub url: String,
    /// Environment variable of the daemon that has the key.
    pub key_env: String,
    /// Program that prints the key.
    pub key_command: Vec<String>,
    pub timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<SearchTemplate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractProviderName {
    /// This machine fetches pages itself.
    #[default]
    Direct,
    Firecrawl,
    Tavily,
    /// `[web.extract.template]`
    Template,
}

/// `[web.extract]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExtractConfig {
    pub provider: ExtractProviderName,
    /// Address of the provider, in place of its own.
    pub url: String,
    pub key_env: String,
    pub key_command: Vec<String>,
    /// `host:port` that may be private or have another port than 80 and 443.
    pub allow: Vec<String>,
    /// `host`, with all below it, or `host:port`.
    pub deny: Vec<String>,
    /// Bytes of a page, after decompression too.
    pub max_bytes: u64,
    /// Time for a page, redirects and extraction included.
    pub timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ExtractTemplate>,
}

/// The place from which the daemon takes a key, before it passes the key in [`KEY_VAR`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource<'a> {
    None,
    Env(&'a str),
    Command(&'a [String]),
}

impl Default for SearchConfig {
    fn default() -> SearchConfig {
        SearchConfig {
            provider: None,
            url: String::new(),
            key_env: String::new(),
            key_command: Vec::new(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            template: None,
        }
    }
}

impl Default for ExtractConfig {
    fn default() -> ExtractConfig {
        ExtractConfig {
            provider: ExtractProviderName::Direct,
            url: String::new(),
            key_env: String::new(),
            key_command: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            max_bytes: DEFAULT_MAX_BYTES,
            timeout_ms: DEFAULT_TIMEOUT_MS,
            template: None,
        }
    }
}

impl WebConfig {
    /// Checks the keys against each other. The message begins with the key that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (search, extract) = (&self.search, &self.extract);
        check_part("web.search", &search.url, &search.key_env, &search.key_command, search.timeout_ms)?;
        check_part("web.extract", &extract.url, &extract.key_env, &extract.key_command, extract.timeout_ms)?;
        if search.provider == Some(SearchProviderName::Template) && search.template.is_none() {
            return Err("web.search.template: is missing, and web.search.provider names it".into());
        }
        if extract.provider == ExtractProviderName::Template && extract.template.is_none() {
            return Err("web.extract.template: is missing, and web.extract.provider names it".into());
        }
        if extract.max_bytes == 0 {
            return Err("web.extract.max_bytes: must be at least 1".into());
        }
        if let Some(entry) = extract.allow.iter().find(|entry| !has_port(entry)) {
            return Err(format!("web.extract.allow: must be host:port, not `{entry}`"));
        }
        search.template.as_ref().map_or(Ok(()), |template| template.check("web.search.template"))?;
        extract.template.as_ref().map_or(Ok(()), |template| template.check("web.extract.template"))
    }
}

impl SearchConfig {
    /// Makes the template of the provider. Without one the error names the key to set.
    pub fn resolve(&self) -> Result<SearchTemplate, RpcError> {
        let base = Some(self.url.as_str()).filter(|url| !url.is_empty());
        match (self.provider, &self.template) {
            (None, _) => Err(unavailable(
                "no search provider is configured; set `web.search.provider`, for example to \"searxng\" with `web.search.url`",
            )),
            (Some(SearchProviderName::Searxng), _) => base.map(preset::searxng).ok_or_else(|| {
                unavailable(
                    "the address of SearXNG is not configured; set `web.search.url`, as \"http://127.0.0.1:8888\"",
                )
            }),
            (Some(SearchProviderName::Brave), _) => Ok(preset::brave(base)),
            (Some(SearchProviderName::Tavily), _) => Ok(preset::tavily(base)),
            (Some(SearchProviderName::Exa), _) => Ok(preset::exa(base)),
            (Some(SearchProviderName::Firecrawl), _) => Ok(preset::firecrawl(base)),
            (Some(SearchProviderName::Template), Some(template)) => Ok(template.clone()),
            (Some(SearchProviderName::Template), None) => Err(unavailable("`web.search.template` is missing")),
        }
    }

    pub fn key(&self) -> KeySource<'_> {
        key_source(&self.key_env, &self.key_command)
    }

    pub fn request(&self, query: &str, limit: u32) -> Result<SearchRequest, RpcError> {
        if query.trim().is_empty() {
            return Err(RpcError::param("query", "must not be empty"));
        }
        if limit == 0 {
            return Err(RpcError::too_small("limit", 1, 0));
        }
        Ok(SearchRequest {
            query: query.into(),
            limit,
            provider: self.resolve()?,
            key_env: key_var(&self.key()),
            timeout_ms: self.timeout_ms,
            max_bytes: DEFAULT_MAX_BYTES,
        })
    }
}

impl ExtractConfig {
    pub fn resolve(&self) -> Result<ExtractProvider, RpcError> {
        let base = Some(self.url.as_str()).filter(|url| !url.is_empty());
        let template = match (self.provider, &self.template) {
            (ExtractProviderName::Direct, _) => return Ok(ExtractProvider::Direct),
            (ExtractProviderName::Firecrawl, _) => preset::firecrawl_extract(base),
            (ExtractProviderName::Tavily, _) => preset::tavily_extract(base),
            (ExtractProviderName::Template, Some(template)) => template.clone(),
            (ExtractProviderName::Template, None) => return Err(unavailable("`web.extract.template` is missing")),
        };
        Ok(ExtractProvider::Template(Box::new(template)))
    }

    pub fn key(&self) -> KeySource<'_> {
        key_source(&self.key_env, &self.key_command)
    }

    pub fn request(
        &self,
        urls: Vec<String>,
        char_limit: usize,
        out_dir: Option<PathBuf>,
    ) -> Result<ExtractRequest, RpcError> {
        if urls.is_empty() || urls.len() > MAX_URLS {
            return Err(RpcError::param("urls", format!("must have 1 to {MAX_URLS} addresses, not {}", urls.len())));
        }
        Ok(ExtractRequest {
            urls,
            char_limit,
            out_dir,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            max_bytes: self.max_bytes,
            timeout_ms: self.timeout_ms,
            provider: self.resolve()?,
            key_env: key_var(&self.key()),
        })
    }
}

fn unavailable(message: &str) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, message)
}

fn key_source<'a>(env: &'a str, command: &'a [String]) -> KeySource<'a> {
    match (env, command) {
        ("", []) => KeySource::None,
        ("", command) => KeySource::Command(command),
        (env, _) => KeySource::Env(env),
    }
}

fn key_var(source: &KeySource) -> Option<String> {
    if *source == KeySource::None { None } else { Some(KEY_VAR.into()) }
}

fn check_part(part: &str, url: &str, env: &str, command: &[String], timeout_ms: u64) -> Result<(), String> {
    let is_http = url.is_empty() || url.starts_with("http://") || url.starts_with("https://");
    if !is_http {
        return Err(format!("{part}.url: must begin with http:// or https://"));
    }
    if !env.is_empty() && !command.is_empty() {
        return Err(format!("{part}.key_command: is set together with key_env; keep one of them"));
    }
    if timeout_ms == 0 {
        return Err(format!("{part}.timeout_ms: must be at least 1"));
    }
    Ok(())
}

fn has_port(entry: &str) -> bool {
    entry.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<WebConfig, String> {
        let config: WebConfig = toml::from_str(text).map_err(|e| e.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn the_page_of_the_contract_is_read() {
        let text = r#"
            [search]
            provider = "searxng"
            url = "http://127.0.0.1:8888"
            key_env = ""
            [extract]
            provider = "direct"
            allow = ["127.0.0.1:8080", "[::1]:8080"]
            deny = ["example.com"]
            max_bytes = 5242880
            timeout_ms = 20000
        "#;
        let config = config(text).expect("a config");
        let request = config.search.request("rust", 5).expect("a request");
        assert_eq!(request.provider.url, "http://127.0.0.1:8888/search?q={query}&format=json");
        assert_eq!(request.key_env, None);
        let request = config.extract.request(vec!["https://a.test".into()], 100, None).expect("a request");
        assert_eq!((request.provider, request.allow.len()), (ExtractProvider::Direct, 2));
    }

    #[test]
    fn without_a_provider_the_error_names_the_key() {
        let config = config("").expect("defaults");
        assert_eq!(config, WebConfig::default());
        let error = config.search.request("rust", 5).expect_err("none");
        assert_eq!(error.kind(), Some(ErrorKind::Unavailable));
        assert!(error.message.contains("`web.search.provider`"), "{}", error.message);
    }

    #[test]
    fn a_wrong_key_is_named() {
        for (text, named) in [
            ("[search]\nprovider = 'template'", "web.search.template: is missing"),
            ("[extract]\nprovider = 'template'", "web.extract.template: is missing"),
            ("[extract]\nallow = ['example.com']", "web.extract.allow: must be host:port, not `example.com`"),
            ("[search]\nurl = '127.0.0.1:1'", "web.search.url"),
            ("[search]\nkey_env = 'A'\nkey_command = ['b']", "web.search.key_command"),
            ("[search]\ncookies = true", "unknown field `cookies`"),
        ] {
            let message = config(text).expect_err(text);
            assert!(message.contains(named), "{text}: {message}");
        }
    }

    #[test]
    fn a_template_of_the_user_and_its_key_reach_the_request() {
        let text = r#"
            [search]
            provider = "template"
            key_command = ["pass", "show", "brave"]
            [search.template]
            method = "POST"
            url = "https://s.test/{query}"
            headers = { x-key = "{key}" }
            body = { q = "{query}", n = "{limit}" }
            results = "/web/results"
            link = "/url"
        "#;
        let config = config(text).expect("a config");
        let request = config.search.request("rust", 5).expect("a request");
        assert_eq!(request.key_env.as_deref(), Some(KEY_VAR));
        assert_eq!(config.search.key(), KeySource::Command(&["pass".into(), "show".into(), "brave".into()]));
        assert_eq!(request.provider.results, "/web/results");
    }

    #[test]
    fn parameters_are_checked_before_anything_runs() {
        let config = WebConfig::default();
        assert_eq!(config.search.request(" ", 5).expect_err("empty").kind(), Some(ErrorKind::InvalidParams));
        let urls = vec!["https://a.test".to_string(); 11];
        let error = config.extract.request(urls, 1, None).expect_err("too much");
        assert_eq!(error.message, "urls: must have 1 to 10 addresses, not 11");
    }
}
