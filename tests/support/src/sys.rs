//! The only unsafe code of the tests: pidfds, signals, fifos, terminals, another uid for one thread, a descriptor or a filter for a child.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Returns true if `fd` becomes readable in time. A pidfd does when its process ends.
fn readable(fd: BorrowedFd<'_>, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd is passed with the count 1, and it outlives the call.
        match unsafe { libc::poll(&mut poll, 1, left.as_millis() as i32) } {
            0 => return false,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            -1 => panic!("poll: {}", io::Error::last_os_error()),
            // One descriptor: any other count is 1.
            _ => return true,
        }
    }
}

/// A process that cannot be confused with a later one of the same pid.
pub struct Pidfd {
    pub pid: i32,
    fd: OwnedFd,
}

impl Pidfd {
    /// None when there is no such process.
    pub fn open(pid: i32) -> Option<Pidfd> {
        // SAFETY: pidfd_open takes two integers and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as RawFd;
        // SAFETY: the kernel just made this descriptor for us, and it has no other owner.
        (fd >= 0).then(|| Pidfd { pid, fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// True from the moment it died, also before it is reaped.
    pub fn is_dead(&self) -> bool {
        readable(self.fd.as_fd(), Duration::ZERO)
    }

    pub fn dies_within(&self, within: Duration) -> bool {
        readable(self.fd.as_fd(), within)
    }

    /// The exit code that the kernel reports, 128+n for a signal. None until the process is reaped, by whichever parent.
    pub fn exit_code(&self) -> Option<i64> {
        const EXIT: u64 = 1 << 3;
        // _IOWR(0xFF, 11, 64 bytes): PIDFD_GET_INFO with PIDFD_INFO_EXIT, kernel 6.15 and later.
        const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;
        let mut info = [0u64; 16];
        info[0] = EXIT;
        // SAFETY: the kernel writes at most the 64 bytes that the request's number names.
        let rc = unsafe { libc::ioctl(self.fd.as_raw_fd(), PIDFD_GET_INFO, info.as_mut_ptr()) };
        if rc != 0 || info[0] & EXIT == 0 {
            return None;
        }
        // mask, cgroup id, then eleven 32-bit ids; the wait status is the next 32 bits.
        let status = (info[7] >> 32) as i32;
        Some(i64::from(if libc::WIFSIGNALED(status) {
            128 + libc::WTERMSIG(status)
        } else {
            libc::WEXITSTATUS(status)
        }))
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a descriptor of ours, an integer, and a null siginfo, which the call allows.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.fd.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
    }
}

/// Resets the signals of the keyboard and of a hang-up to their defaults. Below a `nohup` or in the background of a shell
/// everything that a test starts would ignore them.
pub fn reset_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: SIG_DFL installs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Runs `work` on a thread of its own whose uid is `uid`; the other threads keep theirs.
pub fn as_uid<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the raw call (unlike libc's) changes this thread alone, and takes only integers.
            let rc = unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) };
            assert_eq!(rc, 0, "setresuid: {}", io::Error::last_os_error());
            work()
        });
        thread.join().unwrap()
    })
}

/// Passes `fd` to the child as its descriptor `at`, open across exec.
pub fn give_fd(command: &mut Command, fd: RawFd, at: RawFd) {
    // SAFETY: the closure only calls dup2 and fcntl, which are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // dup2 onto itself would leave close-on-exec set.
            let rc = if fd == at { libc::fcntl(fd, libc::F_SETFD, 0) } else { libc::dup2(fd, at) };
            if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
}

/// Makes the kernel answer these system calls of the child, and of all that it starts, with an error.
pub fn refuse_calls(command: &mut Command, calls: &[i64], errno: i32) {
    let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number of the call is the first field of what a filter sees.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for call in calls {
        filter.push(statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *call as u32));
        filter.push(statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    // SAFETY: the closure only calls prctl, which is safe between fork and exec; the filter moves into it and outlives the call.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            let set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0;
            if set { Ok(()) } else { Err(io::Error::last_os_error()) }
        })
    };
}

/// Drops the bytes of a file from the memory of the kernel, so that the next read needs the disk. Returns false if it cannot.
pub fn leave_memory(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    // SAFETY: both calls take an open descriptor; the second fills a buffer of its own type.
    unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        assert_eq!(libc::fstatfs(file.as_raw_fd(), &mut found), 0);
        found.f_type != libc::TMPFS_MAGIC && libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) == 0
    }
}

/// A fifo between a test and a program: either side waits for the other, with or without a daemon.
pub struct Gate {
    pub path: PathBuf,
    file: File,
}

impl Gate {
    pub fn new(path: &Path) -> Gate {
        let c_path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path is a NUL-terminated string that outlives the call.
        let rc = unsafe { libc::mkfifo(c_path.as_ptr(), 0o600) };
        assert_eq!(rc, 0, "mkfifo {}: {}", path.display(), io::Error::last_os_error());
        // Opened for reading and writing, so that neither opening nor a vanished peer ever blocks or breaks it.
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        Gate { path: path.into(), file }
    }

    /// Shell text that waits until the gate is opened.
    pub fn wait(&self) -> String {
        format!("read -r _ < {}", self.path.display())
    }

    /// Shell text that sends the test a message.
    pub fn send(&self, message: &str) -> String {
        format!("echo {message} > {}", self.path.display())
    }

    /// Lets one `wait` through, now or when it comes.
    pub fn open(&self) {
        (&self.file).write_all(b"\n").unwrap();
    }

    /// Returns the next message. Panics after `within`.
    pub fn recv(&self, within: Duration) -> String {
        let until = Instant::now() + within;
        let mut line = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            assert!(readable(self.file.as_fd(), left), "no message through {}", self.path.display());
            let mut byte = [0];
            (&self.file).read_exact(&mut byte).unwrap();
            if byte[0] == b'\n' {
                return String::from_utf8(line).unwrap();
            }
            line.push(byte[0]);
        }
    }
}

/// Returns the bytes in a pipe that were not read.
pub fn unread_bytes(pipe: &impl std::os::fd::AsRawFd) -> usize {
    let mut count: libc::c_int = 0;
    // SAFETY: the request writes one int, which is ours and lives through the call.
    let done = unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut count) };
    assert_eq!(done, 0, "a pipe knows its bytes");
    count as usize
}

/// Copies a program by another process. If this process wrote the copy, a fork of another test could hold it
/// open for writing for a moment, and it could not be executed then.
pub fn copy_program(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp {} {}", from.display(), to.display());
}

/// Opens a terminal: the side of the person and the side of the programs.
pub fn terminal(rows: u16, cols: u16) -> (File, File) {
    let (mut person, mut program) = (-1, -1);
    let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    let null = std::ptr::null_mut();
    // SAFETY: the call writes both numbers; name and settings may be null, and the size is only read.
    let rc = unsafe { libc::openpty(&mut person, &mut program, null, null as *const _, &size) };
    assert_eq!(rc, 0, "openpty: {}", io::Error::last_os_error());
    for fd in [person, program] {
        // SAFETY: the descriptor was just made. A child of another test must not hold this terminal open.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the call above just made both descriptors, and they have no other owner.
    unsafe { (File::from_raw_fd(person), File::from_raw_fd(program)) }
}

/// Sets the size of the window.
pub fn set_window(person: &File, rows: u16, cols: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is open, and the size is only read.
    let rc = unsafe { libc::ioctl(person.as_raw_fd(), libc::TIOCSWINSZ, &size) };
    assert_eq!(rc, 0, "TIOCSWINSZ: {}", io::Error::last_os_error());
}

/// The settings of the terminal: its flags and its special keys.
pub fn terminal_settings(person: &File) -> (Vec<u32>, Vec<u8>) {
    // SAFETY: an all-zero termios is a valid value for tcgetattr to overwrite.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the value is ours.
    let rc = unsafe { libc::tcgetattr(person.as_raw_fd(), &mut settings) };
    assert_eq!(rc, 0, "tcgetattr: {}", io::Error::last_os_error());
    let flags = vec![settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag];
    (flags, settings.c_cc.to_vec())
}

/// Makes the child the leader of a session whose controlling terminal is its standard input.
pub fn own_terminal(command: &mut Command) {
    // SAFETY: the closure only calls setsid and ioctl, which are safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let leads = libc::setsid() != -1 && libc::ioctl(0, libc::TIOCSCTTY, 0) != -1;
            if leads { Ok(()) } else { Err(io::Error::last_os_error()) }
        })
    };
}

/// Makes one system call fail with this error in the child and all its descendants, as a kernel or a file system without it
/// would.
pub fn refuse_call(command: &mut Command, call: libc::c_long, errno: i32) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let filter = [
        // The number of the call is the first field of the data.
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, call as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: the closure only calls prctl, which is safe between fork and exec; the filter lives in the closure.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            let set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0;
            if set { Ok(()) } else { Err(io::Error::last_os_error()) }
        })
    };
}
