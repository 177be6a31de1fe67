//! The answer of `tools.list`: which tools, in which detail and form.

use crate::format::format;
use crate::toolset::toolset;
use toold_proto::tools::{
    ListedTool, Signatures, Tool, ToolEntries, ToolsDetail, ToolsFormat, ToolsListParams, ToolsListResult,
};

/// Lists tools. `enabled` are those that the session may call, `in_scripts` the names of those that scripts get; `signatures`
/// renders the call of one for scripts.
pub fn list(
    params: &ToolsListParams,
    enabled: &[Tool],
    in_scripts: &[String],
    signatures: impl Fn(&Tool) -> Option<Signatures>,
) -> ToolsListResult {
    let tools: Vec<Tool> =
        toolset(params.toolset, enabled, in_scripts).into_iter().filter(|tool| is_selected(params, tool)).collect();
    if params.format != ToolsFormat::Json {
        let formatted = format(params.format, &tools);
        return ToolsListResult { tools: ToolEntries::Formatted(formatted.definitions), names: formatted.names };
    }
    let tools = tools.into_iter().map(|tool| listed(tool, params.detail, &signatures)).collect();
    ToolsListResult { tools: ToolEntries::Listed(tools), names: Default::default() }
}

fn is_selected(params: &ToolsListParams, tool: &Tool) -> bool {
    let has_terms = |query: &str| {
        let text = format!("{} {}", tool.name, tool.description).to_lowercase();
        query.to_lowercase().split_whitespace().all(|term| text.contains(term))
    };
    params.provider.as_ref().is_none_or(|provider| *provider == tool.provider)
        && params.effect.is_none_or(|effect| effect == tool.effect)
        && params.query.as_deref().is_none_or(has_terms)
}

fn listed(tool: Tool, detail: ToolsDetail, signatures: impl Fn(&Tool) -> Option<Signatures>) -> ListedTool {
    if detail == ToolsDetail::Names {
        return ListedTool { name: tool.name, ..ListedTool::default() };
    }
    let is_full = detail == ToolsDetail::Full;
    let signatures = if is_full { signatures(&tool) } else { None };
    let summary = tool.description.lines().next().unwrap_or_default().to_owned();
    ListedTool {
        name: tool.name,
        provider: Some(tool.provider),
        description: Some(if is_full { tool.description } else { summary }),
        effect: Some(tool.effect),
        idempotent: Some(tool.idempotent),
        parallel: Some(tool.parallel),
        timeout_ms: tool.timeout_ms,
        state: Some(tool.state),
        why: tool.why,
        input_schema: is_full.then_some(tool.input_schema),
        output_schema: tool.output_schema.filter(|_| is_full),
        signatures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::native;
    use toold_proto::tools::{Effect, Toolset};

    fn names(params: ToolsListParams) -> Vec<String> {
        list(&params, &native(), &[], |_| None).tools.listed().iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn a_list_is_selected_by_provider_effect_and_terms() {
        let all = ToolsListParams::default();
        assert_eq!(names(all.clone()).len(), 7);
        assert_eq!(
            names(ToolsListParams { effect: Some(Effect::Network), ..all.clone() }),
            ["web_search", "web_extract"]
        );
        assert_eq!(names(ToolsListParams { query: Some("WEB markdown".into()), ..all.clone() }), ["web_extract"]);
        assert_eq!(names(ToolsListParams { provider: Some("linear".into()), ..all.clone() }), [""; 0]);
        assert_eq!(
            names(ToolsListParams { toolset: Toolset::Codex, query: Some("stdin".into()), ..all }),
            ["write_stdin"]
        );
    }

    #[test]
    fn detail_decides_which_fields_are_there() {
        let one = |detail| {
            let params = ToolsListParams { detail, query: Some("terminal".into()), ..ToolsListParams::default() };
            let signatures =
                |_: &Tool| Some(Signatures { python: "p".into(), javascript: "j".into(), shell: "s".into() });
            list(&params, &native(), &[], signatures).tools.listed()[0].clone()
        };
        assert_eq!(one(ToolsDetail::Names), ListedTool { name: "terminal".into(), ..ListedTool::default() });
        let summary = one(ToolsDetail::Summary);
        assert!(summary.input_schema.is_none() && summary.signatures.is_none() && summary.effect == Some(Effect::Exec));
        let full = one(ToolsDetail::Full);
        assert!(full.input_schema.is_some() && full.output_schema.is_some() && full.signatures.is_some());
    }

    #[test]
    fn another_format_has_the_tools_in_it() {
        let params = ToolsListParams { format: ToolsFormat::Responses, ..ToolsListParams::default() };
        let result = list(&params, &native(), &[], |_| None);
        let ToolEntries::Formatted(tools) = result.tools else { panic!("{:?}", result.tools) };
        assert_eq!(tools.len(), 7);
    }
}
