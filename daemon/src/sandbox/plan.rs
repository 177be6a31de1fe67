//! A resolved and judged confinement. What was judged is what is granted: its paths are open.

use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags, ResolveFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
pub use toold_proto::sandbox::{Measure, Network};

/// The confinement of one job.
#[derive(Debug)]
pub struct Plan {
    /// The name of the profile that was asked for.
    pub profile: String,
    pub mode: ConfinedMode,
    pub network: Network,
    /// The session whose loopback and `/tmp` it shares. None: the one of all jobs without a session.
    pub session: Option<String>,
    pub cwd: Judged,
    /// The directories that it may write in. Empty if it may write nowhere.
    pub roots: Vec<Judged>,
    /// Paths inside a root that stay read-only. They exist.
    pub protect: Vec<Protected>,
    /// Protected names that begin with `.git`.
    pub git_names: Vec<PathBuf>,
    /// Protected names that do not exist. They are never created.
    pub unprotected: Vec<PathBuf>,
    /// Protected names in a directory of git that exists, which do not exist. The shim refuses to make them.
    pub guarded: Vec<PathBuf>,
    /// Those of them that exist: a link leads to them.
    pub linked: Vec<PathBuf>,
    /// Paths that cannot be read. They exist.
    pub hide: Vec<Judged>,
    /// Sockets that are in reach although their directory is masked.
    pub unix_sockets: Vec<PathBuf>,
    /// The directory through which it talks to the daemon: read-only, and in reach although what is around it is hidden.
    pub channel: Option<Judged>,
    /// Measures without which it must not start.
    pub require: Vec<Measure>,
    /// Refused writes are seen; otherwise only refused network calls.
    pub observe: bool,
    /// Its private `/tmp`: a directory in the state directory. A session that has ended and begins again has another one.
    pub tmp: Judged,
}

impl Plan {
    /// Keeps a directory of the daemon in reach.
    pub fn set_channel(&mut self, dir: Judged) -> io::Result<()> {
        let is_hidden = |hidden: &Judged| dir.path.starts_with(&hidden.path);
        if let (false, Some(around)) = (self.hide.iter().any(is_hidden), dir.path.parent()) {
            // The directories of other jobs are beside it.
            self.hide.push(Judged::open_canonical(around.to_path_buf())?);
        }
        self.channel = Some(dir);
        Ok(())
    }
}

/// The places in which a confined job may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfinedMode {
    WorkspaceWrite,
    ReadOnly,
}

/// A path inside a root that stays read-only.
#[derive(Debug)]
pub struct Protected {
    pub at: Judged,
    /// The index of its root.
    pub root: usize,
}

/// An open path and its identity.
#[derive(Debug)]
pub struct Judged {
    /// Absolute, without links.
    pub path: PathBuf,
    pub dev: u64,
    pub ino: u64,
    pub is_dir: bool,
    /// Opened with `O_PATH`.
    pub fd: OwnedFd,
}

impl Judged {
    /// Resolves `path`, which must be absolute, and opens what is there. A link that appears in between is refused.
    pub fn open(path: &Path) -> io::Result<Judged> {
        if !is_plain(path) {
            return Judged::open_canonical(std::fs::canonicalize(path)?);
        }
        match Judged::open_canonical(path.to_path_buf()) {
            Err(e) if e.raw_os_error() == Some(libc::ELOOP) => Judged::open_canonical(std::fs::canonicalize(path)?),
            // Most paths are as they should be, and one call instead of one for each of their parts shows it.
            opened => opened,
        }
    }

    /// Opens a path that has no links; with one, the error is `ELOOP`.
    pub fn open_canonical(path: PathBuf) -> io::Result<Judged> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let fd = rustix::fs::openat2(CWD, &path, flags, FileMode::empty(), resolve)?;
        let stat = rustix::fs::fstat(&fd)?;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Ok(Judged { path, dev: stat.st_dev, ino: stat.st_ino, is_dir, fd })
    }

    /// Returns true if both are the same file.
    pub fn is_same(&self, other: &Judged) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}

/// Returns true for an absolute path that has no part which could be left out.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let is_part = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
    bytes == b"/" || bytes.strip_prefix(b"/").is_some_and(|rest| rest.split(|byte| *byte == b'/').all(is_part))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Makes the directory, and a plan with it as root, cwd and `/tmp` that hides nothing.
    pub fn plan_in(dir: &Path) -> Plan {
        std::fs::create_dir_all(dir).expect("writable");
        let open = || Judged::open(dir).expect("a directory");
        Plan {
            profile: "p".into(),
            mode: ConfinedMode::WorkspaceWrite,
            network: Network::Off,
            session: None,
            cwd: open(),
            roots: vec![open()],
            protect: Vec::new(),
            git_names: Vec::new(),
            unprotected: Vec::new(),
            guarded: Vec::new(),
            linked: Vec::new(),
            hide: Vec::new(),
            unix_sockets: Vec::new(),
            channel: None,
            require: Vec::new(),
            observe: false,
            tmp: open(),
        }
    }

    #[test]
    fn channels_of_other_jobs_are_hidden_also_if_nothing_around_them_is() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let base = dir.path().canonicalize().expect("resolvable");
        std::fs::create_dir_all(base.join("s/one")).expect("writable");
        let mut plan = plan_in(&base.join("work"));
        plan.set_channel(Judged::open(&base.join("s/one")).expect("a directory")).expect("a directory");
        assert_eq!(plan.hide.iter().map(|hidden| hidden.path.clone()).collect::<Vec<_>>(), [base.join("s")]);
        let spec = plan.to_spec();
        assert_eq!(spec.channel_dir, base.join("s/one").to_str().map(String::from));
    }

    #[test]
    fn a_judged_path_has_no_links_and_keeps_its_identity_when_the_name_is_given_to_another() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let base = dir.path().canonicalize().expect("resolvable");
        let (real, link) = (base.join("real"), base.join("link"));
        std::fs::create_dir(&real).expect("writable");
        std::os::unix::fs::symlink(&real, &link).expect("writable");
        let judged = Judged::open(&link).expect("a directory");
        assert_eq!((judged.path.as_path(), judged.is_dir), (real.as_path(), true));
        for other in ["real/", "./real", "real/../real", "/real", "link/."] {
            let other = PathBuf::from(format!("{}/{other}", base.display()));
            assert_eq!(Judged::open(&other).expect("a directory").path, real, "{other:?}");
        }
        let refused = Judged::open_canonical(link).expect_err("a link");
        assert_eq!(refused.raw_os_error(), Some(libc::ELOOP));
        std::fs::rename(&real, base.join("moved")).expect("writable");
        std::fs::create_dir(&real).expect("writable");
        assert!(!judged.is_same(&Judged::open(&real).expect("a directory")));
        assert!(judged.is_same(&Judged::open(&base.join("moved")).expect("a directory")));
    }
}
