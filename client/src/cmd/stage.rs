//! `stage`: shows, commits or discards the changes of a process that ran with `--stage`.

use super::Context;
use crate::error::CliError;
use crate::render::stage;
use toold_proto::api;
use toold_proto::stage::{StageCommitParams, StageDiffParams, StageDiscardParams};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the changes as a diff
    #[command(
        after_help = "Examples:\n  toolctl run --stage -- touch a && toolctl stage diff @last\n  toolctl run --stage -- touch b && toolctl stage diff @last --json"
    )]
    Diff {
        /// The process: its id, a unique start of that, its name, @last or @failed
        id: String,
    },
    /// Make the changes, all or none
    #[command(
        after_help = "Examples:\n  toolctl run --stage -- touch a && toolctl stage commit @last\n  toolctl run --stage -- touch c d && toolctl stage commit @last c"
    )]
    Commit {
        /// The process: its id, a unique start of that, its name, @last or @failed
        id: String,
        /// Only the changes at and below these paths, from the working directory of the process
        paths: Vec<String>,
        /// The digest of the changes that were seen. Default: that of the changes now
        #[arg(long, value_name = "DIGEST")]
        digest: Option<String>,
    },
    /// Remove the changes
    #[command(
        after_help = "Examples:\n  toolctl run --stage -- touch a && toolctl stage discard @last\n  toolctl run --stage -- touch b && toolctl stage discard @last --json"
    )]
    Discard {
        /// The process: its id, a unique start of that, its name, @last or @failed
        id: String,
    },
}

impl Args {
    pub fn ids(&mut self) -> Vec<&mut String> {
        match &mut self.action {
            Action::Diff { id } | Action::Commit { id, .. } | Action::Discard { id } => vec![id],
        }
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match args.action {
        Action::Diff { id } => cx.query::<api::StageDiff>(&StageDiffParams { id }, stage::diff),
        Action::Commit { id, paths, digest } => {
            let digest = match digest {
                Some(digest) => digest,
                None => {
                    let params = StageDiffParams { id: id.clone() };
                    let raw = cx.connection.call_raw_with_retry::<api::StageDiff>(|_| params.clone())?;
                    let diff = super::parse::<api::StageDiff>(&raw)?;
                    // Without one the daemon answers why: the process runs, or the stage has ended.
                    diff.digest.unwrap_or_default()
                }
            };
            let paths = (!paths.is_empty()).then_some(paths);
            cx.call_once::<api::StageCommit>(&StageCommitParams { id, digest, paths }, stage::committed)
        }
        Action::Discard { id } => cx.call_once::<api::StageDiscard>(&StageDiscardParams { id }, |result, _| {
            format!("{} discarded\n", result.id)
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;

    const ID: &str = "proc_0123456789ab";

    #[test]
    fn a_commit_has_the_digest_of_the_changes_that_are_there() {
        let diff = json!({"id": ID, "state": "ready", "roots": ["/w"], "digest": "d1", "files": [], "total": 0, "diff": "",
            "truncated": false, "skipped": []});
        let file = json!({"path": "/w/a", "op": "add", "kind": "file"});
        let done = json!({"id": ID, "state": "ready", "files": [file], "total": 1, "truncated": false, "left": 2, "digest": "d2"});
        let fake = FakeDaemon::start(vec![vec![Reply::result(diff), Reply::result(done)]]);
        let (code, out, err) = test_run(&fake, &["stage", "commit", ID, "a"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out, "A /w/a\nproc_0123456789ab  1 change committed, 2 left\n");
        assert_eq!(fake.next_request(), ("stage.diff".into(), json!({"id": ID})));
        assert_eq!(fake.next_request(), ("stage.commit".into(), json!({"id": ID, "digest": "d1", "paths": ["a"]})));
    }

    #[test]
    fn a_digest_that_was_seen_needs_no_other_call() {
        let done = json!({"id": ID, "state": "committed", "files": [], "total": 0, "truncated": false, "left": 0, "digest": null});
        let fake = FakeDaemon::start(vec![vec![Reply::result(done)]]);
        let (code, out, _) = test_run(&fake, &["stage", "commit", ID, "--digest", "d1"]);
        assert_eq!((code, out.as_str()), (0, "proc_0123456789ab  0 changes committed\n"));
        assert_eq!(fake.next_request(), ("stage.commit".into(), json!({"id": ID, "digest": "d1"})));
    }
}
