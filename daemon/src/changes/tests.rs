//! Changes of real files: commits, conflicts, failures, reverts, and journals that are walked back.

use super::journal::{ChangeJournal, ChangeState};
use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

struct Rig {
    _tmp: tempfile::TempDir,
    changes: Arc<Changes>,
    root: Arc<Root>,
    state: PathBuf,
}

fn rig() -> Rig {
    let tmp = tempfile::tempdir().expect("a directory");
    let (state, work) = (tmp.path().join("changes"), tmp.path().join("work"));
    std::fs::create_dir(&work).expect("a fresh path");
    let (changes, recovered, damage) = Changes::open(state.clone(), 1000).expect("it opens");
    assert!(recovered.is_empty() && damage.is_empty());
    Rig { root: Arc::new(Root::open(&work).expect("it is there")), _tmp: tmp, changes, state }
}

impl Rig {
    fn path(&self, name: &str) -> PathBuf {
        self.root.path.join(name)
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a fresh path");
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    fn set(&self, id: &str, changes: Vec<Change>) -> ChangeSet {
        let (roots, hard_links) = (vec![self.root.clone()], HardLinks::Refuse);
        ChangeSet { id: id.into(), roots, changes, keep_before: true, hard_links, note: "note".into(), request: None }
    }

    fn commit(&self, id: &str, changes: Vec<Change>) -> Result<Committed, ChangeError> {
        self.changes.commit_now(self.set(id, changes))
    }

    /// All names beneath the root, in their order.
    fn names(&self) -> Vec<String> {
        fn collect(dir: &Path, root: &Path, all: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                all.push(path.strip_prefix(root).expect("beneath").display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    collect(&path, root, all);
                }
            }
        }
        let mut all = Vec::new();
        collect(&self.root.path, &self.root.path, &mut all);
        all.sort();
        all
    }
}

fn change(path: &str, action: Action) -> Change {
    Change { root: 0, path: path.into(), expect: Before::Any, action }
}

fn write(path: &str, text: &str) -> Change {
    change(path, Action::Write { content: Content::Bytes(text.into()), attributes: Attributes::default() })
}

fn remove(path: &str) -> Change {
    change(path, Action::Remove)
}

#[test]
fn files_are_written_and_removed_together_and_nothing_else_is_left() {
    let rig = rig();
    rig.put("a", "old a");
    rig.put("b", "old b");
    std::fs::set_permissions(rig.path("a"), PermissionsExt::from_mode(0o750)).expect("ours");
    let _ = rustix::fs::setxattr(rig.path("a"), "user.kept", b"yes", rustix::fs::XattrFlags::empty());
    let done = rig.commit("one", vec![write("a", "new a"), remove("b"), write("c/d/e", "new e")]).expect("it commits");
    assert_eq!(done.made_dirs, [rig.path("c"), rig.path("c/d")]);
    assert_eq!(rig.names(), ["a", "c", "c/d", "c/d/e"]);
    assert_eq!((rig.text("a"), rig.text("c/d/e")), (Some("new a".into()), Some("new e".into())));
    assert_eq!(std::fs::metadata(rig.path("a")).expect("a file").mode() & 0o7777, 0o750);
    let mut value = [0; 8];
    if let Ok(len) = rustix::fs::getxattr(rig.path("a"), "user.kept", &mut value) {
        assert_eq!(&value[..len], b"yes");
    }
    let kept = rig.changes.kept("one").expect("it is kept");
    let paths: Vec<_> = kept.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths, [rig.path("a"), rig.path("c/d/e"), rig.path("b")]);

    rig.changes.revert_now("one", "two".into(), vec![rig.root.clone()], String::new()).expect("it reverts");
    assert_eq!(rig.names(), ["a", "b"]);
    assert_eq!((rig.text("a"), rig.text("b")), (Some("old a".into()), Some("old b".into())));
    let again = rig.changes.revert_now("one", "three".into(), vec![rig.root.clone()], String::new());
    assert!(matches!(again, Err(ChangeError::Reverted(_))), "{again:?}");
}

#[test]
fn a_directory_and_a_file_change_places() {
    let rig = rig();
    std::fs::create_dir_all(rig.path("dir/sub")).expect("a fresh path");
    rig.put("dir/sub/f", "f");
    rig.put("file", "x");
    symlink("file", rig.path("link")).expect("a fresh path");
    let changes = vec![
        remove("dir/sub/f"),
        remove("dir/sub"),
        remove("dir"),
        write("dir", "a file now"),
        remove("file"),
        change("file", Action::MakeDir { mode: Some(0o711) }),
        write("file/in", "inside"),
        change("link", Action::SymLink { target: "dir".into() }),
    ];
    rig.commit("one", changes).expect("it commits");
    assert_eq!(rig.names(), ["dir", "file", "file/in", "link"]);
    assert_eq!(rig.text("link"), Some("a file now".into()));
    rig.changes.revert_now("one", "two".into(), vec![rig.root.clone()], String::new()).expect("it reverts");
    assert_eq!(rig.names(), ["dir", "dir/sub", "dir/sub/f", "file", "link"]);
    assert_eq!(rig.text("link"), Some("x".into()));
}

#[test]
fn a_set_that_fails_changes_nothing() {
    let rig = rig();
    rig.put("a", "old");
    rig.put("b", "old");
    std::fs::create_dir(rig.path("full")).expect("a fresh path");
    rig.put("full/f", "f");
    std::fs::hard_link(rig.path("b"), rig.path("b2")).expect("links work here");
    let before = rig.names();
    let mut absent = write("a", "new");
    absent.expect = Before::Absent;
    let mut other = write("full/f", "new");
    other.expect = Before::Hash([0; 32]);
    let error = rig.commit("one", vec![absent, other]).expect_err("both are there");
    assert!(matches!(error, ChangeError::Conflict(ref paths) if *paths == [rig.path("a"), rig.path("full/f")]));
    let error = rig.commit("one", vec![write("a", "new"), write("b", "new")]).expect_err("it has two names");
    assert!(matches!(error, ChangeError::HardLinks(ref path) if *path == rig.path("b")));
    // Found only after the first steps: they are walked back.
    let error = rig.commit("one", vec![write("a", "new"), remove("full")]).expect_err("it is not empty");
    assert!(matches!(error, ChangeError::NotEmpty(ref path) if *path == rig.path("full")), "{error:?}");
    assert_eq!(rig.names(), before);
    assert_eq!(rig.text("a"), Some("old".into()));
    assert_eq!(std::fs::read_dir(&rig.state).expect("a directory").count(), 0);
    let mut set = rig.set("one", vec![write("b", "new")]);
    set.hard_links = HardLinks::Break;
    rig.changes.commit_now(set).expect("the link may break");
    assert_eq!((rig.text("b"), rig.text("b2")), (Some("new".into()), Some("old".into())));
}

#[test]
fn a_directory_that_became_a_link_is_refused() {
    let rig = rig();
    std::fs::create_dir(rig.path("d")).expect("a fresh path");
    std::fs::create_dir(rig.path("elsewhere")).expect("a fresh path");
    rig.put("d/f", "old");
    std::fs::rename(rig.path("d"), rig.path("moved")).expect("ours");
    symlink("elsewhere", rig.path("d")).expect("a fresh path");
    let error = rig.commit("one", vec![write("d/f", "new")]).expect_err("it leads elsewhere");
    assert!(matches!(error, ChangeError::Conflict(_)), "{error:?}");
    assert_eq!((rig.text("moved/f"), rig.text("elsewhere/f")), (Some("old".into()), None));
}

#[test]
fn a_revert_of_a_file_that_has_changed_does_nothing() {
    let rig = rig();
    rig.put("a", "old");
    rig.commit("one", vec![write("a", "new"), write("b", "new")]).expect("it commits");
    rig.put("b", "foreign");
    let error = rig.changes.revert_now("one", "two".into(), vec![rig.root.clone()], String::new());
    assert!(matches!(error, Err(ChangeError::Conflict(ref paths)) if *paths == [rig.path("b")]), "{error:?}");
    assert_eq!(rig.text("a"), Some("new".into()));
    assert!(rig.changes.kept("one").is_ok());
}

#[test]
fn kept_sets_are_found_again_until_they_expire() {
    let rig = rig();
    rig.put("a", "old");
    let mut set = rig.set("one", vec![write("a", "new")]);
    set.request = Some(Request { id: "r".into(), digest: 7 });
    rig.changes.commit_now(set).expect("it commits");
    // The owner has not published the event.
    let (again, recovered, _) = Changes::open(rig.state.clone(), 1_000_000).expect("it opens");
    assert!(
        matches!(&recovered[..], [RecoveredChange { id, outcome: RecoveredOutcome::Committed, note, .. }] if id == "one" && note == "note")
    );
    again.mark_published("one").expect("it is kept");
    let (again, recovered, _) = Changes::open(rig.state.clone(), 1_000_000).expect("it opens");
    assert!(recovered.is_empty());
    assert_eq!(again.find_request("r"), Some(("one".into(), 7)));
    let (again, ..) = Changes::open(rig.state.clone(), 0).expect("it opens");
    assert_eq!(again.find_request("r"), None);
    assert!(matches!(again.kept("one"), Err(ChangeError::NotFound(_))));
    assert_eq!(std::fs::read_dir(&rig.state).expect("a directory").count(), 0);
}

#[test]
fn a_damaged_journal_is_put_aside_and_reported() {
    let rig = rig();
    rig.put("a", "old");
    rig.commit("one", vec![write("a", "new")]).expect("it commits");
    let path = rig.state.join("one/journal");
    let mut bytes = std::fs::read(&path).expect("a journal");
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).expect("ours");
    let (_, recovered, damage) = Changes::open(rig.state.clone(), 1000).expect("it opens");
    assert!(recovered.is_empty());
    assert!(damage[0].contains("does not match its checksum") && damage[0].contains(".toold-one-*"), "{damage:?}");
    assert!(!path.exists());
    assert_eq!(rig.text("a"), Some("new".into()));
}

/// Walks back every prefix of the steps, as a crash leaves them, with and without a foreign change.
#[test]
fn a_crash_behind_any_step_is_walked_back_but_for_foreign_changes() {
    for done in 0..=4 {
        for foreign in [false, true] {
            let rig = rig();
            rig.put("a", "old a");
            rig.put("b", "old b");
            let set = rig.set("one", vec![write("a", "new a"), remove("b"), write("c/d", "new d")]);
            let roots = set.roots.clone();
            let dir = rig.state.join("one");
            let plan = super::plan::plan(set).expect("a plan");
            let mut dirs = super::dirs::Dirs::new(&roots, &plan.steps);
            std::fs::create_dir_all(&dir).expect("a fresh path");
            let head =
                super::journal::Head { id: "one".into(), at_ms: 0, request: None, reverts: None, keeps_before: false };
            let mut journal = ChangeJournal { state: ChangeState::Planned, head, steps: plan.steps };
            super::prepare::make_temps(&mut journal, plan.contents, &mut dirs).expect("temporary files");
            super::prepare::record(&mut journal, &dir, ChangeState::Prepared).expect("a journal");
            let rest = journal.steps.steps.split_off(done);
            super::commit::run_steps(&journal, &mut dirs).expect("they run");
            journal.steps.steps.extend(rest);
            if foreign {
                rig.put("a", "foreign");
            }
            let (_, recovered, damage) = Changes::open(rig.state.clone(), 1000).expect("it opens");
            assert!(damage.is_empty(), "{damage:?}");
            let [RecoveredChange { outcome: RecoveredOutcome::WalkedBack(left), .. }] = &recovered[..] else {
                panic!("{recovered:?}")
            };
            let at_a = journal.steps.steps.iter().position(|step| step.path == Path::new("a")).expect("a step");
            let is_left = foreign && done > at_a;
            assert_eq!(left.len(), usize::from(is_left), "{done} {left:?}");
            match left.first() {
                None => assert_eq!(rig.names(), ["a", "b"], "{done}"),
                Some(left) => {
                    assert_eq!(left.path, rig.path("a"));
                    let before = left.before.clone().expect("the old bytes");
                    assert_eq!(std::fs::read_to_string(before).expect("a file"), "old a");
                }
            }
            assert_eq!(rig.text("a").as_deref(), Some(if foreign { "foreign" } else { "old a" }));
            assert_eq!((rig.text("b").as_deref(), rig.path("c").exists()), (Some("old b"), false));
            assert!(!dir.exists());
        }
    }
}
