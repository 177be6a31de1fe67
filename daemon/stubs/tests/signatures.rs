//! Signatures of tools, as `tools.list` shows them, and modules that two names could break.

use serde_json::json;
use toold_proto::tools::{Effect, Tool, ToolState};
use toold_stubs::{
    javascript_declarations, javascript_module, javascript_signature, python_module, python_signature, shell_signature,
};

fn tool(name: &str, schema: serde_json::Value) -> Tool {
    Tool {
        name: name.into(),
        provider: "p".into(),
        description: "Does it. */ \"\"\" \\".into(),
        input_schema: schema,
        output_schema: None,
        effect: Effect::Read,
        idempotent: true,
        parallel: true,
        timeout_ms: None,
        state: ToolState::Ready,
        why: None,
    }
}

#[test]
fn the_signatures_of_native_tools_are_those_of_the_contract() {
    let tools = toold_tools::native();
    let terminal = tools.iter().find(|tool| tool.name == "terminal").expect("terminal");
    assert_eq!(
        python_signature(terminal),
        "terminal(command: str, timeout: Optional[float] = None, workdir: Optional[str] = None, background: bool = False, \
         stdin: Optional[str] = None, check: bool = False) -> dict"
    );
    assert_eq!(
        javascript_signature(terminal),
        "terminal(args: { command: string; timeout?: number | null; workdir?: string | null; background?: boolean; \
         stdin?: string | null; check?: boolean }): Promise<any>"
    );
    assert_eq!(
        shell_signature(terminal),
        "toolctl tool terminal command=TEXT [timeout=N] [workdir=TEXT] [background=false] [stdin=TEXT] [check=false]"
    );
    let search = tools.iter().find(|tool| tool.name == "search_files").expect("search_files");
    let signature = python_signature(search);
    assert!(
        signature.starts_with("search_files(pattern: str, target: Literal[\"content\", \"files\"] = \"content\", "),
        "{signature}"
    );
    assert!(signature.ends_with("*, timeout: Optional[float] = None) -> dict"), "{signature}");
}

#[test]
fn a_tool_with_an_awkward_schema_has_a_signature() {
    let schema = json!({
        "type": "object",
        "properties": {"class": {"type": "string"}, "max-items": {"type": "integer", "default": 3}, "max_items": {"type": "integer"},
            "where": {"type": "object"}, "ids": {"type": "array", "items": {"type": "integer"}, "default": []}},
        "required": ["class"],
        "additionalProperties": {"type": "string"}
    });
    let tool = tool("gh.find-all", schema);
    assert_eq!(
        python_signature(&tool),
        "gh.find_all(class_: str, max_items: int = 3, max_items_2: Optional[int] = None, where: Optional[dict] = None, \
         ids: Optional[list] = None, *, timeout: Optional[float] = None, **more: Any) -> dict"
    );
    assert_eq!(
        javascript_signature(&tool),
        "gh.find_all(args: { class: string; \"max-items\"?: number; max_items?: number; where?: Record<string, unknown>; \
         ids?: Array<number>; [more: string]: unknown }): Promise<any>"
    );
    assert_eq!(
        shell_signature(&tool),
        "toolctl tool gh.find-all class=TEXT [max-items=3] [max_items=N] [where=JSON] [ids=[]]"
    );
}

#[test]
fn of_names_that_collide_the_first_is_taken() {
    let tools = ["a", "a", "b.c-d", "b.c_d", "b-.x", "a.x"].map(|name| tool(name, json!({"type": "object"})));
    let python = python_module(&tools);
    assert_eq!((python.matches("\ndef a(").count(), python.matches("def c_d(").count()), (1, 1));
    for text in [javascript_module(&tools), javascript_declarations(&tools)] {
        assert_eq!(
            (text.matches("export const a").count(), text.matches("  c_d: ").count()),
            (2, 1),
            "`a` and `args`: {text}"
        );
    }
}
