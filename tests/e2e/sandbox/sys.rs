//! Acts that a sandbox forbids. This test program does them itself, inside a job: it needs no other program there.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One act: its name, the measure that forbids it, and what it does. `always`: no sandbox is without it.
pub struct Act {
    pub name: &'static str,
    pub measure: &'static str,
    /// Only root can do it without a sandbox.
    pub needs_root: bool,
    run: fn(&Place) -> io::Result<()>,
}

/// Paths and addresses, from the environment of the job.
pub struct Place {
    out: PathBuf,
    work: PathBuf,
    hidden: PathBuf,
    host_tmp: PathBuf,
    daemon_socket: PathBuf,
    tcp: u16,
    udp: u16,
    name: String,
    pid: i32,
}

impl Place {
    fn from_env() -> Place {
        let text = |name: &str| std::env::var(name).unwrap();
        Place {
            out: text("OUT").into(),
            work: text("WORK").into(),
            hidden: text("HIDDEN").into(),
            host_tmp: text("HOST_TMP").into(),
            daemon_socket: text("DAEMON_SOCKET").into(),
            tcp: text("TCP").parse().unwrap(),
            udp: text("UDP").parse().unwrap(),
            name: text("ABSTRACT"),
            pid: text("VICTIM").parse().unwrap(),
        }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    fn work(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    fn of_victim(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.pid.to_string()).join(name)
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn check(code: i64) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.write_all(b"x")
}

/// Renames, and back if that worked.
fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    fs::rename(to, from)
}

fn created(path: &Path) -> io::Result<()> {
    File::create_new(path)?;
    fs::remove_file(path)
}

fn connect_abstract(name: &str) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?).map(drop)
}

const fn act(name: &'static str, measure: &'static str, run: fn(&Place) -> io::Result<()>) -> Act {
    Act { name, measure, needs_root: false, run }
}

const fn root_act(name: &'static str, measure: &'static str, run: fn(&Place) -> io::Result<()>) -> Act {
    Act { name, measure, needs_root: true, run }
}

/// The measure of acts that every sandbox forbids.
pub const ALWAYS: &str = "always";

pub const ACTS: &[Act] = &[
    act("create", "fs_write", |p| created(&p.out("new"))),
    act("append", "fs_write", |p| append(&p.out("append"))),
    act("truncate", "fs_write", |p| OpenOptions::new().write(true).truncate(true).open(p.out("truncate")).map(drop)),
    act("truncate by path", "fs_write", |p| {
        // SAFETY: a path that ends with NUL.
        check(i64::from(unsafe { libc::truncate(c_path(&p.out("truncate")).as_ptr(), 0) }))
    }),
    act("unlink", "fs_write", |p| fs::remove_file(p.out("unlink"))),
    act("mkdir", "fs_write", |p| fs::create_dir(p.out("dir")).and_then(|()| fs::remove_dir(p.out("dir")))),
    act("symlink", "fs_write", |p| symlink("/", p.out("link")).and_then(|()| fs::remove_file(p.out("link")))),
    act("rename", "fs_write", |p| renamed(&p.out("append"), &p.out("renamed"))),
    act("rename into the root", "fs_write", |p| renamed(&p.out("append"), &p.work("stolen"))),
    act("link into the root", "fs_write", |p| {
        fs::hard_link(p.out("append"), p.work("linked"))?;
        append(&p.work("linked"))?;
        fs::remove_file(p.work("linked"))
    }),
    act("write by a link in the root", "fs_write", |p| {
        symlink(p.out("append"), p.work("way out"))?;
        let written = append(&p.work("way out"));
        fs::remove_file(p.work("way out"))?;
        written
    }),
    act("write by dots", "fs_write", |p| created(&p.work("../outside/dots"))),
    act("fifo", "fs_write", |p| {
        // SAFETY: a path that ends with NUL.
        check(i64::from(unsafe { libc::mkfifo(c_path(&p.out("fifo")).as_ptr(), 0o600) }))?;
        fs::remove_file(p.out("fifo"))
    }),
    act("chmod", "fs_metadata", |p| fs::set_permissions(p.out("meta"), fs::Permissions::from_mode(0o666))),
    act("chown", "fs_metadata", |p| {
        std::os::unix::fs::chown(p.out("meta"), None, None).and_then(|()| {
            // SAFETY: it has no arguments and always works.
            let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
            std::os::unix::fs::chown(p.out("meta"), Some(uid), Some(gid))
        })
    }),
    act("utime", "fs_metadata", |p| File::open(p.out("meta"))?.set_modified(std::time::UNIX_EPOCH)),
    act("utime by path", "fs_metadata", |p| {
        let times = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
        // SAFETY: a path that ends with NUL, and two times.
        check(i64::from(unsafe { libc::utimensat(libc::AT_FDCWD, c_path(&p.out("meta")).as_ptr(), times.as_ptr(), 0) }))
    }),
    act("setxattr", "fs_metadata", |p| {
        let (path, name) = (c_path(&p.out("meta")), c"user.x");
        // SAFETY: strings that end with NUL, and one byte.
        check(i64::from(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), c"1".as_ptr().cast(), 1, 0) }))
    }),
    act("hook", "protect", |p| created(&p.work(".git/hooks/post-checkout"))),
    act("git config", "protect", |p| append(&p.work(".git/config"))),
    act("git config by rename", "protect", |p| {
        fs::write(p.work("config"), "")?;
        let renamed = fs::rename(p.work("config"), p.work(".git/config"));
        let _ = fs::remove_file(p.work("config"));
        renamed
    }),
    act("rename .git", "protect", |p| renamed(&p.work(".git"), &p.work("git"))),
    act("rename hooks", "protect", |p| renamed(&p.work(".git/hooks"), &p.work(".git/h"))),
    act("chmod hook", "protect", |p| fs::set_permissions(p.work(".git/hooks"), fs::Permissions::from_mode(0o755))),
    act("commondir", "protect", |p| append(&p.work("sub/repo/.git/commondir"))),
    act("nested hook", "protect", |p| created(&p.work("sub/repo/.git/hooks/post-checkout"))),
    act("nested config", "protect", |p| append(&p.work("sub/repo/.git/config"))),
    act("rename above nested", "protect", |p| renamed(&p.work("sub"), &p.work("bus"))),
    act("editor settings", "protect", |p| created(&p.work(".vscode/tasks.json"))),
    act("read hidden", "hide", |p| fs::read(&p.hidden).map(drop)),
    act("rename above hidden", "hide", |p| {
        let dir = p.hidden.parent().unwrap();
        renamed(dir, &dir.with_extension("moved"))
    }),
    act("see the host's tmp", "tmp", |p| fs::read(&p.host_tmp).map(drop)),
    act("tcp", "network", |p| TcpStream::connect(("127.0.0.1", p.tcp)).map(drop)),
    act("udp", "network", |p| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
        socket.send_to(b"x", ("127.0.0.1", p.udp))?;
        // The other end answers.
        socket.recv_from(&mut [0; 8]).map(drop)
    }),
    act("unix socket", "unix_sockets", |p| UnixStream::connect(p.out("socket")).map(drop)),
    act("the daemon's socket", "unix_sockets", |p| {
        let answer = asked(&p.daemon_socket, r#"{"jsonrpc":"2.0","id":1,"method":"list"}"#)?;
        if answer.contains("result") { Ok(()) } else { Err(io::Error::other(answer)) }
    }),
    act("abstract socket", "abstract_sockets", |p| connect_abstract(&p.name)),
    act("kill", "signals", |p| {
        // SAFETY: it has no memory arguments. The signal changes nothing.
        check(i64::from(unsafe { libc::kill(p.pid, libc::SIGCONT) }))
    }),
    act("pidfd signal", "signals", |p| {
        // SAFETY: no memory arguments but a null pointer.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, p.pid, 0);
            check(fd)?;
            let sent = libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGCONT, 0, 0);
            let result = check(sent);
            libc::close(fd as i32);
            result
        }
    }),
    act("ptrace", "ptrace", |p| {
        // SAFETY: it attaches to another process, and lets it go.
        unsafe {
            check(libc::ptrace(libc::PTRACE_SEIZE, p.pid, 0, 0))?;
            libc::ptrace(libc::PTRACE_INTERRUPT, p.pid, 0, 0);
            libc::waitpid(p.pid, std::ptr::null_mut(), libc::__WALL);
            libc::ptrace(libc::PTRACE_DETACH, p.pid, 0, 0);
        }
        Ok(())
    }),
    act("memory", "ptrace", |p| File::open(p.of_victim("mem")).map(drop)),
    act("environ", "ptrace", |p| fs::read(p.of_victim("environ")).map(drop)),
    act("root of another", "ptrace", |p| {
        let there = p.of_victim("root").join(p.out("new").strip_prefix("/").unwrap());
        created(&there)
    }),
    act("cwd of another", "ptrace", |p| fs::read_dir(p.of_victim("cwd")).map(drop)),
    act("prlimit", ALWAYS, |p| {
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a limit, and no place for the old one.
        check(i64::from(unsafe { libc::prlimit(p.pid, libc::RLIMIT_CORE, &limit, std::ptr::null_mut()) }))
    }),
    act("vsock", ALWAYS, |_| {
        // SAFETY: no memory arguments.
        unsafe {
            let fd = libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0);
            check(i64::from(fd))?;
            libc::close(fd);
        }
        Ok(())
    }),
    act("io_uring", ALWAYS, |_| {
        let mut params = [0u8; 120];
        // SAFETY: the parameters have the size that the kernel writes.
        unsafe {
            let fd = libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr());
            check(fd)?;
            libc::close(fd as i32);
        }
        Ok(())
    }),
    root_act("mount", ALWAYS, |p| mounted(&p.work("mnt"))),
    act("mount in a namespace", ALWAYS, |p| {
        let target = p.work("mnt");
        in_child(move || {
            // SAFETY: no memory arguments.
            check(i64::from(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }))?;
            mounted(&target)
        })
    }),
    root_act("handle", ALWAYS, |p| {
        let mut handle = [0u8; 136];
        handle[0] = 128;
        let (mut mount, path) = (0i32, c_path(&p.out("meta")));
        // SAFETY: the handle has room for as much as it declares.
        unsafe {
            let (at, name) = (libc::AT_FDCWD, path.as_ptr());
            check(libc::syscall(libc::SYS_name_to_handle_at, at, name, handle.as_mut_ptr(), &mut mount, 0))?;
            let dir = File::open(&p.out)?;
            let dir = std::os::fd::AsRawFd::as_raw_fd(&dir);
            let fd = libc::syscall(libc::SYS_open_by_handle_at, dir, handle.as_ptr(), libc::O_WRONLY);
            check(fd)?;
            libc::close(fd as i32);
        }
        Ok(())
    }),
    act("keyring", ALWAYS, |_| {
        // SAFETY: no memory arguments: asks for the session keyring.
        check(unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 0) })
    }),
    root_act("setuid program", "setuid", |p| {
        let owned = Command::new(p.work("set-user-id")).arg("-u").output()?;
        let text = String::from_utf8_lossy(&owned.stdout);
        // It belongs to uid 65533.
        if text.trim() == "65533" { Ok(()) } else { Err(io::Error::other(text.trim().to_owned())) }
    }),
];

fn mounted(target: &Path) -> io::Result<()> {
    let (kind, path) = (c"tmpfs", c_path(target));
    // SAFETY: strings that end with NUL, and no options.
    unsafe {
        check(i64::from(libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, std::ptr::null())))?;
        libc::umount(path.as_ptr());
    }
    Ok(())
}

/// Runs an act in a child: it changes the process.
fn in_child(run: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: this program has one thread that does anything; the child only runs the act and exits.
    let pid = unsafe { libc::fork() };
    check(i64::from(pid))?;
    if pid == 0 {
        let code = run().map_or_else(|e| e.raw_os_error().unwrap_or(255), |()| 0);
        // SAFETY: nothing of the parent is to be dropped.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: a place for the status.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// The results that a job printed: the empty text for an act that worked, else its error.
pub fn results(output: &str) -> BTreeMap<String, String> {
    let lines = output.lines().filter_map(|line| line.split_once("ACT ")?.1.split_once(": "));
    lines.map(|(name, result)| (name.to_owned(), result.trim_start_matches("done").to_owned())).collect()
}

/// Does every act. The tests of this directory have jobs run it.
#[test]
#[ignore = "does what a sandbox forbids: only inside the jobs of other tests"]
fn inside_a_job() {
    let place = Place::from_env();
    for act in ACTS {
        match (act.run)(&place) {
            Ok(()) => println!("ACT {}: done", act.name),
            Err(e) => println!("ACT {}: {e}", act.name),
        }
    }
    println!("ACTS END");
}

/// Sends one line, and returns the line that comes back.
fn asked(socket: &Path, call: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{call}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

/// Makes one call.
#[test]
#[ignore = "a client inside the jobs of other tests"]
fn calls_inside_a_job() {
    let text = |name: &str| std::env::var(name).unwrap();
    match asked(Path::new(&text("DAEMON_SOCKET")), &text("CALL")) {
        Ok(answer) => println!("ANSWER {answer}"),
        Err(e) => println!("ANSWER none: {e}"),
    }
}

/// Signals a process by a descriptor.
#[test]
#[ignore = "only inside the jobs of other tests"]
fn signals_inside_a_job() {
    let pid: i32 = std::env::var("TARGET").unwrap().parse().unwrap();
    // SAFETY: plain numbers, and no information.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        check(fd).unwrap();
        let none = std::ptr::null::<libc::siginfo_t>();
        check(libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGUSR1, none, 0)).unwrap();
    }
}

/// Sends itself a signal, and looks who sent it.
#[test]
#[ignore = "only inside the jobs of other tests"]
fn signals_itself_inside_a_job() {
    // In a process with one thread: another one would get it.
    let waited = in_child(|| {
        // SAFETY: sets and information are live locals, and it waits for the signal that it blocked.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGUSR2);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            let child = libc::fork();
            check(i64::from(child))?;
            if child == 0 {
                libc::kill(libc::getppid(), libc::SIGUSR2);
                libc::_exit(0);
            }
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let is_sent = libc::sigwaitinfo(&set, &mut info) == libc::SIGUSR2 && info.si_pid() == child;
            libc::waitpid(child, std::ptr::null_mut(), 0);
            if is_sent { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        }
    });
    waited.unwrap();
}

/// Asks for a listener of its own, and prints the result.
#[test]
#[ignore = "only inside the jobs of other tests"]
fn listens_inside_a_job() {
    let allow =
        libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let mut code = [allow];
    let program = libc::sock_fprog { len: 1, filter: code.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the kernel reads the program, which lives.
    let listened = unsafe { check(libc::syscall(libc::SYS_seccomp, mode, flags, &program)) };
    // SAFETY: the same.
    let filtered = unsafe { check(libc::syscall(libc::SYS_seccomp, mode, 0, &program)) };
    println!("LISTENER {:?} FILTER {:?}", listened.err().map(|e| e.raw_os_error()), filtered.is_ok());
}

/// Connects to the sockets that the environment names, and prints the result.
#[test]
#[ignore = "only inside the jobs of other tests"]
fn connects_inside_a_job() {
    for path in std::env::var("SOCKETS").unwrap().split(':') {
        let errno = UnixStream::connect(path).err().and_then(|e| e.raw_os_error());
        println!("CONNECT {path}={}", errno.unwrap_or(0));
    }
}

/// Gives a program a filter with a listener, as another sandbox does.
pub fn listen_above(command: &mut Command) {
    // SAFETY: the closure only makes system calls.
    unsafe { command.pre_exec(listen) };
}

fn listen() -> io::Result<()> {
    let allow =
        libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let mut code = [allow];
    let program = libc::sock_fprog { len: 1, filter: code.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: plain numbers, and a program that lives.
    let listener = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, mode, flags, &program)
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: only system calls. The child keeps nothing but the listener, until its parent ends.
    unsafe {
        if libc::fork() == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::dup2(listener as i32, 0);
            libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
            loop {
                libc::pause();
            }
        }
    }
    Ok(())
}
