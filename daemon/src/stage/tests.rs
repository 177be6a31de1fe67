//! Tests of scan, digest and conflicts: on layers of the kernel's own overlays, and on layers made by hand.

use super::base::Base;
use super::digest::digest;
use super::print::{Layers, print};
use super::scan::{ChangeForm, Scan, scan};
use super::tree::Tree;
use crate::store::stage::StageStart;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Rig {
    dir: TempDir,
}

impl Rig {
    fn new() -> Rig {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["lower", "upper", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("writable");
        }
        Rig { dir }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }

    /// Runs a script on an overlay of the two layers, in namespaces of its own. False: this machine has none.
    fn run(&self, script: &str) -> bool {
        let dir = self.dir.path().display();
        let mount = format!(
            "mount -t overlay overlay -o lowerdir={dir}/lower,upperdir={dir}/upper,workdir={dir}/work,userxattr {dir}/lower \
             || exit 77; cd {dir}/lower || exit 77; set -e; {script}"
        );
        let unshare = ["--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-c", &mount];
        let ran = Command::new("unshare").args(unshare).status();
        match ran.map(|status| status.code()) {
            Ok(Some(0)) => true,
            Ok(Some(1 | 77)) | Err(_) => {
                println!("skipped: no overlay in a user namespace here");
                false
            }
            other => panic!("the script failed: {other:?}"),
        }
    }

    fn layers(&self) -> Layers {
        let open = |name| vec![Tree::open(&self.path(name)).expect("a directory")];
        Layers { upper: open("upper"), lower: open("lower") }
    }

    fn scan(&self) -> Scan {
        let layers = self.layers();
        scan(0, &layers.upper[0], &layers.lower[0]).expect("readable")
    }

    /// Returns the changes as text: `+ path`, `~ path`, `m path`, `- path`.
    fn changes(&self) -> Vec<String> {
        let scan = self.scan();
        let line = |change: &super::StagedChange| {
            let mark = match change.form() {
                ChangeForm::Add => '+',
                ChangeForm::Update => '~',
                ChangeForm::Metadata => 'm',
                ChangeForm::Delete => '-',
            };
            format!("{mark} {}", change.path.display())
        };
        scan.changes.iter().map(line).collect()
    }

    fn conflicts(&self, base: &Base, limit_ns: i64) -> Vec<String> {
        let (scan, layers) = (self.scan(), self.layers());
        let found = base.conflicts(&scan.changes, &layers.lower, limit_ns).expect("readable");
        found.into_iter().map(|index| scan.changes[index].path.display().to_string()).collect()
    }
}

fn settle(start: &StageStart) {
    // The broken code slept for one tick, which came late under load: a change had the time of the start.
    while let Some(wait) = start.until_distinct() {
        std::thread::sleep(wait); // rig: the same wait as the daemon's
    }
}

#[test]
fn an_overlay_of_the_kernel_is_read_as_the_changes_that_a_program_made() {
    let rig = Rig::new();
    for file in
        ["a", "gone", "dir/c", "dir/sub/d", "renamed/x", "mode", "attr", "touched", "again", "opaque/old", "cut"]
    {
        rig.write(&format!("lower/{file}"), "text\n");
    }
    rig.write("lower/opaque/same", "same\n");
    rig.write("lower/file-to-dir", "x");
    rig.write("lower/dir-to-file/inner", "x");
    symlink("a", rig.path("lower/link")).expect("writable");
    symlink("a", rig.path("lower/link-same")).expect("writable");
    std::fs::hard_link(rig.path("lower/a"), rig.path("lower/second")).expect("writable");
    let script = "echo more >> a; unlink gone; rm -r dir/sub; mv renamed moved; chmod 755 mode; touch touched; \
        unlink again; echo new > again; rm -r opaque; mkdir opaque; echo new > opaque/new; echo same > opaque/same; \
        ln -sfn b link; : > cut; mkdir -p deep/er; echo q > deep/er/q; ln -s / deep/root; mkfifo pipe; \
        unlink file-to-dir; mkdir file-to-dir; echo x > file-to-dir/f; rm -r dir-to-file; echo x > dir-to-file; \
        mv attr dir/attr; chmod 700 dir";
    if !rig.run(script) {
        return;
    }
    let wanted = [
        "~ a",
        "~ again",
        "- attr",
        "~ cut",
        "+ deep",
        "+ deep/er",
        "+ deep/er/q",
        "+ deep/root",
        "m dir",
        "+ dir/attr",
        "- dir/sub",
        "- dir/sub/d",
        "~ dir-to-file",
        "- dir-to-file/inner",
        "~ file-to-dir",
        "+ file-to-dir/f",
        "- gone",
        "~ link",
        "m mode",
        "+ moved",
        "+ moved/x",
        "+ opaque/new",
        "- opaque/old",
        "- renamed",
        "- renamed/x",
    ];
    assert_eq!(rig.changes(), wanted);
    assert_eq!(rig.scan().skipped, [Path::new("pipe")]);
    // Nothing below has changed.
    assert_eq!(std::fs::read_to_string(rig.path("lower/a")).expect("readable"), "text\n");
}

#[test]
fn an_upper_layer_that_changes_nothing_has_no_changes() {
    let rig = Rig::new();
    rig.write("lower/dir/file", "text");
    assert_eq!(rig.changes(), Vec::<String>::new());
    // Copied up, and left as it was. The time does not count.
    rig.write("upper/dir/file", "text");
    assert_eq!(rig.changes(), Vec::<String>::new());
    rig.write("upper/dir/file", "TEXT");
    assert_eq!(rig.changes(), ["~ dir/file"]);
}

#[test]
fn a_link_in_a_layer_is_not_followed() {
    let rig = Rig::new();
    rig.write("outside/secret", "x");
    symlink(rig.path("outside"), rig.path("upper/out")).expect("writable");
    symlink(rig.path("outside"), rig.path("lower/below")).expect("writable");
    rig.write("upper/below/secret", "y");
    // The link below is replaced by a directory; what it leads to is not compared.
    assert_eq!(rig.changes(), ["~ below", "+ below/secret", "+ out"]);
}

#[test]
fn the_digest_names_content_mode_and_paths() {
    let rig = Rig::new();
    rig.write("upper/a", "1");
    let first = digest(&rig.scan().changes);
    assert_eq!(digest(&rig.scan().changes), first);
    rig.write("upper/a", "2");
    let second = digest(&rig.scan().changes);
    std::fs::set_permissions(rig.path("upper/a"), std::fs::Permissions::from_mode(0o700)).expect("ours");
    let third = digest(&rig.scan().changes);
    std::fs::rename(rig.path("upper/a"), rig.path("upper/b")).expect("writable");
    let fourth = digest(&rig.scan().changes);
    let mut all = vec![first, second, third, fourth];
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 4);
}

#[test]
fn a_diff_is_one_that_git_reads_and_binary_files_are_named() {
    let rig = Rig::new();
    rig.write("lower/text", "1\n2\n");
    rig.write("upper/text", "1\ntwo\n");
    rig.write("upper/new", "n\n");
    rig.write("upper/binary", "\0");
    symlink("text", rig.path("upper/link")).expect("writable");
    let (scan, layers) = (rig.scan(), rig.layers());
    let printed = print(&layers, &scan.changes, &[0]).expect("readable");
    let wanted = "diff --git a/binary b/binary\nnew file mode 100644\nBinary files /dev/null and b/binary differ\n\
        diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+text\n\\ No newline at end of file\n\
        diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
        diff --git a/text b/text\n--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n";
    assert_eq!(printed.diff, wanted);
    let facts: Vec<_> = printed.files.iter().map(|f| (f.binary, f.conflict, f.added, f.removed)).collect();
    assert_eq!(facts[0], (true, true, None, None));
    assert_eq!(facts[3], (false, false, Some(1), Some(1)));
    assert!(!printed.truncated);
}

#[test]
fn a_file_that_changed_below_after_the_start_is_a_conflict_and_one_before_is_not() {
    let rig = Rig::new();
    for file in ["changed", "same", "mode", "removed/in", "replaced"] {
        rig.write(&format!("lower/{file}"), "1");
        rig.write(&format!("upper/{file}"), "2");
    }
    let start = StageStart::now();
    settle(&start);
    let base = Base::default();
    assert_eq!(rig.conflicts(&base, start.limit_ns()), Vec::<String>::new());
    rig.write("lower/changed", "3");
    std::fs::set_permissions(rig.path("lower/mode"), std::fs::Permissions::from_mode(0o600)).expect("ours");
    rig.write("lower/fresh", "1");
    rig.write("upper/fresh", "2");
    rig.write("lower/other", "1");
    std::fs::rename(rig.path("lower/other"), rig.path("lower/replaced")).expect("writable");
    assert_eq!(rig.conflicts(&base, start.limit_ns()), ["changed", "fresh", "mode", "replaced"]);
}

#[test]
fn an_entry_that_came_or_went_below_after_the_end_is_a_conflict() {
    let rig = Rig::new();
    rig.write("lower/went", "1");
    rig.write("upper/went", "2");
    rig.write("upper/came", "2");
    rig.write("upper/new", "2");
    let base = Base::of(&rig.scan().changes, &[]);
    assert_eq!(rig.conflicts(&base, i64::MAX), Vec::<String>::new());
    std::fs::remove_file(rig.path("lower/went")).expect("there");
    rig.write("lower/came", "1");
    rig.write("lower/unrelated", "1");
    assert_eq!(rig.conflicts(&base, i64::MAX), ["came", "went"]);
    let stored: Base = serde_json::from_str(&serde_json::to_string(&base).expect("json")).expect("json");
    assert_eq!(stored, base);
}

#[test]
fn a_new_file_in_a_directory_that_the_job_removed_is_a_conflict() {
    let rig = Rig::new();
    rig.write("lower/dir/old", "1");
    if !rig.run("rm -r dir") {
        return;
    }
    let start = StageStart::now();
    settle(&start);
    rig.write("lower/dir/fresh", "1");
    assert_eq!(rig.changes(), ["- dir", "- dir/fresh", "- dir/old"]);
    assert_eq!(rig.conflicts(&Base::default(), start.limit_ns()), ["dir/fresh"]);
}

#[test]
fn a_file_that_the_job_changed_in_place_and_that_was_removed_below_meanwhile_is_a_conflict() {
    let rig = Rig::new();
    rig.write("lower/edited", "1");
    rig.write("lower/moved", "1");
    let start = StageStart::now();
    if !rig.run("echo 2 >> edited; mv moved elsewhere") {
        return;
    }
    settle(&start);
    assert_eq!(rig.changes(), ["~ edited", "+ elsewhere", "- moved"]);
    assert_eq!(rig.conflicts(&Base::default(), start.limit_ns()), Vec::<String>::new());
    std::fs::remove_file(rig.path("lower/edited")).expect("there");
    let found = rig.conflicts(&Base::default(), start.limit_ns());
    assert!(found.contains(&"edited".to_owned()), "{found:?}");
}
