//! The program of a caller, for the record of who asked and who decided.

use toold_proto::approval::Caller;

/// Describes the peer of a connection. Its program is that of now: it may have executed another one since it connected.
pub fn caller(uid: u32, pid: i32) -> Caller {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).map(|path| path.to_string_lossy().into_owned());
    // Another user's program cannot be followed; its name can be read.
    let program =
        program.or_else(|_| std::fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim().into()));
    Caller { uid, pid, program: program.ok().filter(|_| pid > 0) }
}

/// Describes this daemon.
pub fn daemon() -> Caller {
    caller(nix::unistd::getuid().as_raw(), std::process::id() as i32)
}
