//! The native tools: names, schemas, effects. The daemon has the functions behind them.

use serde_json::{Value, json};
use toold_proto::tools::{Effect, Tool, ToolState};

/// The provider of the tools that the daemon has itself. No other provider has this name.
pub const NATIVE_PROVIDER: &str = "native";

/// URLs that one call of `web_extract` takes.
pub const MAX_EXTRACT_URLS: usize = 10;
/// Results of one call of `web_search`.
pub const MAX_WEB_RESULTS: u64 = 20;
/// Lines of one call of `read_file`, as of `fs.read`.
pub const MAX_READ_LINES: u64 = 2000;
/// Results of one call of `search_files`, as of `fs.search`.
pub const MAX_SEARCH_RESULTS: u64 = 10_000;
/// Lines of context around a match, as of `fs.search`.
pub const MAX_CONTEXT_LINES: u64 = 20;

/// Returns the native tools, all of them ready, in the order in which they are listed.
pub fn native() -> Vec<Tool> {
    vec![terminal(), read_file(), write_file(), search_files(), patch(), web_search(), web_extract()]
}

/// Returns true for the name of a native tool.
pub fn is_native(name: &str) -> bool {
    matches!(name, "terminal" | "read_file" | "write_file" | "search_files" | "patch" | "web_search" | "web_extract")
}

/// Properties of a call of a tool, for those who schedule and repeat it.
struct Traits {
    effect: Effect,
    idempotent: bool,
}

const READS: Traits = Traits { effect: Effect::Read, idempotent: true };
const WRITES: Traits = Traits { effect: Effect::Write, idempotent: false };
const RUNS: Traits = Traits { effect: Effect::Exec, idempotent: false };
const FETCHES: Traits = Traits { effect: Effect::Network, idempotent: true };

fn tool(name: &str, traits: Traits, description: &str, input_schema: Value, output_schema: Value) -> Tool {
    Tool {
        name: name.into(),
        provider: NATIVE_PROVIDER.into(),
        description: description.into(),
        input_schema,
        output_schema: Some(output_schema),
        effect: traits.effect,
        idempotent: traits.idempotent,
        parallel: true,
        timeout_ms: None,
        state: ToolState::Ready,
        why: None,
    }
}

/// Makes the schema of arguments. A parameter that is not listed is refused, never ignored.
fn arguments(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Makes the schema of a result. It may get more fields.
fn fields(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn terminal() -> Tool {
    tool(
        "terminal",
        RUNS,
        "Run a shell command and wait for it. Returns its output (stdout and stderr together) and its real exit code. \
         With background=true it returns at once and the process goes on.",
        arguments(
            &["command"],
            json!({
                "command": {"type": "string", "minLength": 1, "description": "The command line, for the shell."},
                "timeout": {"type": ["number", "null"], "exclusiveMinimum": 0, "default": null,
                    "description": "Seconds. Then the command and everything that it started is killed. Default: the time that the call has."},
                "workdir": {"type": ["string", "null"], "default": null,
                    "description": "The directory to run it in. Default: that of the caller."},
                "background": {"type": "boolean", "default": false,
                    "description": "Return the process at once and let it go on; it outlives the caller. For servers and watchers."},
                "stdin": {"type": ["string", "null"], "default": null,
                    "description": "Text for its standard input. Default: none, it reads end-of-file."},
                "check": {"type": "boolean", "default": false,
                    "description": "Make an exit code other than 0 an error."}
            }),
        ),
        fields(
            &["process"],
            json!({
                "output": {"type": "string", "description": "Output of both streams in the order of their arrival."},
                "exit_code": {"type": ["integer", "null"], "description": "Its own; 128+n after signal n. Null: not known."},
                "signal": {"type": "string", "description": "The signal that ended it."},
                "timed_out": {"type": "boolean"},
                "process": {"type": "string", "description": "The id of the process, for its whole output."},
                "truncated": {"type": "boolean", "description": "The output is longer; its middle is left out here."}
            }),
        ),
    )
}

fn read_file() -> Tool {
    tool(
        "read_file",
        READS,
        "Read lines of a text file, with the hash of the whole file.",
        arguments(
            &["path"],
            json!({
                "path": {"type": "string", "minLength": 1, "description": "Absolute, or relative to the working directory."},
                "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line, from 1 on."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_READ_LINES, "default": 500,
                    "description": "Number of lines."}
            }),
        ),
        fields(
            &["path", "content", "total_lines", "bytes", "sha256", "truncated"],
            json!({
                "path": {"type": "string", "description": "Absolute, without links."},
                "content": {"type": "string", "description": "The lines, with their line ends. Empty for a binary file."},
                "total_lines": {"type": ["integer", "null"], "description": "Lines of the file. Null: it is too large to count."},
                "bytes": {"type": "integer", "description": "Size of the file."},
                "sha256": {"type": ["string", "null"], "description": "Hash of the whole file. Null: it is too large."},
                "truncated": {"type": "boolean", "description": "The file goes on after content."},
                "next_offset": {"type": ["integer", "null"], "description": "offset of the next page."},
                "binary": {"type": "boolean", "description": "The file is not text."}
            }),
        ),
    )
}

fn write_file() -> Tool {
    tool(
        "write_file",
        WRITES,
        "Write a whole file: it gets this content or keeps its old one. Creates missing directories.",
        arguments(
            &["path", "content"],
            json!({
                "path": {"type": "string", "minLength": 1, "description": "Absolute, or relative to the working directory."},
                "content": {"type": "string", "description": "The whole new content."},
                "expect": {"type": ["string", "null"], "default": null,
                    "description": "The sha256 that the file must have now, or \"absent\". Otherwise nothing is written."}
            }),
        ),
        fields(
            &["path", "bytes", "sha256", "before_sha256", "diff"],
            json!({
                "path": {"type": "string", "description": "Absolute, without links."},
                "bytes": {"type": "integer"},
                "sha256": {"type": "string"},
                "before_sha256": {"type": ["string", "null"], "description": "Hash of the old content. Null: the file is new."},
                "diff": {"type": ["string", "null"], "description": "The change as a unified diff. Null: binary or too large."},
                "created": {"type": "boolean", "description": "There was no such file."}
            }),
        ),
    )
}

fn search_files() -> Tool {
    tool(
        "search_files",
        READS,
        "Search the content of files with a regular expression (target=\"content\"), or find files by a glob on their names \
         (target=\"files\"). Leaves out what .gitignore names. Faster than grep and find.",
        arguments(
            &["pattern"],
            json!({
                "pattern": {"type": "string", "minLength": 1,
                    "description": "A regular expression (ripgrep syntax) for content; a glob such as *.py for files."},
                "target": {"type": "string", "enum": ["content", "files"], "default": "content"},
                "path": {"type": "string", "default": ".", "description": "The directory or file to search."},
                "file_glob": {"type": ["string", "null"], "default": null,
                    "description": "Only files that match, such as *.rs. For content."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_SEARCH_RESULTS, "default": 50},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Results to skip, for the next page."},
                "output_mode": {"type": "string", "enum": ["content", "files_only", "count"], "default": "content",
                    "description": "Lines that match, only the files, or the number of matches of each file."},
                "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT_LINES, "default": 0,
                    "description": "Lines before and after each match."}
            }),
        ),
        fields(
            &["matches", "total", "complete"],
            json!({
                "matches": {"type": "array", "items": fields(&["path"], json!({
                    "path": {"type": "string"},
                    "line": {"type": "integer", "description": "From 1 on."},
                    "text": {"type": "string", "description": "The line, without its end."},
                    "cut": {"type": "boolean", "description": "The line is longer than text."},
                    "before": {"type": "array", "items": {"type": "string"}},
                    "after": {"type": "array", "items": {"type": "string"}},
                    "count": {"type": "integer", "description": "Matches in the file, with output_mode=\"count\"."}
                }))},
                "total": {"type": "integer", "description": "All results; at least that many if complete is false."},
                "complete": {"type": "boolean", "description": "Everything was searched."},
                "reason": {"type": "string", "description": "The cause if it was not."}
            }),
        ),
    )
}

fn patch() -> Tool {
    tool(
        "patch",
        WRITES,
        "Edit files. mode=\"replace\": replace old_string by new_string in one file; old_string must occur exactly once unless \
         replace_all. mode=\"patch\": apply a patch to several files, all or none: *** Begin Patch, then *** Add File: / \
         *** Update File: / *** Delete File: sections with @@ hunks of ' ', '-' and '+' lines, then *** End Patch.",
        arguments(
            &[],
            json!({
                "path": {"type": ["string", "null"], "default": null, "description": "The file. Required for replace."},
                "old_string": {"type": ["string", "null"], "default": null,
                    "description": "The text to replace, with enough context to be unique. Required for replace."},
                "new_string": {"type": ["string", "null"], "default": null,
                    "description": "The new text; empty removes the old. Required for replace."},
                "replace_all": {"type": "boolean", "default": false, "description": "Replace every occurrence."},
                "mode": {"type": "string", "enum": ["replace", "patch"], "default": "replace"},
                "patch": {"type": ["string", "null"], "default": null,
                    "description": "The patch, from *** Begin Patch to *** End Patch. Required for patch."}
            }),
        ),
        fields(
            &["status", "files", "diff"],
            json!({
                "status": {"type": "string", "description": "applied, or no_change if the text was there already."},
                "files": {"type": "array", "items": fields(&["path"], json!({
                    "path": {"type": "string"},
                    "op": {"type": "string", "enum": ["add", "update", "delete"]},
                    "before_sha256": {"type": ["string", "null"]},
                    "after_sha256": {"type": ["string", "null"]}
                }))},
                "diff": {"type": ["string", "null"], "description": "The change as a unified diff."}
            }),
        ),
    )
}

fn web_search() -> Tool {
    tool(
        "web_search",
        FETCHES,
        "Search the web. Returns addresses, titles and short descriptions.",
        arguments(
            &["query"],
            json!({
                "query": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_WEB_RESULTS, "default": 5}
            }),
        ),
        fields(
            &["data"],
            json!({
                "data": fields(&["web"], json!({
                    "web": {"type": "array", "items": fields(&["url", "title", "description"], json!({
                        "url": {"type": "string"},
                        "title": {"type": "string"},
                        "description": {"type": "string"}
                    }))}
                }))
            }),
        ),
    )
}

fn web_extract() -> Tool {
    tool(
        "web_extract",
        FETCHES,
        "Fetch web pages, in parallel, and return the main text of each as Markdown. A page that fails has error and does not \
         fail the others.",
        arguments(
            &["urls"],
            json!({
                "urls": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MAX_EXTRACT_URLS,
                    "description": "http or https addresses."},
                "char_limit": {"type": "integer", "minimum": 1, "default": 15000,
                    "description": "Characters of each page. The whole text is in a file."}
            }),
        ),
        fields(
            &["results"],
            json!({
                "results": {"type": "array", "items": fields(&["url"], json!({
                    "url": {"type": "string"},
                    "final_url": {"type": "string", "description": "The address after redirects."},
                    "title": {"type": "string"},
                    "content": {"type": "string", "description": "Markdown."},
                    "error": {"type": "string"},
                    "truncated": {"type": "boolean", "description": "content is only the beginning."},
                    "path": {"type": "string", "description": "A file with the whole text."}
                }))}
            }),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{apply_defaults, check};
    use schemars::{JsonSchema, SchemaGenerator};
    use toold_proto::files::{FsReadResult, FsSearchResult, FsWriteResult, SearchMatch};

    fn named(name: &str) -> Tool {
        native().into_iter().find(|tool| tool.name == name).expect("a native tool")
    }

    fn parameters(name: &str) -> Vec<(String, Value)> {
        let tool = named(name);
        let properties = tool.input_schema["properties"].as_object().expect("properties");
        properties
            .iter()
            .map(|(name, schema)| (name.clone(), schema.get("default").cloned().unwrap_or(json!("required"))))
            .collect()
    }

    #[test]
    fn the_signatures_are_those_of_the_contract() {
        let expected = [
            (
                "terminal",
                json!({"command": "required", "timeout": null, "workdir": null, "background": false, "stdin": null, "check": false}),
            ),
            ("read_file", json!({"path": "required", "offset": 1, "limit": 500})),
            ("write_file", json!({"path": "required", "content": "required", "expect": null})),
            (
                "search_files",
                json!({"pattern": "required", "target": "content", "path": ".", "file_glob": null, "limit": 50, "offset": 0,
                    "output_mode": "content", "context": 0}),
            ),
            (
                "patch",
                json!({"path": null, "old_string": null, "new_string": null, "replace_all": false, "mode": "replace", "patch": null}),
            ),
            ("web_search", json!({"query": "required", "limit": 5})),
            ("web_extract", json!({"urls": "required", "char_limit": 15000})),
        ];
        assert_eq!(
            expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            native().iter().map(|t| t.name.as_str()).collect::<Vec<_>>()
        );
        for (name, signature) in expected {
            let signature: Vec<_> = signature.as_object().expect("an object").clone().into_iter().collect();
            assert_eq!(parameters(name), signature, "{name}");
            assert!(is_native(name));
        }
    }

    #[test]
    fn the_defaults_of_a_native_tool_are_valid_arguments() {
        let minimal =
            json!({"command": "ls", "path": "a", "content": "", "pattern": "x", "query": "q", "urls": ["http://a"]});
        for tool in native() {
            let mut args = serde_json::Map::new();
            for name in tool.input_schema["required"].as_array().expect("a list") {
                let name = name.as_str().expect("a name");
                args.insert(name.into(), minimal[name].clone());
            }
            apply_defaults(&tool.input_schema, &mut args);
            assert_eq!(check(&tool.input_schema, &Value::Object(args)), Ok(()), "{}", tool.name);
        }
    }

    #[test]
    fn a_parameter_that_is_not_supported_is_refused() {
        for name in ["pty", "watch", "notify"] {
            let args = json!({"command": "ls", name: true});
            let problem = check(&named("terminal").input_schema, &args).expect_err("it is refused");
            assert_eq!(problem.pointer, format!("/{name}"));
        }
    }

    /// The fields of a result that a tool documents and the type on the wire does not have.
    fn fields_not_in<T: JsonSchema>(documented: &Value) -> Vec<String> {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        let known = schema.as_value()["properties"].as_object().expect("properties").clone();
        let documented = documented["properties"].as_object().expect("properties");
        documented.keys().filter(|name| !known.contains_key(name.as_str())).cloned().collect()
    }

    #[test]
    fn results_of_file_tools_document_fields_that_exist() {
        let output = |name: &str| named(name).output_schema.expect("a schema");
        let none: Vec<String> = Vec::new();
        assert_eq!(fields_not_in::<FsReadResult>(&output("read_file")), none);
        assert_eq!(fields_not_in::<FsWriteResult>(&output("write_file")), none);
        assert_eq!(fields_not_in::<FsSearchResult>(&output("search_files")), none);
        assert_eq!(fields_not_in::<SearchMatch>(&output("search_files")["properties"]["matches"]["items"]), none);
    }
}
