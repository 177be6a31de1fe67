//! Advice for the author of a script that failed, from what authors get wrong most often.

use super::calls::CallPair;
use crate::tools::journal::CallOutcome;
use toold_proto::ErrorKind;
use toold_proto::script::{ScriptError, ScriptStatus};

/// Returns advice, the most useful first.
pub(super) fn hints(
    status: ScriptStatus,
    error: Option<&ScriptError>,
    stderr: &str,
    calls: &[CallPair],
) -> Vec<String> {
    let mut hints = Vec::new();
    let kind = error.map(|error| error.kind.as_str()).unwrap_or_default();
    let message = error.map(|error| error.message.as_str()).unwrap_or_default();
    if kind == "SyntaxError" || kind == "IndentationError" {
        hints.push("nothing was run: the script does not compile; correct the line and run it again".into());
    }
    let is_unknown_module = kind == "ModuleNotFoundError" || stderr.contains("ERR_MODULE_NOT_FOUND");
    if is_unknown_module {
        hints.push(
            "a module is not installed for this interpreter: install it with terminal(), or set VIRTUAL_ENV in env"
                .into(),
        );
    }
    if kind == "NameError"
        && ["terminal", "read_file", "write_file", "search_files", "patch"].iter().any(|tool| message.contains(tool))
    {
        hints.push("import the tools first: from toold_tools import terminal, read_file".into());
    }
    let took_for_text = message.contains("string indices must be integers")
        || message.contains("the JSON object must be str, bytes or bytearray, not dict");
    if took_for_text {
        hints.push("results of tools are dicts already: use result[\"output\"], without json.loads".into());
    }
    let failed = |kind: ErrorKind| {
        calls
            .iter()
            .filter_map(|call| call.ended.as_ref())
            .any(|ended| matches!(&ended.outcome, CallOutcome::Error(error) if error.kind() == Some(kind)))
    };
    if failed(ErrorKind::OutcomeUnknown) {
        hints.push("a call may have happened: look at the world before you repeat it".into());
    }
    if status == ScriptStatus::Timeout {
        hints.push(
            "give timeout_ms a larger value, or start long commands with background=True and wait for them".into(),
        );
    }
    hints
}
