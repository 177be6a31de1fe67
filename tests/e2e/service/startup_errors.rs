//! A daemon that cannot start prints the reason and leaves everything as it was.

use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{DEADLINE, Daemon, skip_unless};
use toold_test_support::sys;

/// Checks that the daemon exits with an error, without a panic, and that its message names `about`.
#[track_caller]
fn fails(d: &Daemon, args: &[&str], about: &str) -> Output {
    let mut command = d.command();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output_of(command.spawn().unwrap());
    assert!(output.code != 0 && output.code < 100, "{output:?}");
    assert!(output.stderr.contains(about) && !output.stderr.contains("panicked"), "must name {about}: {output:?}");
    output
}

#[test]
fn a_socket_path_longer_than_the_kernel_allows_is_rejected() {
    let d = Daemon::prepare("", &[]);
    let long = d.root().join("x".repeat(120)).join("toold.sock");
    let output = fails(&d, &["--socket", long.to_str().unwrap()], "107");
    assert!(output.stderr.contains("socket"), "{output:?}");
    let output = d.ctl(&["--socket", long.to_str().unwrap(), "--no-autostart", "list"]);
    assert!(output.code != 0 && !output.stderr.contains("panicked") && !output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_socket_path_of_exactly_107_bytes_works() {
    let d = Daemon::prepare("", &[]);
    let dir = d.root().join("y".repeat(107 - d.root().as_os_str().len() - "/".len() - "/toold.sock".len()));
    let socket = dir.join("toold.sock");
    assert_eq!(socket.as_os_str().len(), 107);
    let output = d.ctl(&["--socket", socket.to_str().unwrap(), "info"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(d.ctl(&["--socket", socket.to_str().unwrap(), "shutdown"]).code, 0);
}

#[test]
fn a_symlink_or_a_file_in_place_of_the_sockets_directory_is_rejected_and_left() {
    let d = Daemon::prepare("", &[]);
    let dir = d.root().join("run/toold");
    let elsewhere = d.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &dir).unwrap();
    fails(&d, &[], dir.to_str().unwrap());
    assert!(dir.is_symlink() && fs::read_dir(&elsewhere).unwrap().next().is_none(), "the link was followed");
    fs::remove_file(&dir).unwrap();
    fs::write(&dir, "a file").unwrap();
    fails(&d, &[], dir.to_str().unwrap());
    assert_eq!(fs::read_to_string(&dir).unwrap(), "a file");
    fs::remove_file(&dir).unwrap();
}

/// The broken code made it with all its parents: as root, a directory in `/`.
#[test]
fn a_missing_runtime_directory_is_an_error_and_is_not_made() {
    let mut d = Daemon::prepare("", &[]);
    let missing = d.root().join("no/such/run");
    d.env.push(("XDG_RUNTIME_DIR".into(), missing.display().to_string()));
    fails(&d, &[], "does not exist; create it");
    assert!(!d.root().join("no").exists());
}

#[test]
fn a_file_in_place_of_the_socket_is_not_removed() {
    let d = Daemon::prepare("", &[]);
    fs::create_dir(d.socket().parent().unwrap()).unwrap();
    fs::set_permissions(d.socket().parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(d.socket(), "precious").unwrap();
    fails(&d, &[], "toold.sock");
    assert_eq!(fs::read_to_string(d.socket()).unwrap(), "precious");
}

#[test]
fn an_impossible_state_directory_is_rejected_by_its_path() {
    let d = Daemon::prepare("", &[]);
    let file = d.root().join("a-file");
    fs::write(&file, "precious").unwrap();
    let below = file.join("state").display().to_string();
    for state in [file.to_str().unwrap(), &below, "/proc/toold-state"] {
        fails(&d, &["--state-dir", state], state);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert!(!d.socket().exists(), "no socket without a state");
}

#[test]
fn a_state_directory_of_another_user_is_rejected() {
    if skip_unless(sys::is_root(), "another owner needs root") {
        return;
    }
    let d = Daemon::prepare("", &[]);
    let state = d.root().join("theirs");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
    fails(&d, &["--state-dir", state.to_str().unwrap()], state.to_str().unwrap());
    assert_eq!((fs::metadata(&state).unwrap().uid(), fs::read_dir(&state).unwrap().count()), (65534, 0));
}

/// A daemon of another user, with the paths of the rig.
fn as_another_user(d: &Daemon) -> std::process::Command {
    for dir in ["", "home", "tmp", "run", "state", "config", "config/toold"] {
        let path = d.root().join(dir);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    // The build directory may be closed to other users.
    let copy = d.root().join("toold-copy");
    sys::copy_program(&d.binary, &copy);
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(d.root().join("run"), Some(65534), Some(65534)).unwrap();
    let mut command = std::process::Command::new(copy);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", d.home()).current_dir("/");
    command.uid(65534).gid(65534).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_read_only_state_directory_is_rejected() {
    if skip_unless(sys::is_root(), "a directory that is read-only for the daemon needs another uid, so root") {
        return;
    }
    let d = Daemon::prepare("", &[]);
    let state = d.root().join("read-only");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
    let mut command = as_another_user(&d);
    command.arg("--socket").arg(d.root().join("run/own/toold.sock")).arg("--state-dir").arg(&state);
    let output = output_of(command.spawn().unwrap());
    assert!(
        output.code != 0 && output.stderr.contains(state.to_str().unwrap()) && !output.stderr.contains("panicked"),
        "{output:?}"
    );
}

#[test]
fn a_socket_directory_of_another_user_is_rejected() {
    if skip_unless(sys::is_root(), "another owner needs root") {
        return;
    }
    let d = Daemon::prepare("", &[]);
    let dir = d.root().join("theirs");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&dir, Some(65534), Some(65534)).unwrap();
    let socket = dir.join("toold.sock");
    fails(&d, &["--socket", socket.to_str().unwrap()], dir.to_str().unwrap());
    assert!(!Path::new(&socket).exists());
}

#[test]
fn a_directory_that_others_rely_on_is_not_closed_to_them() {
    let d = Daemon::prepare("", &[]);
    let home = d.home();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    let socket = home.join("toold.sock");
    fails(&d, &["--socket", socket.to_str().unwrap()], home.to_str().unwrap());
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o755);
}

/// Before, the mode of the directory was changed to 0700, so that no other user reached what was in it.
#[test]
fn a_directory_with_files_of_others_keeps_its_mode_and_is_rejected() {
    let d = Daemon::prepare("", &[]);
    let shared = d.root().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("letter"), "for all").unwrap();
    let (socket, state) = (shared.join("toold.sock"), shared.to_str().unwrap());
    for mode in [0o755, 0o2775] {
        fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
        for args in [["--socket", socket.to_str().unwrap()], ["--state-dir", state]] {
            let output = fails(&d, &args, "give toold a directory of its own");
            assert!(output.stderr.contains("letter"), "{args:?}: {output:?}");
            assert_eq!(fs::metadata(&shared).unwrap().permissions().mode() & 0o7777, mode, "{args:?}");
            assert_eq!(fs::read_dir(&shared).unwrap().count(), 1, "{args:?}: nothing was put there");
        }
    }
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let output = fails(&d, &["--state-dir", state], "sticky");
    assert!(!output.stderr.contains("socket"), "it is about the state directory: {output:?}");
    // A private root with everything below it, as many have it.
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(d.ctl(&["--socket", socket.to_str().unwrap(), "info"]).code, 0);
    assert_eq!(d.ctl(&["--socket", socket.to_str().unwrap(), "shutdown"]).code, 0);
}

#[test]
fn a_state_directory_with_all_that_toold_makes_is_closed_again() {
    let mut d = Daemon::prepare("", &[]);
    // This one has a log in its state directory too.
    assert_eq!(d.ctl(&["run", "--", "/bin/true"]).code, 0);
    let pid = d.ok("daemon.info", json!({}))["pid"].as_i64().unwrap();
    let daemon = sys::Pidfd::open(pid as i32).unwrap();
    assert_eq!(d.ctl(&["shutdown"]).code, 0);
    assert!(daemon.dies_within(DEADLINE));
    for dir in [d.state(), d.socket().parent().unwrap().to_path_buf()] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
    d.spawn();
    for dir in [d.state(), d.socket().parent().unwrap().to_path_buf()] {
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o7777, 0o700);
    }
    assert_eq!(d.ctl(&["list", "-a", "--json"]).code, 0);
}

/// Before, every failure of `flock` was reported as a second daemon without a pid.
#[test]
fn a_file_system_without_locks_is_reported_as_that() {
    for errno in [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS] {
        let d = Daemon::prepare("", &[]);
        let mut command = d.command();
        sys::refuse_call(&mut command, libc::SYS_flock, errno);
        let output = output_of(command.stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(output.code, 1, "{output:?}");
        for part in ["file locks do not work there", "TOOLD_STATE_DIR", "local disk"] {
            assert!(output.stderr.contains(part), "{errno}: {output:?}");
        }
        assert!(!output.stderr.contains("another toold"), "{output:?}");
    }
}

/// Before, the message ended with the reason.
#[test]
fn a_read_only_disk_is_reported_with_the_setting_that_chooses_another_place() {
    let d = Daemon::prepare("", &[]);
    let (state, run) = (d.root().join("state"), d.root().join("run"));
    let mount = |dir: &Path| format!("mount -t tmpfs -o ro,mode=700 tmpfs {}", dir.display());
    let possible = d.tool("unshare", &["-m", "sh", "-c", &mount(&state)]).status().is_ok_and(|s| s.success());
    if skip_unless(possible, "a read-only file system needs root and mount namespaces") {
        return;
    }
    let toold = d.binary.display().to_string();
    for (dir, program, setting) in [
        (&state, "toolctl info", "set TOOLD_STATE_DIR to "),
        (&state, toold.as_str(), "set TOOLD_STATE_DIR to "),
        (&run, toold.as_str(), "set TOOLD_SOCKET to "),
    ] {
        let script = format!("{} && {program}", mount(dir));
        let output = output_of(d.tool("unshare", &["-m", "sh", "-c", &script]).spawn().unwrap());
        assert!(output.code != 0 && output.stderr.contains(setting), "{program}: {output:?}");
        assert!(output.stderr.contains("Read-only file system"), "{program}: {output:?}");
    }
}
