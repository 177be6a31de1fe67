//! A daemon, a project as the root of its jobs, and everything around that a job must not touch.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use toold_test_support::rig::{Daemon, OTHER_UID, files, id};
use toold_test_support::sys::copy_program;

pub struct World {
    pub daemon: Daemon,
    /// Outside of /tmp, which a sandbox has for itself.
    base: tempfile::TempDir,
    host_tmp: tempfile::NamedTempFile,
    victim: Child,
    _abstract: UnixListener,
    tcp: TcpListener,
    udp: UdpSocket,
}

/// The user of the daemon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum User {
    Own,
    Other,
}

impl World {
    /// `mechanism`: as in the config.
    pub fn new(user: User, mechanism: &str) -> World {
        let base = tempfile::Builder::new().prefix("toold-world-").tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| base.path().join(name);
        for dir in [
            "outside",
            "hidden",
            "work/.git/hooks",
            "work/.git/objects",
            "work/.git/refs",
            "work/.vscode",
            "work/sub/repo/.git/hooks",
            "work/sub/repo/.git/objects",
            "work/sub/repo/.git/refs",
            "work/mnt",
            "bin",
        ] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        for name in ["append", "truncate", "unlink", "meta"] {
            fs::write(at("outside").join(name), "bytes").unwrap();
        }
        for git in ["work/.git", "work/sub/repo/.git"] {
            fs::write(at(git).join("config"), "[core]\n").unwrap();
            fs::write(at(git).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        fs::write(at("work/sub/repo/.git/commondir"), ".\n").unwrap();
        fs::write(at("hidden/key"), "private").unwrap();
        copy_program(&std::env::current_exe().unwrap(), &at("bin/act"));
        copy_program(Path::new("/usr/bin/id"), &at("work/set-user-id"));
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let socket = UnixListener::bind(at("outside/socket")).unwrap();
        // Connections wait in its queue.
        std::mem::forget(socket);
        let config = format!(
            "[policy]\ndanger = \"allow\"\n[sandbox]\nmechanism = \"{mechanism}\"\nhide = [\"{}\"]\n",
            at("hidden/key").display()
        );
        let mut daemon = Daemon::prepare(&config, &[]);
        let mut victim = Command::new("sleep");
        victim.arg("10000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if user == User::Other {
            daemon.give_to_other_user();
            chown(base.path(), OTHER_UID);
            victim.uid(OTHER_UID).gid(OTHER_UID);
        } else if toold_test_support::sys::is_root() {
            chown(&at("work/set-user-id"), 65533);
        }
        fs::set_permissions(at("work/set-user-id"), fs::Permissions::from_mode(0o4755)).unwrap();
        daemon.spawn();
        let host_tmp = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        fs::set_permissions(host_tmp.path(), fs::Permissions::from_mode(0o644)).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let echo = udp.try_clone().unwrap();
        std::thread::spawn(move || {
            while let Ok((_, from)) = echo.recv_from(&mut [0; 8]) {
                let _ = echo.send_to(b"y", from);
            }
        });
        let name = SocketAddr::from_abstract_name(base.path().to_str().unwrap()).unwrap();
        World {
            _abstract: UnixListener::bind_addr(&name).unwrap(),
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp,
            host_tmp,
            daemon,
            base,
        }
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    /// The parameters of a job in the project.
    pub fn job(&self, argv: &Value, sandbox: &Value) -> Value {
        let env = json!({
            "OUT": self.at("outside"), "WORK": self.at("work"), "HIDDEN": self.at("hidden/key"),
            "HOST_TMP": self.host_tmp.path(), "DAEMON_SOCKET": self.daemon.socket(),
            "TCP": self.tcp.local_addr().unwrap().port().to_string(),
            "UDP": self.udp.local_addr().unwrap().port().to_string(),
            "ABSTRACT": self.base.path(), "VICTIM": self.victim.id().to_string(),
        });
        let mut params = json!({ "argv": argv, "cwd": self.at("work"), "env": env });
        if !sandbox.is_null() {
            params["sandbox"] = sandbox.clone();
        }
        params
    }

    /// Runs a job to its end. Returns the process and its output.
    pub fn run(&self, argv: &Value, sandbox: &Value) -> (Value, String) {
        let started = self.daemon.ok("exec", self.job(argv, sandbox));
        let ended = self.daemon.closed(&id(&started));
        (ended, self.daemon.text(&id(&started)))
    }

    /// Runs a shell script in the project, in this sandbox.
    pub fn sh(&self, script: &str, sandbox: &Value) -> (Value, String) {
        self.run(&json!(["/bin/sh", "-c", script]), sandbox)
    }

    /// The program that does the acts.
    pub fn acts(&self) -> Value {
        json!([self.at("bin/act"), "--exact", "sandbox::sys::inside_a_job", "--ignored", "--nocapture"])
    }

    /// Everything that a job must leave as it is: names, content, modes, owners, times.
    pub fn untouchable(&self) -> BTreeMap<PathBuf, String> {
        let places = ["outside", "hidden", "work/.git", "work/.vscode", "work/sub/repo/.git"];
        let mut all = BTreeMap::new();
        for file in places.iter().flat_map(|place| files(&self.at(place))) {
            let meta = fs::metadata(&file).unwrap();
            let mut content = Vec::new();
            fs::File::open(&file).unwrap().read_to_end(&mut content).unwrap();
            let facts = (content, meta.mode(), meta.uid(), meta.mtime(), meta.nlink());
            all.insert(file, format!("{facts:?}"));
        }
        all
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn chown(path: &Path, uid: u32) {
    let owner = format!("{uid}:{uid}");
    assert!(Command::new("chown").args(["-R", &owner]).arg(path).status().unwrap().success());
}
