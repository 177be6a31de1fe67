//! Finds the protected paths inside a root: those of the root, of repositories below it, and of the directories that git
//! keeps for them.
//!
//! A repository below a root is found by a search that is bounded: `MAX_DEPTH` levels and `MAX_ENTRIES` names. It does not follow
//! links and does not enter `.git`. A root with more is reported as such.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// Levels below a root that are searched for repositories.
const MAX_DEPTH: usize = 6;
/// Names in a root that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// Worktrees and submodules of one repository that are looked at.
const MAX_GIT_DIRS: usize = 256;
/// Levels of submodules in submodules.
const MAX_MODULE_DEPTH: usize = 4;
/// The longest file of git that is read: each is one line.
const MAX_LINK_LEN: u64 = 8192;

/// The repositories in a root.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Repositories {
    /// Directories with a `.git`, without the root itself.
    pub work_trees: Vec<PathBuf>,
    /// Repositories without a work tree.
    pub bare: Vec<PathBuf>,
    /// False: the root is too large, and some of it was not searched.
    pub is_complete: bool,
}

/// Searches a root for repositories.
pub fn find_repositories(root: &Path) -> Repositories {
    let mut found = Repositories { is_complete: true, ..Repositories::default() };
    let mut left = MAX_ENTRIES;
    let mut dirs = VecDeque::from([(root.to_path_buf(), 0)]);
    while let Some((dir, depth)) = dirs.pop_front() {
        // One that cannot be read by the daemon cannot be read by its job.
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let (mut below, mut has_git, mut bare_marks) = (Vec::new(), false, 0);
        for entry in entries.flatten() {
            if left == 0 {
                found.is_complete = false;
                return found;
            }
            left -= 1;
            let (name, is_dir) = (entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
            match name.to_str() {
                Some(".git") => has_git = true,
                Some("HEAD") if !is_dir => bare_marks += 1,
                Some("objects" | "refs") if is_dir => bare_marks += 1,
                _ => {}
            }
            if is_dir && name != ".git" {
                below.push(dir.join(name));
            }
        }
        if has_git && depth > 0 {
            found.work_trees.push(dir);
        } else if bare_marks == 3 {
            found.bare.push(dir);
            continue;
        }
        if depth < MAX_DEPTH {
            dirs.extend(below.into_iter().map(|dir| (dir, depth + 1)));
        } else if !below.is_empty() {
            found.is_complete = false;
        }
    }
    found
}

/// The directories of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirs {
    /// Its own: `.git`, or what a `.git` file leads to.
    pub own: PathBuf,
    /// That of all of its worktrees, with hooks and config. Equal to `own` unless it is a linked worktree.
    pub common: PathBuf,
}

/// Finds the directories of the repository at `work_tree`, without links. A `.git` file is believed only if the
/// repository names this worktree: any job could have written it.
pub fn git_dirs(work_tree: &Path) -> Option<GitDirs> {
    let dot_git = work_tree.join(".git");
    let kind = std::fs::symlink_metadata(&dot_git).ok()?.file_type();
    if kind.is_dir() {
        return Some(GitDirs { own: dot_git.clone(), common: dot_git });
    }
    if !kind.is_file() {
        return None;
    }
    let own = read_line(&dot_git)?.strip_prefix("gitdir: ").map(|path| work_tree.join(path.trim()))?;
    let own = own.canonicalize().ok()?;
    match read_line(&own.join("commondir")) {
        Some(common) => {
            let common = own.join(common).canonicalize().ok()?;
            let is_linked = own.parent() == Some(&common.join("worktrees"));
            let back = read_line(&own.join("gitdir")).map(|path| own.join(path));
            let is_back = back.and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == dot_git);
            (is_linked && is_back).then_some(GitDirs { own, common })
        }
        // A submodule: its directory is inside that of the repository around it.
        None => Some(GitDirs { common: own.clone(), own }),
    }
}

fn read_line(path: &Path) -> Option<String> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.len() > MAX_LINK_LEN {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_string())
}

/// Returns the directories inside a repository's own that have hooks, config or a way to them: those of worktrees and of
/// submodules.
pub fn inner_git_dirs(git_dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = dirs_in(&git_dir.join("worktrees"));
    let mut modules: Vec<(PathBuf, usize)> = vec![(git_dir.join("modules"), 0)];
    while let Some((dir, depth)) = modules.pop() {
        for below in dirs_in(&dir) {
            if found.len() >= MAX_GIT_DIRS {
                return found;
            }
            if below.join("HEAD").is_file() {
                modules.push((below.join("modules"), depth + 1));
                found.push(below);
            } else if depth < MAX_MODULE_DEPTH {
                // The name of a submodule may have several parts.
                modules.push((below, depth + 1));
            }
        }
    }
    found
}

fn dirs_in(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let dirs = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path()).take(MAX_GIT_DIRS).collect()
}

/// The paths to protect in a root, that may be there or not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProtectedNames {
    /// They are reported if they do not exist.
    pub reported: Vec<PathBuf>,
    /// They are protected if they exist.
    pub silent: Vec<PathBuf>,
    /// Those of both that are in a directory of git.
    pub in_git: BTreeSet<PathBuf>,
}

/// Files in a directory of git by which one who writes them gets code run by git: protected wherever `hooks` or `config` are.
const WAYS_TO_HOOKS: [&str; 2] = ["commondir", "config.worktree"];

/// Returns the protected names of a repository, from the directory of its `.git`.
pub fn git_names(names: &[String]) -> Vec<PathBuf> {
    let named: Vec<PathBuf> = names.iter().filter(|name| name.starts_with(".git/")).map(PathBuf::from).collect();
    let ways = WAYS_TO_HOOKS.iter().filter(|_| !named.is_empty()).map(|name| Path::new(".git").join(name));
    named.iter().cloned().chain(ways).collect()
}

/// Lists the paths to protect in a root, by the names of the config. `may_write` is true for a directory inside a root:
/// others need no protection.
pub fn names_in(
    root: &Path,
    names: &[String],
    found: &Repositories,
    may_write: &dyn Fn(&Path) -> bool,
) -> ProtectedNames {
    let mut paths = ProtectedNames::default();
    let (in_git, plain): (Vec<&str>, Vec<&str>) =
        names.iter().map(String::as_str).partition(|name| name.starts_with(".git/"));
    let in_git: Vec<&str> = in_git.into_iter().filter_map(|name| name.strip_prefix(".git/")).collect();
    let git_dir = |dir: &Path, is_own: bool, paths: &mut ProtectedNames| {
        if in_git.is_empty() || !may_write(dir) {
            return;
        }
        let named = in_git.iter().copied().chain(WAYS_TO_HOOKS).map(|name| dir.join(name));
        paths.in_git.extend(named);
        let reported = if is_own { &mut paths.reported } else { &mut paths.silent };
        reported.extend(in_git.iter().map(|name| dir.join(name)));
        paths.reported.push(dir.join(WAYS_TO_HOOKS[0]));
        paths.silent.push(dir.join(WAYS_TO_HOOKS[1]));
    };
    paths.reported.extend(plain.iter().map(|name| root.join(name)));
    for work_tree in found.work_trees.iter() {
        paths.silent.extend(plain.iter().map(|name| work_tree.join(name)));
    }
    for work_tree in [root].into_iter().chain(found.work_trees.iter().map(PathBuf::as_path)) {
        match git_dirs(work_tree) {
            Some(GitDirs { own, common }) => {
                git_dir(&common, true, &mut paths);
                inner_git_dirs(&common).iter().for_each(|dir| git_dir(dir, false, &mut paths));
                if own != common {
                    git_dir(&own, false, &mut paths);
                }
            }
            // There is none, or none that can be believed: a job may make one.
            None => git_dir(&work_tree.join(".git"), true, &mut paths),
        }
    }
    found.bare.iter().for_each(|dir| git_dir(dir, true, &mut paths));
    for list in [&mut paths.reported, &mut paths.silent] {
        list.sort();
        list.dedup();
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(paths: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let base = dir.path().canonicalize().expect("resolvable");
        for path in paths {
            let at = base.join(path);
            if path.ends_with('/') {
                fs::create_dir_all(at).expect("writable");
            } else {
                fs::create_dir_all(at.parent().expect("a parent")).expect("writable");
                fs::write(at, "x").expect("writable");
            }
        }
        (dir, base)
    }

    #[test]
    fn repositories_below_a_root_are_found_and_links_are_not_followed() {
        let (_dir, root) =
            tree(&[".git/", "a/b/.git/", "bare.git/HEAD", "bare.git/objects/", "bare.git/refs/", "c/.git"]);
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).expect("writable");
        let mut found = find_repositories(&root);
        found.work_trees.sort();
        assert_eq!(found.work_trees, [root.join("a/b"), root.join("c")]);
        assert_eq!((found.bare, found.is_complete), (vec![root.join("bare.git")], true));
    }

    #[test]
    fn a_root_that_is_too_deep_or_too_large_is_reported() {
        let (_dir, root) = tree(&["1/2/3/4/5/6/7/8/.git/"]);
        assert!(!find_repositories(&root).is_complete);
        let (_dir, root) = tree(&["many/"]);
        (0..=MAX_ENTRIES).for_each(|n| fs::write(root.join("many").join(n.to_string()), "").expect("writable"));
        assert!(!find_repositories(&root).is_complete);
    }

    #[test]
    fn a_worktree_is_believed_only_if_its_repository_names_it() {
        let (_dir, base) = tree(&["repo/.git/worktrees/w/", "w/", "home/"]);
        let admin = base.join("repo/.git/worktrees/w");
        fs::write(base.join("w/.git"), format!("gitdir: {}\n", admin.display())).expect("writable");
        fs::write(admin.join("commondir"), "../..\n").expect("writable");
        assert_eq!(git_dirs(&base.join("w")), None);
        fs::write(admin.join("gitdir"), format!("{}\n", base.join("w/.git").display())).expect("writable");
        assert_eq!(git_dirs(&base.join("w")), Some(GitDirs { own: admin.clone(), common: base.join("repo/.git") }));
        // A job that writes both files cannot make another directory its own.
        fs::write(admin.join("commondir"), base.join("home").display().to_string()).expect("writable");
        assert_eq!(git_dirs(&base.join("w")), None);
    }

    #[test]
    fn hooks_config_and_commondir_are_named_in_every_directory_of_git() {
        let (_dir, root) = tree(&[".git/HEAD", ".git/worktrees/w/HEAD", ".git/modules/a/b/HEAD", "sub/.git/HEAD"]);
        let names = [".git/hooks".to_string(), ".envrc".to_string()];
        let paths = names_in(&root, &names, &find_repositories(&root), &|_| true);
        let commondirs =
            [".git/commondir", "sub/.git/commondir", ".git/worktrees/w/commondir", ".git/modules/a/b/commondir"];
        for reported in [".git/hooks", ".envrc", "sub/.git/hooks"].into_iter().chain(commondirs) {
            assert!(paths.reported.contains(&root.join(reported)), "{reported}: {paths:?}");
        }
        assert!(commondirs.iter().all(|path| paths.in_git.contains(&root.join(path))), "{paths:?}");
        assert!(!paths.in_git.contains(&root.join(".envrc")));
        for silent in [".git/modules/a/b/hooks", "sub/.envrc", ".git/config.worktree"] {
            assert!(paths.silent.contains(&root.join(silent)), "{silent}: {paths:?}");
        }
        assert_eq!(names_in(&root, &[], &Repositories::default(), &|_| true), ProtectedNames::default());
    }
}
