//! `client/editors/emacs` in real Emacs: its own tests with a real daemon, and the checks of Emacs for packages.
//!
//! `tests/door-programs-emacs` installs the distribution's Emacs and unpacks a newer one beside the build.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use toold_test_support::output::{Output, exit_code};
use toold_test_support::rig::{Daemon, skip_unless};
use toold_test_support::term::Term;

/// Runs Emacs for at most five minutes: all tests of the package are one run.
/// In batch mode it ignores a broken pipe only if its parent does; on a terminal it always does.
const RUN: &str = "trap '' PIPE; exec timeout 300 \"$0\" \"$@\"";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/editors/emacs")
}

/// The directory of the newer Emacs, unpacked by `tests/door-programs-emacs`.
fn unpacked() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"));
    target.join("door-programs/emacs/root")
}

fn system_emacs() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|dir| dir.join("emacs")).find(|path| path.exists())
}

/// A script that runs the unpacked Emacs with its own loader, libraries and Lisp files.
fn newer_emacs(d: &Daemon) -> Option<PathBuf> {
    let root = unpacked();
    let only = |dir: PathBuf, ending: &str| {
        let mut entries = fs::read_dir(dir).ok()?.filter_map(|e| Some(e.ok()?.path()));
        entries.find(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
    };
    let version = fs::read_dir(root.join("usr/libexec/emacs")).ok()?.next()?.ok()?.file_name();
    let version = version.to_str()?;
    let programs = root.join("usr/libexec/emacs").join(version).join("x86_64-linux-gnu");
    let dump = only(programs.clone(), ".pdmp")?;
    let script = d.root().join("newer-emacs");
    let text = format!(
        "#!/bin/sh\nR='{root}'\nexport EMACSDATA=$R/usr/share/emacs/{version}/etc EMACSDOC=$R/usr/share/emacs/{version}/etc\n\
         export EMACSPATH='{programs}'\nEMACSLOADPATH=$(find $R/usr/share/emacs/{version}/lisp -type d | tr '\\n' ':')\nexport EMACSLOADPATH\n\
         exec $R/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path $R/usr/lib/x86_64-linux-gnu \
         $R/usr/bin/emacs-nox --dump-file='{dump}' \"$@\"\n",
        root = root.display(),
        programs = programs.display(),
        dump = dump.display(),
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    Some(script)
}

/// Emacs in batch mode, in the home of the rig, with a copy of the package there.
fn batch(d: &Daemon, emacs: &Path, args: &[&str]) -> Output {
    let copy = d.home().join("package");
    if !copy.exists() {
        fs::create_dir_all(copy.join("test")).unwrap();
        for file in ["toold.el", "test/toold-test.el"] {
            fs::copy(package().join(file), copy.join(file)).unwrap();
        }
    }
    let mut command: Command = d.tool("/bin/sh", &["-c", RUN]);
    command.arg(emacs).args(["-Q", "--batch", "-L", "."]).args(args).current_dir(&copy);
    command.env("LANG", "C.UTF-8").env("TOOLD_TEST_EMACS", emacs);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: exit_code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn text(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

/// Runs the package's own tests; the first of them starts the daemon.
fn own_tests_pass(d: &Daemon, emacs: &Path) {
    let output = batch(d, emacs, &["-l", "test/toold-test.el", "-f", "toold-test-run"]);
    let text = text(&output);
    assert_eq!(output.code, 0, "{text}");
    assert!(text.contains(" 0 unexpected"), "{text}");
}

#[test]
fn the_tests_of_the_emacs_package_pass_in_the_emacs_of_the_distribution() {
    let Some(emacs) = system_emacs() else {
        skip_unless(false, "emacs is not installed (tests/door-programs-emacs)");
        return;
    };
    own_tests_pass(&Daemon::prepare("", &[]), &emacs);
}

#[test]
fn the_tests_of_the_emacs_package_pass_in_a_newer_emacs() {
    let d = Daemon::prepare("", &[]);
    let Some(emacs) = newer_emacs(&d) else {
        skip_unless(false, "no newer Emacs is unpacked (tests/door-programs-emacs)");
        return;
    };
    own_tests_pass(&d, &emacs);
}

#[test]
fn a_person_answers_a_hidden_question_in_the_list_of_emacs_and_leaves_without_ending_anything() {
    if skip_unless(system_emacs().is_some(), "emacs is not installed (tests/door-programs-emacs)") {
        return;
    }
    let d = Daemon::start();
    let pty = |name: &str, script: &str| d.sh_with(script, json!({ "pty": true, "name": name }));
    pty("vault", "stty -echo; printf 'Passphrase: '; read -r a; stty echo; echo; echo \"got ${#a}\"; read -r b");
    d.sh_with("exec sleep 300", json!({ "name": "web" }));
    let emacs = format!("emacs -nw -Q -L '{}' -l toold -f toold-list", package().display());
    let term = Term::shell(&d, &format!("{emacs}; echo \"[code $?]\"; read -r _"), &[]);
    term.dialog(&[("", "Passphrase:"), ("i", "vault: Passphrase: "), ("open sesame", "***********"), ("\r", "got 11")]);
    let screen = term.sees("running");
    assert!(!screen.contains("sesame"), "{screen}");
    term.types("\x18\x03");
    assert_eq!(term.ends(), 0);
    let list = d.ok("list", json!({ "fields": ["name", "status"] }));
    let expected = json!([{ "name": "web", "status": "running" }, { "name": "vault", "status": "running" }]);
    assert_eq!(list["processes"], expected);
    assert!(!d.log().contains("sesame"));
}

#[test]
fn the_emacs_package_compiles_without_warnings_in_every_emacs() {
    let d = Daemon::prepare("", &[]);
    let found: Vec<PathBuf> = system_emacs().into_iter().chain(newer_emacs(&d)).collect();
    if skip_unless(!found.is_empty(), "emacs is not installed (tests/door-programs-emacs)") {
        return;
    }
    for emacs in found {
        for file in ["toold.el", "test/toold-test.el"] {
            let args = ["--eval", "(setq byte-compile-error-on-warn t)", "-f", "batch-byte-compile", file];
            let output = batch(&d, &emacs, &args);
            assert_eq!(output.code, 0, "{} {file}: {}", emacs.display(), text(&output));
            fs::remove_file(d.home().join("package").join(format!("{file}c"))).unwrap();
        }
    }
}

#[test]
fn checkdoc_has_nothing_to_report_about_the_emacs_package() {
    let Some(emacs) = system_emacs() else {
        skip_unless(false, "emacs is not installed (tests/door-programs-emacs)");
        return;
    };
    let d = Daemon::prepare("", &[]);
    let check = r#"(let ((found nil))
        (advice-add 'checkdoc-create-error :before
                    (lambda (text start &rest _) (push (format "%s: %s" (and start (line-number-at-pos start)) text) found)))
        (with-current-buffer (find-file-noselect "toold.el") (checkdoc-current-buffer t))
        (princ (format "reports: %S" (nreverse found))))"#;
    let output = batch(&d, &emacs, &["-l", "checkdoc", "--eval", check]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "reports: nil"), "{}", output.stderr);
}

#[test]
fn package_lint_has_nothing_to_report_about_the_emacs_package() {
    let Some(emacs) = system_emacs() else {
        skip_unless(false, "emacs is not installed (tests/door-programs-emacs)");
        return;
    };
    let d = Daemon::prepare("", &[]);
    // The newer one first: the older does not know that Emacs 28 was released.
    let libraries = |root: &Path| root.join("usr/share/emacs/site-lisp/elpa-src");
    let places = [libraries(&unpacked()), libraries(Path::new("/"))];
    let entries = places.iter().flat_map(|place| fs::read_dir(place).into_iter().flatten());
    let dirs: Vec<String> = entries.filter_map(|e| Some(e.ok()?.path().to_str()?.to_owned())).collect();
    let is_newer = |dir: &String| dir.starts_with(unpacked().to_str().unwrap_or_default());
    let is_there = dirs.iter().any(|dir| dir.contains("/package-lint-") && is_newer(dir));
    if skip_unless(is_there, "no newer package-lint is unpacked (tests/door-programs-emacs)") {
        return;
    }
    let mut args: Vec<&str> = dirs.iter().flat_map(|dir| ["-L", dir.as_str()]).collect();
    args.extend(["-l", "package-lint", "-f", "package-lint-batch-and-exit", "toold.el"]);
    let output = batch(&d, &emacs, &args);
    assert_eq!((output.code, text(&output).as_str()), (0, ""));
}
