//! Resolves a profile to a plan: opens its paths, and finds what to protect and what to hide.

use super::plan::{ConfinedMode, Judged, Plan, Protected};
use super::profile::{Ceiling, ChosenProfile};
use super::protect::{self, Repositories, find_repositories};
use super::session_tmp;
use crate::config::policy::{Sandbox, expand};
use crate::store::sandbox::{JudgedPlace, SandboxSpec};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use toold_proto::sandbox::{Mechanisms, ProfileMode};

/// Time for which the repositories found in a root are remembered. A search of a large root takes milliseconds.
const SEARCH_TTL: Duration = Duration::from_secs(5);
/// Roots whose repositories are remembered.
const MAX_SEARCHES_KEPT: usize = 64;

/// Directories of tools that they can make again, relative to the home directory.
const CACHES: [&str; 10] = [
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".cache/pip",
    ".cache/uv",
    ".cache/go-build",
    ".cache/yarn",
    ".cache/pnpm",
    ".local/share/pnpm/store",
    "go/pkg/mod",
];

/// Paths of the daemon itself, which a job must not reach.
#[derive(Debug, Clone)]
pub struct OwnPaths {
    pub state_dir: PathBuf,
    pub socket: PathBuf,
    /// The directory of rules.
    pub rules: Option<PathBuf>,
    /// The directory that has a directory for each script.
    pub runs: PathBuf,
}

/// The reason why there is no plan.
#[derive(Debug)]
pub enum ResolveError {
    /// A path of the call cannot be used.
    Path { param: String, problem: String },
    /// A root or the cwd is outside the roots of a ceiling.
    Outside { path: PathBuf, ceiling: String },
    /// A path is not the file that was judged.
    Swapped { path: String },
    /// The private `/tmp` could not be made.
    Tmp { path: PathBuf, source: io::Error },
}

/// Repositories by the identity of their root, and the time of the search.
type Searches = HashMap<(u64, u64), (Instant, Arc<Repositories>)>;

/// Makes plans, and remembers what searches found.
#[derive(Debug)]
pub struct Resolver {
    own: OwnPaths,
    searches: Mutex<Searches>,
}

/// The profile and the directory of a call.
pub struct Wanted<'a> {
    pub chosen: ChosenProfile,
    /// None: a call about files that has no directory. Its roots are those of the profile.
    pub cwd: Option<&'a str>,
    pub session: Option<&'a str>,
    pub ceilings: &'a [Ceiling],
}

impl Resolver {
    pub fn new(own: OwnPaths) -> Resolver {
        Resolver { own, searches: Mutex::default() }
    }

    pub fn own_paths(&self) -> &OwnPaths {
        &self.own
    }

    /// Judges the paths of a call, and opens them. It reads the disk, and waits for it.
    pub fn resolve(&self, wanted: Wanted<'_>, config: &Sandbox) -> Result<Plan, ResolveError> {
        let Wanted { chosen: ChosenProfile { name, profile }, cwd, session, ceilings } = wanted;
        let path = |param: &str, problem: String| ResolveError::Path { param: param.into(), problem };
        let has_cwd = cwd.is_some();
        let cwd = cwd.unwrap_or("/");
        let cwd = Judged::open(Path::new(cwd)).map_err(|e| path("cwd", format!("{cwd}: {e}")))?;
        let mode = match profile.mode {
            ProfileMode::ReadOnly => ConfinedMode::ReadOnly,
            ProfileMode::WorkspaceWrite | ProfileMode::Full => ConfinedMode::WorkspaceWrite,
        };
        let mut roots = Vec::new();
        if mode == ConfinedMode::WorkspaceWrite {
            if has_cwd {
                roots.push(open_again(&cwd).map_err(|e| path("cwd", e.to_string()))?);
            }
            for root in &profile.roots {
                let opened = Judged::open(&expand(root)).map_err(|e| path("sandbox.roots", format!("{root}: {e}")))?;
                if !opened.is_dir {
                    return Err(path("sandbox.roots", format!("{root} is not a directory")));
                }
                roots.push(opened);
            }
            for root in &roots {
                inside_ceilings(&root.path, ceilings)?;
            }
            if profile.caches.unwrap_or(config.caches) {
                // A cache that is not there yet cannot be a root: nothing is created for a job.
                roots.extend(CACHES.iter().filter_map(|cache| Judged::open(&expand(&format!("~/{cache}"))).ok()));
            }
            let git_dir = if has_cwd { linked_git_dir(&cwd.path) } else { None };
            roots.extend(git_dir.filter(|dir| inside_ceilings(&dir.path, ceilings).is_ok()));
        }
        let sockets = config.unix_sockets.iter().chain(&profile.unix_sockets).map(|path| expand(path)).collect();
        let parts =
            Parts { name, mode, network: profile.network, session, require: profile.require, unix_sockets: sockets };
        self.finish(parts, cwd, roots, config)
    }

    /// Opens the paths of a recorded confinement again. A path that is another file by now is refused.
    pub fn resolve_again(
        &self,
        spec: &SandboxSpec,
        session: Option<&str>,
        config: &Sandbox,
    ) -> Result<Plan, ResolveError> {
        let same = |place: &JudgedPlace| {
            let opened = Judged::open_canonical(PathBuf::from(&place.path)).ok();
            let same = opened.filter(|opened| (opened.dev, opened.ino) == (place.dev, place.ino));
            same.ok_or_else(|| ResolveError::Swapped { path: place.path.clone() })
        };
        let cwd = same(&spec.cwd)?;
        let roots = spec.roots.iter().map(same).collect::<Result<Vec<_>, _>>()?;
        let mode = match spec.mode {
            ProfileMode::ReadOnly => ConfinedMode::ReadOnly,
            ProfileMode::WorkspaceWrite | ProfileMode::Full => ConfinedMode::WorkspaceWrite,
        };
        let unix_sockets = spec.unix_sockets.iter().map(PathBuf::from).collect();
        let (name, require) = (spec.profile.clone(), spec.require.clone());
        let parts = Parts { name, mode, network: spec.network, session, require, unix_sockets };
        let mut plan = self.finish(parts, cwd, roots, config)?;
        if let Some(dir) = &spec.channel_dir {
            // It is the daemon's own, and may be a new one after a restart of the machine.
            let opened = Judged::open_canonical(PathBuf::from(dir)).and_then(|channel| plan.set_channel(channel));
            opened.map_err(|_| ResolveError::Swapped { path: dir.clone() })?;
        }
        Ok(plan)
    }

    fn finish(
        &self,
        parts: Parts<'_>,
        cwd: Judged,
        roots: Vec<Judged>,
        config: &Sandbox,
    ) -> Result<Plan, ResolveError> {
        let roots = without_inner(roots);
        let hide = self.hidden(&cwd, &roots, config);
        for (at, dir) in [&cwd].into_iter().chain(&roots).enumerate() {
            if let Some(hidden) = hide.iter().find(|hidden| dir.path.starts_with(&hidden.path)) {
                let param = if at == 0 { "cwd" } else { "sandbox.roots" };
                let problem = format!("{} is inside {}, which is hidden", dir.path.display(), hidden.path.display());
                return Err(ResolveError::Path { param: param.into(), problem });
            }
        }
        let Found { protect, unprotected, guarded, linked } = self.protected(&roots, config);
        let tmp = session_tmp::open(&self.own.state_dir, parts.session);
        let tmp = tmp.map_err(|(path, source)| ResolveError::Tmp { path, source })?;
        Ok(Plan {
            profile: parts.name,
            mode: parts.mode,
            network: parts.network,
            session: parts.session.map(Into::into),
            cwd,
            roots,
            protect,
            git_names: protect::git_names(&config.protect),
            unprotected,
            guarded,
            linked,
            hide,
            unix_sockets: parts.unix_sockets,
            channel: None,
            require: parts.require,
            observe: config.observe,
            tmp,
        })
    }

    /// Returns the paths that are hidden from every job and exist, without links.
    pub fn hidden_paths(&self, config: &Sandbox) -> Vec<PathBuf> {
        let own = [self.own.state_dir.clone()].into_iter().chain(self.own.rules.clone());
        let listed = config.hide.iter().map(|path| expand(path));
        listed.chain(own).filter_map(|path| path.canonicalize().ok()).collect()
    }

    /// Opens the paths to hide that exist. One that the daemon cannot open, its jobs cannot open either.
    fn hidden(&self, cwd: &Judged, roots: &[Judged], config: &Sandbox) -> Vec<Judged> {
        let OwnPaths { state_dir, socket, rules, runs } = &self.own;
        let listed = config.hide.iter().map(|path| expand(path));
        let own = [state_dir.clone()].into_iter().chain(rules.clone());
        let mut hide: Vec<Judged> = listed.chain(own).filter_map(|path| Judged::open(&path).ok()).collect();
        // The directory, unless it is needed or is not the daemon's alone: then only the socket.
        let dir = socket.parent().and_then(|dir| Judged::open(dir).ok()).filter(is_private);
        let is_needed = |dir: &Judged| [cwd].into_iter().chain(roots).any(|at| at.path.starts_with(&dir.path));
        let dir = dir.filter(|dir| !is_needed(dir)).or_else(|| Judged::open(socket).ok());
        let has_runs = dir.as_ref().is_some_and(|dir| runs.starts_with(&dir.path));
        hide.extend(dir);
        if !has_runs {
            hide.extend(Judged::open(runs).ok());
        }
        without_inner(hide)
    }

    fn protected(&self, roots: &[Judged], config: &Sandbox) -> Found {
        let root_of = |path: &Path| roots.iter().position(|root| path.starts_with(&root.path));
        let Found { mut protect, mut unprotected, mut guarded, mut linked } = Found::default();
        for root in roots {
            let found = self.repositories(root);
            if !found.is_complete {
                unprotected.push(root.path.join("**"));
            }
            let names = protect::names_in(&root.path, &config.protect, &found, &|dir| root_of(dir).is_some());
            let reported = names.reported.into_iter().map(|path| (path, true));
            for (path, is_reported) in reported.chain(names.silent.into_iter().map(|path| (path, false))) {
                match open_protected(&path) {
                    OnDisk::There(at) => {
                        if let Some(root) = root_of(&at.path) {
                            protect.push(Protected { at, root });
                        }
                    }
                    OnDisk::Linked(target) => {
                        let target = target.and_then(|at| root_of(&at.path).map(|root| Protected { at, root }));
                        protect.extend(target);
                        linked.push(path.clone());
                        unprotected.push(path);
                    }
                    OnDisk::Missing => {
                        // One in a repository that the job makes is its own.
                        if names.in_git.contains(&path) && path.parent().is_some_and(Path::is_dir) {
                            guarded.push(path.clone());
                        }
                        if is_reported {
                            unprotected.push(path);
                        }
                    }
                }
            }
        }
        protect.sort_by(|a, b| a.at.path.cmp(&b.at.path));
        protect.dedup_by(|a, b| a.at.is_same(&b.at));
        unprotected.sort();
        unprotected.dedup();
        guarded.sort();
        guarded.dedup();
        Found { protect, unprotected, guarded, linked }
    }

    fn repositories(&self, root: &Judged) -> Arc<Repositories> {
        let key = (root.dev, root.ino);
        let lock = || self.searches.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((at, found)) = lock().get(&key)
            && at.elapsed() < SEARCH_TTL
        {
            return found.clone();
        }
        // Other calls go on meanwhile.
        let found = Arc::new(tokio::task::block_in_place(|| find_repositories(&root.path)));
        let mut searches = lock();
        if searches.len() >= MAX_SEARCHES_KEPT {
            searches.retain(|_, (at, _)| at.elapsed() < SEARCH_TTL);
        }
        if searches.len() < MAX_SEARCHES_KEPT {
            searches.insert(key, (Instant::now(), found.clone()));
        }
        found
    }
}

/// The parts of a plan beside its paths.
struct Parts<'a> {
    name: String,
    mode: ConfinedMode,
    network: toold_proto::sandbox::Network,
    session: Option<&'a str>,
    require: Vec<toold_proto::sandbox::Measure>,
    unix_sockets: Vec<PathBuf>,
}

/// The protected paths of a plan.
#[derive(Default)]
struct Found {
    protect: Vec<Protected>,
    unprotected: Vec<PathBuf>,
    guarded: Vec<PathBuf>,
    linked: Vec<PathBuf>,
}

/// A protected path on disk.
enum OnDisk {
    There(Judged),
    /// A link leads to it; the target, if it is there.
    Linked(Option<Judged>),
    Missing,
}

fn open_protected(path: &Path) -> OnDisk {
    match Judged::open_canonical(path.to_path_buf()) {
        Ok(at) => OnDisk::There(at),
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => OnDisk::Linked(Judged::open(path).ok()),
        // A link would be the error before, wherever it leads.
        Err(e) if [Some(libc::ENOENT), Some(libc::ENOTDIR)].contains(&e.raw_os_error()) => OnDisk::Missing,
        Err(_) if path.is_symlink() => OnDisk::Linked(Judged::open(path).ok()),
        Err(_) => OnDisk::Missing,
    }
}

fn open_again(judged: &Judged) -> io::Result<Judged> {
    let fd = judged.fd.try_clone()?;
    Ok(Judged { path: judged.path.clone(), dev: judged.dev, ino: judged.ino, is_dir: judged.is_dir, fd })
}

/// Returns the directory of the repository of a linked worktree: git writes there too.
fn linked_git_dir(cwd: &Path) -> Option<Judged> {
    let dirs = protect::git_dirs(cwd)?;
    if dirs.own == dirs.common { None } else { Judged::open_canonical(dirs.common).ok() }
}

/// Leaves paths out that are inside another one.
fn without_inner(mut all: Vec<Judged>) -> Vec<Judged> {
    let paths: Vec<PathBuf> = all.iter().map(|one| one.path.clone()).collect();
    let mut at = 0;
    all.retain(|one| {
        let own = at;
        at += 1;
        let is_around = |(index, other): (usize, &PathBuf)| {
            index != own && one.path.starts_with(other) && (*other != one.path || index < own)
        };
        !paths.iter().enumerate().any(is_around)
    });
    all
}

fn inside_ceilings(path: &Path, ceilings: &[Ceiling]) -> Result<(), ResolveError> {
    for ceiling in ceilings {
        let roots = &ceiling.profile.roots;
        let is_inside = |root: &String| expand(root).canonicalize().is_ok_and(|root| path.starts_with(root));
        if ceiling.profile.mode == ProfileMode::WorkspaceWrite && !roots.is_empty() && !roots.iter().any(is_inside) {
            return Err(ResolveError::Outside { path: path.into(), ceiling: ceiling.of.clone() });
        }
    }
    Ok(())
}

/// Returns true for a directory of this user that no other one may enter.
fn is_private(dir: &Judged) -> bool {
    let stat = rustix::fs::fstat(&dir.fd);
    stat.is_ok_and(|stat| stat.st_uid == rustix::process::getuid().as_raw() && stat.st_mode & 0o077 == 0)
}

impl Plan {
    /// Returns what the record keeps of it. What is enforced is not known yet.
    pub fn to_spec(&self) -> SandboxSpec {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let place = |judged: &Judged| JudgedPlace { path: text(&judged.path), dev: judged.dev, ino: judged.ino };
        SandboxSpec {
            profile: self.profile.clone(),
            mode: match self.mode {
                ConfinedMode::WorkspaceWrite => ProfileMode::WorkspaceWrite,
                ConfinedMode::ReadOnly => ProfileMode::ReadOnly,
            },
            network: self.network,
            cwd: place(&self.cwd),
            roots: self.roots.iter().map(place).collect(),
            protect: self.protect.iter().map(|protected| text(&protected.at.path)).collect(),
            unprotected: self.unprotected.iter().map(text).collect(),
            linked: self.linked.iter().map(text).collect(),
            observe: self.observe,
            unix_sockets: self.unix_sockets.iter().map(text).collect(),
            channel_dir: self.channel.as_ref().map(|channel| text(&channel.path)),
            require: self.require.clone(),
            enforced: Vec::new(),
            not_enforced: Vec::new(),
            by: Mechanisms::default(),
        }
    }
}
