//! `toolctl` sends nothing to a listener of another user, whichever way it got the address.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::{DEADLINE, Daemon, skip_unless};
use toold_test_support::sys::{self, as_uid};

/// The uid of the attacker.
const OTHER_UID: u32 = 65534;
const SECRET: &str = "hunter2";

/// A listener of another user: it records the first line of each connection, and hangs up.
struct Thief {
    got: Receiver<Vec<u8>>,
}

impl Thief {
    /// `prepare` makes the directory, as the attacker.
    fn listen(socket: &Path, prepare: impl FnOnce() + Send) -> Thief {
        let listener = as_uid(OTHER_UID, || {
            prepare();
            UnixListener::bind(socket).unwrap()
        });
        fs::set_permissions(socket, Permissions::from_mode(0o777)).unwrap();
        let (send, got) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut bytes = Vec::new();
                let _ = BufReader::new(stream.unwrap()).read_until(b'\n', &mut bytes);
                if send.send(bytes).is_err() {
                    return;
                }
            }
        });
        Thief { got }
    }

    /// Everything that it got so far. Call it when the clients have ended: then their connections are closed.
    fn loot(&self, socket: &Path) -> String {
        // A connection of the test is the last in the queue.
        let mut last = std::os::unix::net::UnixStream::connect(socket).unwrap();
        last.write_all(b"THE END").unwrap();
        drop(last);
        let mut all = String::new();
        while !all.ends_with("THE END") {
            all += &String::from_utf8_lossy(&self.got.recv_timeout(DEADLINE).unwrap());
        }
        all.trim_end_matches("THE END").to_owned()
    }
}

/// Runs `toolctl` without a runtime directory.
fn ctl(d: &Daemon, socket_var: Option<&Path>, args: &[&str]) -> Output {
    let mut command = d.ctl_command(args);
    command.env_remove("XDG_RUNTIME_DIR");
    if let Some(socket) = socket_var {
        command.env("TOOLD_SOCKET", socket);
    }
    output_of(command.spawn().unwrap())
}

/// A rig whose directories another user can reach, with its TMPDIR as open as /tmp.
fn open_rig() -> Daemon {
    let d = Daemon::prepare("", &[]);
    fs::set_permissions(d.root(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(d.root().join("tmp"), Permissions::from_mode(0o1777)).unwrap();
    d
}

fn default_socket(d: &Daemon) -> PathBuf {
    d.root().join("tmp/toold-0/toold.sock")
}

/// Before, `toolctl exec --env API_TOKEN=…` sent its command and its environment to the user who had made the directory.
#[test]
fn a_listener_in_a_directory_that_another_user_made_first_gets_no_byte() {
    if skip_unless(sys::is_root(), "another uid needs root") {
        return;
    }
    let d = open_rig();
    let socket = default_socket(&d);
    let thief = Thief::listen(&socket, || {
        fs::create_dir(socket.parent().unwrap()).unwrap();
        fs::set_permissions(socket.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    });
    let env = format!("API_TOKEN={SECRET}");
    let at = socket.to_str().unwrap();
    let exec = ["exec", "--env", &env, "--", "/bin/true", SECRET];
    let with_flag = [&["--socket", at][..], &exec].concat();
    for (var, args) in [
        (None, &exec[..]),
        (Some(socket.as_path()), &exec[..]),
        (None, &with_flag),
        (None, &["--no-autostart", "list"]),
        (None, &["shutdown"]),
        (None, &["run", "--", "/bin/true"]),
    ] {
        let output = ctl(&d, var, args);
        assert_eq!(output.code, 4, "{args:?}: {output:?}");
        let dir = socket.parent().unwrap().display();
        assert!(output.stderr.contains(&format!("{dir} belongs to uid {OTHER_UID}")), "{args:?}: {output:?}");
        assert!(output.stderr.contains("nothing was sent") && output.stderr.contains("TOOLD_SOCKET"), "{output:?}");
    }
    let json = ctl(&d, None, &["--json", "list"]);
    assert!(json.code == 4 && json.stderr.contains("\"kind\":\"untrusted\""), "{json:?}");
    let doctor = ctl(&d, None, &["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("nothing was sent"), "{doctor:?}");
    let completed = ctl(&d, None, &["__complete", "--", "kill", ""]);
    assert_eq!(completed.code, 0, "{completed:?}");
    assert_eq!(thief.loot(&socket), "");
    assert!(!d.state().join("lock").exists(), "no daemon was started beside it");
}

#[test]
fn a_listener_of_another_user_in_a_directory_of_ours_gets_no_byte() {
    if skip_unless(sys::is_root(), "another uid needs root") {
        return;
    }
    let d = open_rig();
    let socket = default_socket(&d);
    let dir = socket.parent().unwrap();
    fs::create_dir(dir).unwrap();
    fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
    let thief = Thief::listen(&socket, || {});
    let open = ctl(&d, None, &["exec", "--", "/bin/true", SECRET]);
    assert!(open.code == 4 && open.stderr.contains("has mode 777"), "{open:?}");
    fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
    let closed = ctl(&d, None, &["exec", "--", "/bin/true", SECRET]);
    assert!(closed.code == 4 && closed.stderr.contains(&format!("uid {OTHER_UID} listens there")), "{closed:?}");
    assert_eq!(thief.loot(&socket), "");
}

/// Root may look after a user's daemon, where it is in a directory of that user.
#[test]
fn root_reaches_a_listener_of_a_user_inside_that_users_directory_only() {
    if skip_unless(sys::is_root(), "another uid needs root") {
        return;
    }
    let d = open_rig();
    let home = d.root().join("theirs");
    let socket = home.join("toold/toold.sock");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(OTHER_UID), None).unwrap();
    let thief = Thief::listen(&socket, || fs::create_dir(socket.parent().unwrap()).unwrap());
    let call = || d.ctl(&["--no-autostart", "--socket", socket.to_str().unwrap(), "list"]);
    assert_eq!(call().code, 4, "it hangs up");
    assert!(thief.loot(&socket).contains("\"method\":\"list\""));
    fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
    let refused = call();
    assert!(refused.code == 4 && refused.stderr.contains(&format!("belongs to uid {OTHER_UID}")), "{refused:?}");
    assert_eq!(thief.loot(&socket), "");
}

#[test]
fn a_link_in_place_of_the_sockets_directory_is_not_followed() {
    let d = Daemon::start();
    let link = d.root().join("link");
    std::os::unix::fs::symlink(d.socket().parent().unwrap(), &link).unwrap();
    let output = d.ctl(&["--socket", link.join("toold.sock").to_str().unwrap(), "list"]);
    assert!(output.code == 4 && output.stderr.contains("is a symbolic link"), "{output:?}");
    assert_eq!(d.ctl(&["list"]).code, 0);
}

/// Before, `toolctl` kept such a line in memory for as long as it came.
#[test]
fn a_message_without_an_end_is_given_up() {
    let d = Daemon::prepare("", &[]);
    fs::create_dir(d.socket().parent().unwrap()).unwrap();
    let listener = UnixListener::bind(d.socket()).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (chunk, mut sent) = (vec![b'x'; 1 << 20], 0);
        // Ends when the client hangs up.
        while stream.write_all(&chunk).is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let output = d.ctl(&["list"]);
    assert!(output.code == 1 && output.stderr.contains("without the end of a message"), "{output:?}");
    let sent = server.join().unwrap();
    assert!(sent < 80 << 20, "{sent} bytes were taken");
    fs::remove_file(d.socket()).unwrap();
}
