//! Manual pages, as `man` renders them.

use std::fs;
use std::process::Command;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};

#[test]
fn every_command_and_the_daemon_have_a_page_that_man_renders_without_a_warning() {
    let d = Daemon::prepare("", &[]);
    let dir = d.root().join("man1");
    let output = d.ctl(&["man", dir.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{output:?}");
    let mut pages: Vec<String> =
        fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    for page in ["toolctl.1", "toolctl-kill.1", "toolctl-service-install.1", "toold.1"] {
        assert!(pages.iter().any(|p| p == page), "{page} in {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("__")), "hidden commands have no page: {pages:?}");
    if skip_unless(Command::new("man").arg("--version").output().is_ok(), "man is not installed") {
        return;
    }
    for page in pages {
        let path = dir.join(&page);
        let shown =
            output_of(d.tool("man", &["--warnings", "-l", "-E", "UTF-8", path.to_str().unwrap()]).spawn().unwrap());
        assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{page}");
        let name = page.strip_suffix(".1").unwrap();
        assert!(shown.stdout.contains("NAME") && shown.stdout.contains(name), "{page}: {}", shown.stdout);
        if name != "toold" {
            // The broken pages had them in one paragraph under EXTRA, with the examples wrapped.
            for part in ["\nSYNOPSIS\n       toolctl", "\nEXAMPLES\n", "\nSEE ALSO\n"] {
                assert!(shown.stdout.contains(part), "{page}: {part:?} in {}", shown.stdout);
            }
            assert!(!shown.stdout.contains("\nEXTRA\n"), "{page}: {}", shown.stdout);
        }
    }
}

#[test]
fn the_page_of_toolctl_is_printed_without_a_directory() {
    let output = Daemon::prepare("", &[]).ctl(&["man"]);
    assert!(output.code == 0 && output.stdout.contains(".TH toolctl 1"), "{output:?}");
}
