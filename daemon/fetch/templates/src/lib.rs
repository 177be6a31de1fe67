//! Web providers as data: templates with JSON pointers, presets, config keys, and the requests of `toold-fetch`.
//! No HTTP here, so the daemon links this and not `toold-fetch`.

mod config;
mod preset;
mod render;
mod request;
mod template;

pub use config::{ExtractConfig, ExtractProviderName, KeySource, SearchConfig, SearchProviderName, WebConfig};
pub use render::HttpCall;
pub use request::{
    ErrorResponse, ExtractProvider, ExtractRequest, ExtractResponse, KEY_VAR, MAX_URLS, Page, SearchRequest,
    SearchResponse, WebData, WebHit,
};
pub use template::{ExtractTemplate, Extracted, HttpMethod, SearchTemplate};
