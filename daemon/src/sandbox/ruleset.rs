//! The Landlock ruleset of a plan, made of the very descriptors that were judged.

use super::plan::Plan;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use toold_shim::sandbox::landlock::{self, right};

/// The first version that can be used: the one before refuses every rename to another directory.
pub const MIN_VERSION: u32 = 2;
/// The first version that refuses to truncate.
pub const TRUNCATE_VERSION: u32 = 3;
/// The first version that has scopes for signals and abstract sockets.
pub const SCOPE_VERSION: u32 = 6;
const IOCTL_VERSION: u32 = 5;

/// Devices of the host that a job without mounts of its own can write to.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
/// Directories of the host that a job without mounts of its own can write in: terminals, and the place of POSIX semaphores.
const DEVICE_DIRS: [&str; 2] = ["/dev/pts", "/dev/shm"];

/// The rights to change files that a version handles.
fn handled(version: u32) -> u64 {
    let all = right::WRITE_FILE
        | right::REMOVE_DIR
        | right::REMOVE_FILE
        | right::MAKE_CHAR
        | right::MAKE_DIR
        | right::MAKE_REG
        | right::MAKE_SOCK
        | right::MAKE_FIFO
        | right::MAKE_BLOCK
        | right::MAKE_SYM
        | right::REFER;
    let truncate = if version >= TRUNCATE_VERSION { right::TRUNCATE } else { 0 };
    let ioctl = if version >= IOCTL_VERSION { right::IOCTL_DEV } else { 0 };
    all | truncate | ioctl
}

/// Makes the ruleset. `dev`: the `/dev` of a mount namespace; without it the job has the host's. `scope_sockets`: abstract
/// sockets are not in a network namespace. `overlays`: those on roots, whose files are others than the ones below.
pub fn build(
    plan: &Plan,
    version: u32,
    dev: Option<&OwnedFd>,
    overlays: &[(PathBuf, &OwnedFd)],
    scope_sockets: bool,
) -> io::Result<OwnedFd> {
    let handled = handled(version);
    let sockets = if scope_sockets { landlock::SCOPE_ABSTRACT_SOCKETS } else { 0 };
    let scoped = if version >= SCOPE_VERSION { landlock::SCOPE_SIGNALS | sockets } else { 0 };
    let ruleset = landlock::create_ruleset(handled, scoped)?;
    let inside = handled & !(right::MAKE_CHAR | right::MAKE_BLOCK);
    for root in plan.roots.iter().chain([&plan.tmp]) {
        let rights = if root.is_dir { inside } else { inside & right::OF_FILES };
        let overlay = overlays.iter().find(|(path, _)| *path == root.path).map(|(_, overlay)| *overlay);
        landlock::allow(&ruleset, overlay.unwrap_or(&root.fd), rights)?;
    }
    match dev {
        Some(dev) => landlock::allow(&ruleset, dev, inside)?,
        None => {
            for (path, rights) in DEVICES
                .iter()
                .map(|path| (path, handled & right::OF_FILES))
                .chain(DEVICE_DIRS.iter().map(|path| (path, inside)))
            {
                // A machine may have fewer of them.
                let Ok(file) = rustix::fs::open(*path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { continue };
                landlock::allow(&ruleset, &file, rights)?;
            }
        }
    }
    Ok(ruleset)
}
