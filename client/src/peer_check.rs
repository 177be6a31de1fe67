//! Checks, before the first byte is sent, that the listener behind a socket is this user's or root's.
//!
//! A request carries commands and environment values. Without these checks another user who makes `$TMPDIR/toold-$UID`
//! first would receive them. Root may also reach the daemon of a user, if the socket's directory is inside a directory of
//! that user, such as /run/user/1000: a place that was not made to catch root.

use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The mode bits that let others put a socket of theirs into a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The users whose listener may get a request, beside root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trust {
    own: u32,
    /// The owner of the socket's directory.
    owner: u32,
}

impl Trust {
    fn includes(self, uid: u32) -> bool {
        uid == self.own || uid == 0 || uid == self.owner
    }
}

/// Decides by the directory of the socket at `path` who may listen there, or why nothing may be sent. A directory that
/// does not exist is left to connect(2), which has the error for it.
pub fn check_dir(path: &Path) -> Result<Trust, String> {
    let own = rustix::process::geteuid().as_raw();
    let only_we = Trust { own, owner: own };
    let path = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let Some(dir) = path.parent() else { return Ok(only_we) };
    let Ok(found) = std::fs::symlink_metadata(dir) else { return Ok(only_we) };
    let parent = dir.parent().and_then(|parent| std::fs::symlink_metadata(parent).ok());
    match dir_problem(&found, parent.as_ref(), own) {
        None => Ok(Trust { own, owner: found.uid() }),
        Some(why) => Err(format!("{} {why}", dir.display())),
    }
}

/// Reports why nothing may be sent to the process that listens behind this connection.
pub fn check_peer(stream: impl AsFd, trust: Trust) -> io::Result<Result<(), String>> {
    let peer = crate::sys::peer_uid(stream.as_fd())?;
    Ok(if trust.includes(peer) {
        Ok(())
    } else {
        Err(format!("uid {peer} listens there, and you are uid {}; {}", trust.own, remedy(peer, trust.own)))
    })
}

fn dir_problem(found: &Metadata, parent: Option<&Metadata>, own: u32) -> Option<String> {
    if found.is_symlink() {
        return Some("is a symbolic link; give the directory itself with --socket or TOOLD_SOCKET".into());
    }
    if !found.is_dir() {
        return Some("is not a directory; move it away or choose another socket with --socket or TOOLD_SOCKET".into());
    }
    let owner = found.uid();
    let of_user =
        own == 0 && parent.is_some_and(|dir| dir.uid() == owner && dir.is_dir() && !is_writable_by_others(dir));
    if owner != own && owner != 0 && !of_user {
        return Some(format!("belongs to uid {owner}, and you are uid {own}; {}", remedy(owner, own)));
    }
    is_writable_by_others(found).then(|| {
        let mode = found.mode() & 0o7777;
        format!("has mode {mode:03o}, so others can put a socket there; use a directory that only you can write to")
    })
}

fn is_writable_by_others(dir: &Metadata) -> bool {
    dir.mode() & WRITABLE_BY_OTHERS != 0
}

fn remedy(theirs: u32, own: u32) -> String {
    let choose = "set TOOLD_SOCKET or XDG_RUNTIME_DIR to a place in a directory of your own";
    match own {
        0 => format!("{choose}, or reach that user's daemon with `setpriv --reuid {theirs} --clear-groups toolctl …`"),
        _ => choose.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_this_user_root_and_the_owner_of_the_directory_may_listen() {
        let trust = |own, owner| Trust { own, owner };
        assert!(trust(1000, 1000).includes(1000) && trust(1000, 1000).includes(0) && trust(0, 1000).includes(1000));
        assert!(!trust(1000, 1000).includes(1001) && !trust(0, 0).includes(1000) && !trust(1000, 0).includes(1001));
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused_with_its_mode() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        for (mode, fits) in
            [(0o700, true), (0o755, true), (0o500, true), (0o770, false), (0o702, false), (0o1777, false)]
        {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
            let checked = check_dir(&socket);
            assert_eq!(checked.is_ok(), fits, "{mode:o}: {checked:?}");
            assert!(checked.err().is_none_or(|why| why.contains(&format!("has mode {mode:o}"))));
        }
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_refused_and_a_missing_directory_is_not_an_attack() {
        let dir = tempfile::tempdir().expect("a directory");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).expect("a link");
        let why = check_dir(&link.join("s")).expect_err("a link");
        assert!(why.contains("is a symbolic link; "), "{why}");
        assert!(check_dir(&dir.path().join("missing/s")).is_ok());
        assert!(check_dir(Path::new("/s")).is_ok() && check_dir(Path::new("/")).is_ok());
    }
}
