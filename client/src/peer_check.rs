//! Checks, before the first byte is sent, that the listener behind a socket is this user's or root's.
//!
//! A request carries commands and environment values. Without these checks another user who makes `$TMPDIR/toold-$UID`
//! first would receive them. Root is held to the same rule: a daemon of another user gets nothing of root's.

use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The mode bits that let others put a socket of theirs into a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Reports why nothing may be sent to the socket at `path`, by its directory. A directory that does not exist is left
/// to connect(2), which has the error for it.
pub fn check_dir(path: &Path) -> Result<(), String> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        // A relative path with one component.
        Some(_) => Path::new("."),
        None => return Ok(()),
    };
    match std::fs::symlink_metadata(dir) {
        Ok(found) => dir_problem(&found, own_uid()).map_or(Ok(()), |why| Err(format!("{} {why}", dir.display()))),
        Err(_) => Ok(()),
    }
}

/// Reports why nothing may be sent to the process that listens behind this connection.
pub fn check_peer(stream: impl AsFd) -> io::Result<Result<(), String>> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw();
    let own = own_uid();
    Ok(if is_trusted(peer, own) {
        Ok(())
    } else {
        Err(format!("uid {peer} listens there, and you are uid {own}; {}", remedy(peer, own)))
    })
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_trusted(uid: u32, own: u32) -> bool {
    uid == own || uid == 0
}

fn dir_problem(found: &Metadata, own: u32) -> Option<String> {
    if found.is_symlink() {
        return Some("is a symbolic link; give the directory itself with --socket or TOOLD_SOCKET".into());
    }
    if !found.is_dir() {
        return Some("is not a directory; move it away or choose another socket with --socket or TOOLD_SOCKET".into());
    }
    if !is_trusted(found.uid(), own) {
        return Some(format!("belongs to uid {}, and you are uid {own}; {}", found.uid(), remedy(found.uid(), own)));
    }
    (found.mode() & WRITABLE_BY_OTHERS != 0).then(|| {
        let mode = found.mode() & 0o7777;
        format!("has mode {mode:03o}, so others can put a socket there; use a directory that only you can write to")
    })
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
    fn only_this_user_and_root_are_trusted_also_by_root() {
        assert!(is_trusted(1000, 1000) && is_trusted(0, 1000) && is_trusted(0, 0));
        assert!(!is_trusted(1001, 1000) && !is_trusted(1000, 0));
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
        assert_eq!(check_dir(&dir.path().join("missing/s")), Ok(()));
        assert_eq!((check_dir(Path::new("/s")), check_dir(Path::new("/"))), (Ok(()), Ok(())));
    }
}
