//! The steps of a start that can fail, in the child and around it. The numbers are on disk: frozen.

pub const SESSION: u32 = 1;
pub const TERMINAL: u32 = 2;
pub const STDIO: u32 = 3;
pub const CGROUP: u32 = 4;
pub const CHDIR: u32 = 5;
pub const EXEC: u32 = 6;
pub const LOCK: u32 = 20;
pub const SOCKET: u32 = 21;
pub const PIPE: u32 = 22;
pub const PTY: u32 = 23;
pub const FORK: u32 = 24;
pub const MEMORY: u32 = 25;
pub const LAUNCH: u32 = 26;
pub const RECORD: u32 = 27;
/// It ended while it waited for its turn. The errno is the code of the cause.
pub const PENDING: u32 = 28;
/// Its environment values were in the memory of a daemon that died.
pub const ENVIRONMENT: u32 = 29;

pub fn name(step: u32) -> &'static str {
    match step {
        SESSION => "session",
        TERMINAL => "terminal",
        STDIO => "stdio",
        CGROUP => "cgroup",
        CHDIR => "chdir",
        EXEC => "exec",
        LOCK => "lock",
        SOCKET => "socket",
        PIPE => "pipe",
        PTY => "pty",
        FORK => "fork",
        MEMORY => "memory",
        LAUNCH => "launch",
        RECORD => "record",
        PENDING => "pending",
        ENVIRONMENT => "environment",
        // A step of a later version.
        _ => "unknown",
    }
}
