//! `tools`: lists the tools that can be called.

use super::Context;
use crate::args;
use crate::error::CliError;
use crate::render::tools;
use toold_proto::api;
use toold_proto::tools::{Effect, ToolsDetail, ToolsFormat, ToolsListParams, Toolset};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only tools whose name or description has all of these terms
    #[arg(value_name = "QUERY")]
    terms: Vec<String>,
    /// Show whole descriptions, and the calls in Python, JavaScript and shell
    #[arg(short, long)]
    verbose: bool,
    /// Only tools of this provider: native, a client's or an MCP server's
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Only tools with this effect: read, write, exec or network
    #[arg(long, value_name = "EFFECT", hide_possible_values = true, value_parser = args::enum_value::<Effect>())]
    effect: Option<Effect>,
    /// Only tools that this session may call
    #[arg(long = "session", value_name = "KEY")]
    session_key: Option<String>,
    /// The toolset: toold, hermes or codex [default: toold]
    #[arg(long, value_name = "SET", hide_possible_values = true, value_parser = args::enum_value::<Toolset>())]
    toolset: Option<Toolset>,
    /// Print definitions for a model, as JSON: responses, chat, messages or mcp
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = args::enum_value::<ToolsFormat>())]
    format: Option<ToolsFormat>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let detail = if args.verbose { ToolsDetail::Full } else { ToolsDetail::Summary };
    let params = ToolsListParams {
        provider: args.provider,
        effect: args.effect,
        query: (!args.terms.is_empty()).then(|| args.terms.join(" ")),
        detail,
        session_key: args.session_key,
        toolset: args.toolset.unwrap_or_default(),
        format: args.format.unwrap_or_default(),
    };
    let is_for_model = params.format != ToolsFormat::Json;
    cx.query::<api::ToolsList>(&params, |result, style| match (is_for_model, args.verbose) {
        (true, _) => tools::value(&serde_json::json!(result.tools)),
        (false, true) => tools::details(result.tools.listed(), style),
        (false, false) => tools::list(result.tools.listed(), style),
    })
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;

    #[test]
    fn tools_are_a_table_and_with_v_their_signatures() {
        let summary = json!({"name": "web_search", "provider": "native", "description": "Search the web.",
            "effect": "network", "idempotent": true, "parallel": true, "state": "unavailable", "why": "web.search is not set"});
        let mut full = summary.clone();
        full["description"] = json!("Search the web.\nReturns pages.");
        full["signatures"] = json!({"python": "web_search(query: str) -> dict", "javascript": "web_search({query})",
            "shell": "toolctl tool web_search query=TEXT"});
        let fake = FakeDaemon::start(vec![vec![Reply::result(json!({ "tools": [summary] }))]]);
        let (code, out, err) = test_run(&fake, &["tools", "--effect", "network", "--provider", "native", "the", "web"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let table =
            "NAME        EFFECT   STATE        DESCRIPTION\nweb_search  network  unavailable  web.search is not set\n";
        assert_eq!(out, table);
        let asked = json!({"provider": "native", "effect": "network", "query": "the web"});
        assert_eq!(fake.next_request(), ("tools.list".into(), asked));
        let fake = FakeDaemon::start(vec![vec![Reply::result(json!({ "tools": [full] }))]]);
        let (_, out, _) = test_run(&fake, &["tools", "-v"]);
        let expected = "web_search  network, idempotent, unavailable\n    web.search is not set\n    Search the web.\n    Returns pages.\n    \
            web_search(query: str) -> dict\n    web_search({query})\n    toolctl tool web_search query=TEXT\n";
        assert_eq!(out, expected);
        assert_eq!(fake.next_request(), ("tools.list".into(), json!({"detail": "full"})));
    }

    #[test]
    fn a_format_prints_the_definitions_for_a_model() {
        let fake = FakeDaemon::start(vec![vec![Reply::result(json!({"tools": [{"name": "shell"}]}))]]);
        let (_, out, _) = test_run(&fake, &["tools", "--toolset", "codex", "--format", "messages"]);
        assert_eq!(out, "[\n  {\n    \"name\": \"shell\"\n  }\n]\n");
        let asked = json!({"toolset": "codex", "format": "messages"});
        assert_eq!(fake.next_request(), ("tools.list".into(), asked));
    }
}
