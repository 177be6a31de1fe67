//! Overlays for a staged job. Its namespaces are its own, made for it and never cached.

use super::namespaces::{self, MakeError};
use super::plan::{Network, Plan};
use super::wall::{Lease, Prepared, Unavailable, Wall, Walls};
use crate::store::stage::{StageDir, StagedRoot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::launch::StringListBuf;
use toold_format::sandbox::{FileId, MountListBuf, MountStep, NetworkFilter, SandboxBlock, SandboxFds};
use toold_proto::sandbox::Mechanisms;

/// An overlay on a directory.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// The directory below, as it was judged.
    pub path: PathBuf,
    pub id: FileId,
    pub upper: PathBuf,
    /// The directory in which the kernel works. On the file system of `upper`.
    pub work: PathBuf,
}

impl Overlay {
    /// Describes the overlays of a stage.
    pub fn all(roots: &[StagedRoot], stage: &StageDir) -> Vec<Overlay> {
        let overlay = |(at, root): (usize, &StagedRoot)| Overlay {
            path: root.path.clone(),
            id: FileId { dev: root.dev, ino: root.ino },
            upper: stage.upper(at),
            work: stage.work(at),
        };
        roots.iter().enumerate().map(overlay).collect()
    }

    fn push_to(&self, steps: &mut MountListBuf) {
        use std::os::unix::ffi::OsStrExt;
        let none = FileId::default();
        steps.push(MountStep::Layer, none, self.upper.as_os_str().as_bytes());
        steps.push(MountStep::Layer, none, self.work.as_os_str().as_bytes());
        steps.push(MountStep::TakeOverlay, self.id, self.path.as_os_str().as_bytes());
    }
}

/// Replaces the copies of roots by overlays on them. What is protected in one has other numbers than below.
pub fn with_overlays(steps: MountListBuf, overlays: &[Overlay]) -> MountListBuf {
    if overlays.is_empty() {
        return steps;
    }
    let mut with = MountListBuf::default();
    for (step, id, path) in steps.as_list().iter().flatten() {
        let shown = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path.to_bytes()));
        let overlay = overlays.iter().find(|overlay| shown == overlay.path);
        let is_inside = overlays.iter().any(|overlay| shown.starts_with(&overlay.path));
        match (step, overlay) {
            (MountStep::Take, Some(overlay)) => overlay.push_to(&mut with),
            (MountStep::Protect, _) if is_inside => with.push(step, FileId::default(), path.to_bytes()),
            _ => with.push(step, id, path.to_bytes()),
        }
    }
    with
}

impl Walls {
    /// Makes what a staged job needs. `plan`: its confinement; without one it only sees the overlays.
    pub async fn prepare_staged(
        &self,
        plan: Option<&Plan>,
        overlays: &[Overlay],
        living: impl FnOnce() -> Vec<i32>,
    ) -> Result<Prepared, Unavailable> {
        match plan {
            Some(plan) => {
                let _making = self.making.lock().await;
                let wall = self.make(plan, overlays, living).await?;
                self.admit(plan, Lease::alone(wall))
            }
            None => self.join_overlays(overlays).await.map_err(Unavailable::Failed),
        }
    }

    async fn join_overlays(&self, overlays: &[Overlay]) -> Result<Prepared, MakeError> {
        use std::os::unix::ffi::OsStrExt;
        let session = Arc::new(namespaces::make_session(&self.launcher, Network::Full).await?);
        let mut steps = MountListBuf::default();
        overlays.iter().for_each(|overlay| overlay.push_to(&mut steps));
        let put =
            |overlay: &Overlay| steps.push(MountStep::Put, FileId::default(), overlay.path.as_os_str().as_bytes());
        overlays.iter().for_each(put);
        let mounts = namespaces::make_mounts(&self.launcher, &session, &steps).await?;
        let fds = SandboxFds {
            ruleset: None,
            user: Some(session.user.clone()),
            net: None,
            inner_user: Some(mounts.user.clone()),
            mount: Some(mounts.mount.clone()),
            // It has the host's.
            dev: None,
            ipc: None,
        };
        let fds = fds.into_array();
        let none = StringListBuf::default();
        let block = SandboxBlock {
            fds: SandboxFds::from_array(fds.each_ref().map(Option::is_some)),
            observe_writes: false,
            joins_only: true,
            network: NetworkFilter::Open,
            cwd: FileId::default(),
            session: FileId::default(),
            writable: none.as_list(),
            masked: none.as_list(),
            guarded: none.as_list(),
            reachable: none.as_list(),
        };
        let (block, fds) = (block.encode(), fds.into_iter().flatten().collect());
        let by = Mechanisms { landlock: None, seccomp: false, namespaces: vec!["user".into(), "mnt".into()] };
        let mut wall = Wall::default();
        (wall.session, wall.mounts) = (Some(session), Some(mounts));
        let lease = Lease::alone(wall);
        Ok(Prepared {
            block,
            fds,
            enforced: Vec::new(),
            not_enforced: Vec::new(),
            by,
            tmpdir: PathBuf::new(),
            lease,
            stage: None,
        })
    }
}

/// Describes why there can be no overlays, for a person: the file systems, and mounts that are in the way.
pub fn describe_refusal(overlays: &[Overlay], error: &MakeError) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts: Vec<(PathBuf, &str)> = mounts.lines().filter_map(read_mount).collect();
    let kind = |path: &Path| {
        let above = mounts.iter().filter(|(at, _)| path.starts_with(at));
        above.max_by_key(|(at, _)| at.as_os_str().len()).map_or("unknown", |(_, kind)| *kind)
    };
    let each = overlays.iter().map(|overlay| {
        let inside: Vec<String> = mounts
            .iter()
            .filter(|(at, _)| at.starts_with(&overlay.path) && *at != overlay.path)
            .map(|(at, _)| at.display().to_string())
            .collect();
        let inside =
            if inside.is_empty() { String::new() } else { format!(", with mounts in it: {}", inside.join(", ")) };
        let (path, upper) = (overlay.path.display(), overlay.upper.display());
        format!("{path} ({}{inside}) with changes in {upper} ({})", kind(&overlay.path), kind(&overlay.upper))
    });
    let each: Vec<String> = each.collect();
    format!("the kernel makes no overlay on {}: {error}", each.join("; "))
}

/// Reads the place and the file system of a line of mountinfo.
fn read_mount(line: &str) -> Option<(PathBuf, &str)> {
    let (fields, rest) = line.split_once(" - ")?;
    let at = fields.split(' ').nth(4)?.replace("\\040", " ").replace("\\134", "\\");
    Some((at.into(), rest.split(' ').next()?))
}
