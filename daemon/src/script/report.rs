//! Reports of a script over its channel: its value, its error, its products, notes.

use super::kernel::CellReport;
use super::{LiveScript, Scripts};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::tools::journal::CallEntry;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use toold_proto::event::ScriptNote;
use toold_proto::script::{Artifact, ScriptError};
use toold_proto::{ErrorKind, RpcError};

/// The longest value that a script may give to `result`, as JSON.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// The longest text of an error or a note. The rest is cut off.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// One report.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Value(Value),
    Error(ScriptError),
    Artifact(ArtifactReport),
    Note(String),
    /// Of a kernel.
    Cell(CellReport),
}

/// A file that a script names.
#[derive(Debug, Deserialize)]
pub struct ArtifactReport {
    path: String,
}

impl Scripts {
    /// Records a report. Blocks.
    pub fn report(&self, live: &LiveScript, report: Report) -> Result<(), RpcError> {
        if live.owner.is_retired() {
            return Err(crate::tools::owner::retired());
        }
        let proc = self.find(&live.id.to_string())?;
        let entry = match report {
            Report::Value(value) => {
                let bytes = value.to_string().len();
                if bytes > MAX_VALUE_BYTES {
                    let message =
                        format!("the value has {bytes} bytes as JSON, more than {MAX_VALUE_BYTES}; write a file");
                    return Err(RpcError::new(ErrorKind::Limit, message).with("limit", "value"));
                }
                CallEntry::Value { value, cell: live.owner.present_cell() }
            }
            Report::Error(mut error) => {
                cut(&mut error.message);
                cut_start(&mut error.traceback);
                CallEntry::Error { error, cell: live.owner.present_cell() }
            }
            Report::Artifact(ArtifactReport { path }) => CallEntry::Artifact(artifact(&proc, &live.cwd, &path)?),
            Report::Note(mut text) => {
                cut(&mut text);
                note(&proc, &text);
                CallEntry::Note { text, at: wall_ms() }
            }
            // `report_cell` is for these.
            Report::Cell(_) => return Err(RpcError::param("cell", "this script is not a kernel")),
        };
        live.owner.report(&entry).map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("record the report: {e}")))
    }
}

fn note(proc: &Arc<Proc>, text: &str) {
    let event = ScriptNote { name: proc.spec.name.clone(), text: text.into() };
    if let Err(e) = proc.publish_event(&event, |_| {}) {
        tracing::error!(id = %proc.spec.id, %e, "failed to store an event");
    }
}

/// Cuts off the end of a long text.
pub(super) fn cut(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(crate::text::last_char_end(text, MAX_TEXT_BYTES));
    }
}

/// Cuts off the start of a long traceback: its end names the error.
pub(super) fn cut_start(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        let from = text.len() - MAX_TEXT_BYTES;
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        text.drain(..from);
    }
}

/// Measures a file that a script names. One in a sandbox learns nothing about files outside its roots.
fn artifact(proc: &Proc, cwd: &str, path: &str) -> Result<Artifact, RpcError> {
    let wrong = |why: String| RpcError::param("artifact.path", why);
    let found = Path::new(cwd).join(path);
    let real = std::fs::canonicalize(&found).map_err(|e| wrong(format!("{}: {e}", found.display())))?;
    if let Some(sandbox) = &proc.spec.sandbox
        && !sandbox.roots.iter().any(|root| real.starts_with(&root.path))
    {
        return Err(wrong(format!("{} is outside the roots of the script", real.display())));
    }
    let failed = |e: std::io::Error| wrong(format!("{}: {e}", real.display()));
    if !std::fs::metadata(&real).map_err(failed)?.is_file() {
        return Err(wrong(format!("{} is not a file", real.display())));
    }
    let mut file = std::fs::File::open(&real).map_err(failed)?;
    let (mut hash, mut bytes, mut block) = (Sha256::new(), 0, vec![0; 256 * 1024]);
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => break,
            len => {
                hash.update(&block[..len]);
                bytes += len as u64;
            }
        }
    }
    let path = real.to_string_lossy().into_owned();
    Ok(Artifact { path, bytes, sha256: format!("{:x}", hash.finalize()) })
}
