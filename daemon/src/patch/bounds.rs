//! The directories in which a call may change files: the rule is that of `files::roots`, the directories are open.

use super::ApplyError;
use crate::changes::Root;
use crate::files::Refusal;
use crate::files::roots::{Access, Limits, RootPlace, check};
use crate::sandbox::plan::{Judged, Plan};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bounds of one call.
#[derive(Debug)]
pub struct Bounds {
    /// Open directories. All changes are beneath one of them.
    pub roots: Vec<Arc<Root>>,
    limits: Option<Limits>,
}

impl Bounds {
    /// The bounds of a plan, and directories that a person gave, whose `protect` paths stay as they are. None: everything.
    pub fn new(plan: Option<&Plan>, given: &[Judged], protect: &[String]) -> io::Result<Bounds> {
        let Some(plan) = plan else {
            return Ok(Bounds { roots: vec![Arc::new(Root::open(Path::new("/"))?)], limits: None });
        };
        let roots =
            plan.roots.iter().chain(given).map(|root| Ok(Arc::new(Root::of(root.path.clone(), root.fd.try_clone()?)?)));
        let judged = |root: &Judged| {
            let Judged { path, dev, ino, is_dir, fd } = root;
            Ok(Judged { path: path.clone(), dev: *dev, ino: *ino, is_dir: *is_dir, fd: fd.try_clone()? })
        };
        let known = plan.protect.iter().map(|protected| &protected.at.path).chain(&plan.unprotected).cloned();
        let added = given.iter().flat_map(|root| protect.iter().map(|name| root.path.join(name)));
        let limits = Limits {
            roots: plan.roots.iter().chain(given).map(judged).collect::<io::Result<_>>()?,
            hide: plan.hide.iter().map(|hidden| hidden.path.clone()).collect(),
            protect: known.chain(added).collect(),
            git_names: plan.git_names.clone(),
        };
        Ok(Bounds { roots: roots.collect::<io::Result<_>>()?, limits: Some(limits) })
    }

    /// Judges a path. `asked` is absolute and as the call names it, `real` has no links. Returns its root, and the path from
    /// there.
    pub fn judge(&self, asked: &Path, real: &Path) -> Result<(usize, PathBuf), Refusal> {
        let root = match check(self.limits.as_ref(), asked, real, Access::Write)? {
            RootPlace::Root(at) => at,
            RootPlace::Anywhere => 0,
        };
        let relative = self.roots.get(root).and_then(|root| root.relative(real));
        relative.map(|path| (root, path.to_path_buf())).ok_or(Refusal::Escapes)
    }

    /// Judges a path whose content the answer depends on.
    pub fn judge_read(&self, asked: &Path, real: &Path) -> Result<(), Refusal> {
        check(self.limits.as_ref(), asked, real, Access::Read).map(|_| ())
    }
}

/// The error of a path that is out of bounds.
pub fn refused_path(path: PathBuf, refusal: Refusal) -> ApplyError {
    match refusal {
        Refusal::Outside { offer } => ApplyError::Outside { path, offer },
        other => ApplyError::Denied { why: describe(&other), path },
    }
}

/// Describes the rule that refuses a path, for a person.
pub fn describe(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Outside { offer } => {
            format!("it is outside the roots of the profile; {} would have to be one", offer.display())
        }
        Refusal::Escapes => "it leads out of the roots of the profile, by `..` or through a link".into(),
        Refusal::Hidden => "the profile hides it".into(),
        Refusal::Protected => "the profile protects it".into(),
        Refusal::Kernel => "it is a file of the kernel with the memory or the secrets of processes".into(),
        Refusal::SetId => "it would get the set-user-ID or set-group-ID bit".into(),
    }
}
