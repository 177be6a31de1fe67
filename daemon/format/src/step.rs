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
/// The confinement of the launch cannot be read, or its descriptors are not there.
pub const SANDBOX: u32 = 30;
pub const USER_NAMESPACE: u32 = 31;
pub const NET_NAMESPACE: u32 = 32;
pub const MOUNT_NAMESPACE: u32 = 33;
/// The working directory is not the one that was judged.
pub const CWD_IDENTITY: u32 = 34;
pub const NO_NEW_PRIVS: u32 = 35;
pub const CAPABILITIES: u32 = 36;
pub const LANDLOCK: u32 = 37;
pub const FILTER: u32 = 38;
/// The listener of the filter did not reach the shim.
pub const LISTENER: u32 = 39;
/// The ids of a new user namespace could not be mapped.
pub const ID_MAP: u32 = 40;
pub const LOOPBACK: u32 = 41;
/// The mounts of a new namespace could not be made.
pub const MOUNTS: u32 = 42;
/// A path of the confinement is not the file that was judged.
pub const PATH_IDENTITY: u32 = 43;
/// The file systems of a stage cannot carry its overlay.
pub const OVERLAY: u32 = 44;
pub const IPC_NAMESPACE: u32 = 45;

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
        SANDBOX => "sandbox",
        USER_NAMESPACE => "user_namespace",
        NET_NAMESPACE => "net_namespace",
        MOUNT_NAMESPACE => "mount_namespace",
        CWD_IDENTITY => "cwd_identity",
        NO_NEW_PRIVS => "no_new_privs",
        CAPABILITIES => "capabilities",
        LANDLOCK => "landlock",
        FILTER => "filter",
        LISTENER => "listener",
        ID_MAP => "id_map",
        LOOPBACK => "loopback",
        MOUNTS => "mounts",
        PATH_IDENTITY => "path_identity",
        OVERLAY => "overlay",
        IPC_NAMESPACE => "ipc_namespace",
        // A step of a later version.
        _ => "unknown",
    }
}
