//! Decides whether a call may touch a path. Pure: paths are resolved by the caller.

use super::error::Refusal;
use crate::sandbox::plan::{Judged, Plan};
use std::path::{Path, PathBuf};

/// Files of processes and of the kernel that hold memory or secrets, or that never end.
const KERNEL_FILES: &[&str] =
    &["environ", "mem", "auxv", "kcore", "kmsg", "pagemap", "kpagecount", "kpageflags", "stack", "syscall"];

/// The use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// The place of a path that may be touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootPlace {
    /// Beneath this root.
    Root(usize),
    /// Anywhere: there are no roots, or it is only read.
    Anywhere,
}

/// The limits of a call.
#[derive(Debug, Default)]
pub struct Limits {
    /// Directories that may be written in.
    pub roots: Vec<Judged>,
    /// Paths that cannot be read.
    pub hide: Vec<PathBuf>,
    /// Paths in roots that stay as they are.
    pub protect: Vec<PathBuf>,
    /// Protected names of a repository, `.git/hooks`: they are protected in any directory, also before it is a repository.
    pub git_names: Vec<PathBuf>,
}

impl From<Plan> for Limits {
    fn from(plan: Plan) -> Limits {
        let protect = plan.protect.into_iter().map(|protected| protected.at.path).chain(plan.unprotected).collect();
        let hide = plan.hide.into_iter().map(|hidden| hidden.path).collect();
        Limits { roots: plan.roots, hide, protect, git_names: plan.git_names }
    }
}

impl Limits {
    fn is_protected(&self, real: &Path) -> bool {
        // A file in the place of a directory with protected paths leads elsewhere: `.git` may be a file that names another one.
        let is_root = self.roots.iter().any(|root| root.path == real);
        let is_of = |path: &PathBuf| real.starts_with(path) || (!is_root && path.starts_with(real));
        let mut rest = real.components();
        let mut in_git = || {
            while rest.as_path().components().next().is_some() {
                let path = rest.as_path();
                if self.git_names.iter().any(|name| path.starts_with(name)) {
                    return true;
                }
                rest.next();
            }
            false
        };
        self.protect.iter().any(is_of) || in_git()
    }
}

/// Judges a path. `asked` is absolute and as the caller gave it; `real` has no links. Without limits everything is inside,
/// but for the files of the kernel that hold secrets.
pub fn check(limits: Option<&Limits>, asked: &Path, real: &Path, access: Access) -> Result<RootPlace, Refusal> {
    if is_kernel_secret(real, limits.is_some()) {
        return Err(Refusal::Kernel);
    }
    let Some(limits) = limits else { return Ok(RootPlace::Anywhere) };
    if limits.hide.iter().any(|hidden| real.starts_with(hidden)) {
        return Err(Refusal::Hidden);
    }
    // The innermost root: its descriptor is the nearest.
    let beneath = |path: &Path| {
        let roots = limits.roots.iter().enumerate().filter(|(_, root)| path.starts_with(&root.path));
        roots.max_by_key(|(_, root)| root.path.components().count()).map(|(index, _)| index)
    };
    match (beneath(real), access) {
        (Some(_), Access::Write) if limits.is_protected(real) => Err(Refusal::Protected),
        (Some(root), _) => Ok(RootPlace::Root(root)),
        (None, _) if beneath(asked).is_some() => Err(Refusal::Escapes),
        (None, Access::Read) => Ok(RootPlace::Anywhere),
        (None, Access::Write) => Err(Refusal::Outside { offer: real.parent().unwrap_or(real).to_owned() }),
    }
}

fn is_kernel_secret(real: &Path, is_limited: bool) -> bool {
    let Ok(below) = real.strip_prefix("/proc") else { return false };
    let of_process = below.components().next().is_some_and(|first| {
        let name = first.as_os_str().to_string_lossy();
        name.bytes().all(|b| b.is_ascii_digit())
    });
    let named = below.file_name().is_some_and(|name| KERNEL_FILES.iter().any(|file| name == *file));
    named || (is_limited && of_process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_judged_by_what_it_leads_to() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path").join("root");
        std::fs::create_dir_all(root.join("inner")).expect("directories");
        let judged = |path: &Path| Judged::open(path).expect("a directory");
        let limits = Limits {
            roots: vec![judged(&root), judged(&root.join("inner"))],
            hide: vec!["/home/me/.ssh".into(), root.join("secret")],
            protect: vec![root.join(".git/hooks")],
            git_names: vec![".git/hooks".into(), ".git/config".into()],
        };
        let outside = |offer: &str| Err(Refusal::Outside { offer: offer.into() });
        let in_root = |path: &str| root.join(path);
        let table = [
            // Asked, real, read, write.
            (in_root("a"), in_root("a"), Ok(RootPlace::Root(0)), Ok(RootPlace::Root(0))),
            (in_root("inner/a"), in_root("inner/a"), Ok(RootPlace::Root(1)), Ok(RootPlace::Root(1))),
            (in_root(""), in_root(""), Ok(RootPlace::Root(0)), Ok(RootPlace::Root(0))),
            ("/etc/passwd".into(), "/etc/passwd".into(), Ok(RootPlace::Anywhere), outside("/etc")),
            (in_root("../x"), dir.path().join("x"), Err(Refusal::Escapes), Err(Refusal::Escapes)),
            (in_root("link"), "/etc/passwd".into(), Err(Refusal::Escapes), Err(Refusal::Escapes)),
            ("/link".into(), in_root("a"), Ok(RootPlace::Root(0)), Ok(RootPlace::Root(0))),
            ("/x".into(), "/home/me/.ssh/id".into(), Err(Refusal::Hidden), Err(Refusal::Hidden)),
            (in_root("secret"), in_root("secret"), Err(Refusal::Hidden), Err(Refusal::Hidden)),
            (in_root(".git/hooks/x"), in_root(".git/hooks/x"), Ok(RootPlace::Root(0)), Err(Refusal::Protected)),
            (in_root(".git"), in_root(".git"), Ok(RootPlace::Root(0)), Err(Refusal::Protected)),
            (in_root("a/.git/config"), in_root("a/.git/config"), Ok(RootPlace::Root(0)), Err(Refusal::Protected)),
            (in_root("a/.git/configs"), in_root("a/.git/configs"), Ok(RootPlace::Root(0)), Ok(RootPlace::Root(0))),
            ("/proc/1/status".into(), "/proc/1/status".into(), Err(Refusal::Kernel), Err(Refusal::Kernel)),
            ("/proc/meminfo".into(), "/proc/meminfo".into(), Ok(RootPlace::Anywhere), outside("/proc")),
        ];
        for (asked, real, read, write) in table {
            assert_eq!(check(Some(&limits), &asked, &real, Access::Read), read, "read {asked:?}");
            assert_eq!(check(Some(&limits), &asked, &real, Access::Write), write, "write {asked:?}");
        }
    }

    #[test]
    fn without_limits_everything_is_inside_but_the_secrets_of_processes() {
        let judge = |path: &str| check(None, Path::new(path), Path::new(path), Access::Write);
        assert_eq!(judge("/etc/passwd"), Ok(RootPlace::Anywhere));
        assert_eq!(judge("/proc/1/status"), Ok(RootPlace::Anywhere));
        assert_eq!(judge("/proc/1/environ"), Err(Refusal::Kernel));
        assert_eq!(judge("/proc/kcore"), Err(Refusal::Kernel));
    }
}
