//! `patch`: applies a patch to files, checks it, or undoes one.

use super::Context;
use super::options::exec::random_id;
use crate::args;
use crate::error::{CliError, DONE, FAILED};
use crate::render::Style;
use crate::render::text::escape_control;
use std::io::Read;
use std::path::PathBuf;
use toold_proto::api;
use toold_proto::files::HardLinks;
use toold_proto::patch::{
    PatchApplyParams, PatchFile, PatchMode, PatchOp, PatchResult, PatchRevertParams, PatchRevertResult, PatchStatus,
};

const NOTES: &str = "Reads the patch from FILE, or from stdin. All of it is applied, or nothing, also if the daemon is killed meanwhile. \
Paths are relative to the current directory.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The file with the patch; `-` or none: stdin
    #[arg(value_name = "FILE", conflicts_with = "revert")]
    file: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    check: bool,
    /// Let operations depend on those before them, and keep those before one that fails
    #[arg(long)]
    sequential: bool,
    /// Change files that have several names; the other names keep the old bytes
    #[arg(long)]
    break_links: bool,
    /// Undo this patch
    #[arg(long, value_name = "PATCH", conflicts_with_all = ["check", "sequential", "break_links"])]
    revert: Option<String>,
    /// The session that the change belongs to [default: $TOOLD_SESSION, else the agent's]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// The task that the change belongs to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// The time that a person has to decide, if files are outside the roots; 0 denies instead of asking [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    approval_timeout: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (session_key, task_id) = (cx.session_or_agents(args.session), args.task);
    if let Some(patch_id) = args.revert {
        let params = PatchRevertParams {
            patch_id,
            session_key,
            task_id,
            approval_timeout_ms: args.approval_timeout,
            ..PatchRevertParams::default()
        };
        return cx.call_once::<api::PatchRevert>(&params, |result, _| reverted(result));
    }
    let cwd = std::env::current_dir().map_err(|_| CliError::NoDirectory)?;
    let params = PatchApplyParams {
        patch: read(args.file)?,
        cwd: Some(cwd.to_string_lossy().into_owned()),
        mode: if args.sequential { PatchMode::Sequential } else { PatchMode::Atomic },
        check: args.check,
        hard_links: if args.break_links { HardLinks::Break } else { HardLinks::Refuse },
        // The call may be made again after a lost connection.
        request_id: Some(random_id()),
        session_key,
        task_id,
        approval_timeout_ms: args.approval_timeout,
        ..PatchApplyParams::default()
    };
    let raw = cx.connection.call_raw_with_retry::<api::PatchApply>(|_| params.clone())?;
    let result = cx.show::<api::PatchApply>(&raw, text)?;
    let Some(failed) = result.failed else { return Ok(DONE) };
    if !cx.json {
        cx.console.message(&format!("the rest does not fit: {}", failed.message));
    }
    Ok(FAILED)
}

fn read(file: Option<PathBuf>) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    match file.filter(|file| file.as_os_str() != "-") {
        Some(file) => {
            bytes = std::fs::read(&file).map_err(|e| CliError::Usage(format!("read {}: {e}", file.display())))?;
        }
        None => {
            std::io::stdin().lock().read_to_end(&mut bytes).map_err(CliError::io("read the patch from stdin"))?;
        }
    }
    String::from_utf8(bytes)
        .map_err(|e| CliError::Usage(format!("the patch is not UTF-8 at byte {}", e.utf8_error().valid_up_to())))
}

fn text(result: &PatchResult, _: Style) -> String {
    let (added, removed) = result.files.iter().fold((0, 0), |(a, r), file| (a + file.added, r + file.removed));
    let done = match (result.status, &result.patch_id) {
        (PatchStatus::Checked, _) => "would change".to_owned(),
        (_, Some(id)) => format!("{id} changed"),
        (_, None) => "would change".to_owned(),
    };
    let mut text = format!("{done} {}: +{added} -{removed}\n", files(result.files.len()));
    result.files.iter().for_each(|file| text += &line(file));
    if result.status == PatchStatus::Checked {
        result.diff.lines().for_each(|line| text += &(shown(line) + "\n"));
    }
    text
}

fn reverted(result: &PatchRevertResult) -> String {
    let mut text = format!("{} reverted in {}\n", result.patch_id, files(result.files.len()));
    result.files.iter().for_each(|file| text += &line(file));
    text
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".into() } else { format!("{count} files") }
}

fn line(file: &PatchFile) -> String {
    let op = match file.op {
        PatchOp::Add => 'A',
        PatchOp::Update => 'M',
        PatchOp::Delete => 'D',
    };
    let to = file.to.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
    let fuzz = match file.fuzz {
        0 => "",
        1 | 2 => " (its lines have other blanks)",
        _ => " (its lines have other dashes, quotes or spaces)",
    };
    shown(&format!("{op} {}{to}{fuzz}", file.path)) + "\n"
}

/// A line without control characters but tabs.
fn shown(line: &str) -> String {
    line.split('\t').map(escape_control).collect::<Vec<_>>().join("\t")
}
