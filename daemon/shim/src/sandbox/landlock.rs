//! Landlock by its system calls: a ruleset is made in the daemon, and a child restricts itself by it.

use crate::sys::{self, Result, check};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::ffi::{c_int, c_void};

/// Rights to change files, by bit. Reading and executing are never handled: everything can be read that is not hidden.
pub mod right {
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const REMOVE_DIR: u64 = 1 << 4;
    pub const REMOVE_FILE: u64 = 1 << 5;
    pub const MAKE_CHAR: u64 = 1 << 6;
    pub const MAKE_DIR: u64 = 1 << 7;
    pub const MAKE_REG: u64 = 1 << 8;
    pub const MAKE_SOCK: u64 = 1 << 9;
    pub const MAKE_FIFO: u64 = 1 << 10;
    pub const MAKE_BLOCK: u64 = 1 << 11;
    pub const MAKE_SYM: u64 = 1 << 12;
    pub const REFER: u64 = 1 << 13;
    pub const TRUNCATE: u64 = 1 << 14;
    pub const IOCTL_DEV: u64 = 1 << 15;
    /// Those that a rule on a file may have.
    pub const OF_FILES: u64 = WRITE_FILE | TRUNCATE | IOCTL_DEV;
}

/// The scope of abstract sockets and of signals.
pub const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
pub const SCOPE_SIGNALS: u64 = 2;

const RULE_PATH_BENEATH: c_int = 1;
const CREATE_RULESET_VERSION: u32 = 1;

#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: c_int,
}

/// Asks the kernel for the version of its interface. 0: there is none, or it is turned off.
pub fn version() -> u32 {
    let (null, size) = (std::ptr::null::<c_void>(), 0usize);
    // SAFETY: with the version flag the call takes a null pointer and a zero size.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, null, size, CREATE_RULESET_VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// Makes a ruleset that handles these rights and scopes. One without scopes works with versions that have none.
pub fn create_ruleset(handled: u64, scoped: u64) -> Result<OwnedFd> {
    let attr = RulesetAttr { handled_access_fs: handled, handled_access_net: 0, scoped };
    let size = if scoped == 0 { size_of::<u64>() } else { size_of::<RulesetAttr>() };
    // SAFETY: the kernel reads `size` bytes of the live local.
    let fd = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &attr, size, 0u32) };
    let fd = check(fd as c_int)?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { sys::own(fd) })
}

/// Allows these rights at and below the file that `path` refers to.
pub fn allow(ruleset: impl AsFd, path: impl AsFd, rights: u64) -> Result<()> {
    let attr = PathBeneathAttr { allowed_access: rights, parent_fd: path.as_fd().as_raw_fd() };
    let ruleset = ruleset.as_fd().as_raw_fd();
    // SAFETY: the kernel reads the live local of this type.
    let added = unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0u32) };
    check(added as c_int).map(drop)
}

/// Restricts this thread, for good.
pub fn restrict_self(ruleset: impl AsFd) -> Result<()> {
    // SAFETY: plain numbers.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_fd().as_raw_fd(), 0u32) };
    check(done as c_int).map(drop)
}
