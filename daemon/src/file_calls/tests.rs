//! Changes that are checked first and made later, as tools make them.

use super::FileCalls;
use crate::approvals::Approvals;
use crate::backend::{ExecShim, Launcher};
use crate::changes::Changes;
use crate::config::{Config, ShimMode};
use crate::events::{Journal, JournalLimits};
use crate::files::content::hex_sha256;
use crate::patch::Patches;
use crate::policy::Judge;
use crate::proc::event_sink::EventSink;
use crate::proc::search_pool::SearchPool;
use crate::proc::watch_gate::WatchGate;
use crate::redaction::Redaction;
use crate::registry::Registry;
use crate::sandbox::resolve::OwnPaths;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use toold_proto::ErrorKind;
use toold_proto::approval::Caller;
use toold_proto::files::{FsEditParams, FsListParams, FsReadParams, FsWriteParams};
use toold_proto::sandbox::SandboxSetting;
use toold_shim::zygote::StartAttributes;

/// Opens calls on files with a new state directory.
async fn open(state: &Path, config: Config) -> Arc<FileCalls> {
    let (procs, events) = (state.join("procs"), state.join("events"));
    fs::create_dir_all(&procs).expect("a new directory");
    fs::create_dir_all(&events).expect("a new directory");
    let limits = JournalLimits { segment_bytes: 1 << 20, max_bytes: 1 << 20, max_age_ms: 1000 };
    let (journal, _) = Journal::open(&events, limits, 0, 0).expect("a new journal");
    let journal = Arc::new(journal);
    let (gate, _) = WatchGate::open(journal.clone(), &events, &config.watch, [0; 16], None).expect("a new gate");
    let sink =
        Arc::new(EventSink::new(journal.clone(), gate, SearchPool::new(4, 5000), Redaction::new(Default::default())));
    let attributes = StartAttributes { max_fds: None, timeslice_ns: 0 };
    let launcher =
        Launcher::new(None, ShimMode::Exec, ExecShim { state_dir: procs.clone(), attributes, is_subreaper: false });
    let own = OwnPaths { state_dir: procs.clone(), socket: procs.join("socket"), rules: None, runs: procs.join("s") };
    let registry = Registry::new(config, procs, launcher, sink, own);
    let (judge, _) = Judge::open(None, state, journal.clone());
    let judge = Arc::new(judge);
    let approvals = Approvals::open(registry.clone(), judge.clone(), state, 0).await.expect("no approvals");
    let (changes, _, _) = Changes::open(state.join("changes"), registry.config.patch.keep_ms).expect("no changes");
    let patches = Arc::new(Patches::new(changes, journal, &registry.config));
    FileCalls::new(approvals, judge, patches)
}

fn test_caller() -> Caller {
    Caller { uid: 0, pid: 0, program: None }
}

fn write(path: &Path, content: &str) -> FsWriteParams {
    FsWriteParams {
        path: path.to_string_lossy().into_owned(),
        content: Some(content.to_owned()),
        ..FsWriteParams::default()
    }
}

fn edit(path: &Path, old: &str, new: &str) -> FsEditParams {
    let (path, old, new) = (path.to_string_lossy().into_owned(), old.to_owned(), new.to_owned());
    FsEditParams { path, old, new, ..FsEditParams::default() }
}

fn at(path: &Path) -> FsReadParams {
    FsReadParams { path: path.to_string_lossy().into_owned(), ..FsReadParams::default() }
}

#[tokio::test]
async fn a_checked_write_changes_nothing_and_is_made_as_it_was_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let calls = open(&dir.path().join("state"), Config::default()).await;
    let file = dir.path().join("new/file");
    let mut call = write(&file, "one\n");
    let checked = calls.check_write(&mut call).await.expect("it can be written");
    assert_eq!(call.expect.as_deref(), Some("absent"));
    assert!(!file.parent().expect("a parent").exists(), "not even the directory");
    assert_eq!(calls.sha256(at(&file)).await.expect("judged"), None);
    let written = calls.write(call.clone(), test_caller).await.expect("it is written");
    assert_eq!(written, checked);
    assert_eq!(calls.sha256(at(&file)).await.expect("judged"), Some(hex_sha256(b"one\n")));

    let repeated = calls.write(call, test_caller).await.expect_err("the file is there now");
    assert_eq!(repeated.kind(), Some(ErrorKind::Conflict));
    let mut again = write(&file, "two\n");
    let checked = calls.check_write(&mut again).await.expect("it can be written");
    assert_eq!(checked.before_sha256, Some(hex_sha256(b"one\n")));
    fs::write(&file, "another program\n").expect("a write");
    let raced = calls.write(again, test_caller).await.expect_err("it is not the file that was checked");
    assert_eq!(raced.kind(), Some(ErrorKind::Conflict));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "another program\n");
}

#[tokio::test]
async fn a_checked_edit_changes_nothing_and_is_made_as_it_was_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let calls = open(&dir.path().join("state"), Config::default()).await;
    let file = dir.path().join("file");
    fs::write(&file, "alpha\nbeta\n").expect("a file");
    let mut call = edit(&file, "beta", "gamma");
    let checked = calls.check_edit(&mut call).await.expect("it can be made");
    assert_eq!(call.expect, Some(hex_sha256(b"alpha\nbeta\n")));
    assert_eq!(checked.sha256, hex_sha256(b"alpha\ngamma\n"));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "alpha\nbeta\n");
    assert_eq!(calls.edit(call, test_caller).await.expect("it is made"), checked);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "alpha\ngamma\n");
    let missing = calls.check_edit(&mut edit(&file, "delta", "epsilon")).await.expect_err("no such text");
    assert_eq!(missing.kind(), Some(ErrorKind::NoMatch));
}

#[tokio::test]
async fn a_change_outside_the_roots_is_checked_if_a_person_may_be_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("root");
    fs::create_dir(&root).expect("a directory");
    let outside = dir.path().join("outside");
    fs::write(&outside, "old\n").expect("a file");
    let mut call = FsWriteParams {
        sandbox: Some(SandboxSetting::Name("workspace-write".into())),
        cwd: Some(root.to_string_lossy().into_owned()),
        approval_timeout_ms: Some(0),
        ..write(&outside, "new\n")
    };
    let calls = open(&dir.path().join("state"), Config::default()).await;
    let checked = calls.check_write(&mut call.clone()).await.expect("it is checked");
    assert_eq!((checked.before_sha256, checked.sha256), (Some(hex_sha256(b"old\n")), hex_sha256(b"new\n")));
    let refused = calls.write(call.clone(), test_caller).await.expect_err("no time to ask");
    assert_eq!(refused.kind(), Some(ErrorKind::Denied));

    let mut never = Config::default();
    never.policy.approval = toold_proto::policy::ApprovalPolicy::Never;
    let calls = open(&dir.path().join("never"), never).await;
    let refused = calls.check_write(&mut call).await.expect_err("no person is asked");
    assert_eq!(refused.kind(), Some(ErrorKind::Denied));
    assert_eq!(call.expect, None);
    assert_eq!(fs::read_to_string(&outside).expect("a file"), "old\n");
}

#[tokio::test]
async fn files_are_found_by_name_and_all_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let calls = open(&dir.path().join("state"), Config::default()).await;
    let tree = dir.path().join("tree");
    for path in ["a.rs", "b/c.rs", "b/c.txt", "b/d.rs/e.rs", "z.rs", ".hidden.rs"] {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, "").expect("a file");
    }
    std::os::unix::fs::symlink("a.rs", tree.join("link.rs")).expect("a link");
    let call = |limit| FsListParams {
        path: ".".into(),
        cwd: Some(tree.to_string_lossy().into_owned()),
        glob: Some("*.rs".into()),
        limit: Some(limit),
        ..FsListParams::default()
    };
    let all = ["a.rs", "b/c.rs", "b/d.rs/e.rs", "z.rs"];
    for (offset, limit) in [(0, 50), (0, 2), (1, 2), (3, 2), (4, 1)] {
        let found = calls.find_files(call(limit), offset).await.expect("a directory");
        let paths: Vec<&str> = found.matches.iter().map(|found| found.path.as_str()).collect();
        let expected: Vec<&str> = all.into_iter().skip(offset as usize).take(limit as usize).collect();
        assert_eq!((paths, found.total, found.complete), (expected, 4, true), "{limit} after {offset}");
    }
    let refused = calls.find_files(call(0), 0).await.expect_err("nothing to find");
    assert_eq!(refused.kind(), Some(ErrorKind::InvalidParams));
}
