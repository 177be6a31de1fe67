//! Namespaces for jobs: what is in them, and how a spare is asked to make them.

use super::plan::{Judged, Network, Plan};
use super::wall::PRIVATE_TMP;
use crate::backend::{LaunchFrame, Launcher};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::time::timeout;
use toold_format::frame::{self, FromShim, MAX_FROM_SHIM_LEN};
use toold_format::sandbox::{FileId, MountListBuf, MountStep, NamespaceBlock, NamespaceKind};
use toold_format::step;
use toold_shim::sandbox::fds::{self, ReceivedFds};

/// Time that a spare may take to make namespaces.
const MAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Directories and sockets through which a program could act outside, whatever they hold.
const SOCKETS: [&str; 7] = [
    "/run/docker.sock",
    "/run/podman",
    "/run/containerd",
    "/run/dbus",
    "/run/user",
    "/run/systemd/private",
    "/run/systemd/journal",
];
/// The number of other sockets of the host that are masked one by one.
const MAX_MASKED_SOCKETS: usize = 128;

/// A step that failed, with its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MakeError {
    pub step: u32,
    pub errno: i32,
}

impl MakeError {
    /// Returns true if this machine does not give a job such namespaces. Otherwise a path of the plan is the reason.
    pub fn is_of_machine(&self) -> bool {
        let refused = [libc::EPERM, libc::EACCES, libc::EINVAL, libc::ENOSYS, libc::ENOSPC, libc::EUSERS, libc::ENODEV];
        match self.step {
            step::PATH_IDENTITY | step::OVERLAY => false,
            step::MOUNTS => refused.contains(&self.errno),
            // The others concern no path.
            _ => true,
        }
    }
}

impl std::fmt::Display for MakeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", step::name(self.step), io::Error::from_raw_os_error(self.errno))
    }
}

/// The namespaces that all jobs of a session with the same network share.
#[derive(Debug)]
pub struct SessionNamespaces {
    pub user: Arc<OwnedFd>,
    pub ipc: Arc<OwnedFd>,
    /// None: the network of the machine.
    pub net: Option<Arc<OwnedFd>>,
}

/// The namespaces that jobs with the same mounts share.
#[derive(Debug)]
pub struct MountNamespaces {
    pub user: Arc<OwnedFd>,
    pub mount: Arc<OwnedFd>,
    /// Its `/dev`.
    pub dev: Arc<OwnedFd>,
    /// The overlays of a stage, in the order of their steps.
    pub overlays: Vec<OwnedFd>,
}

/// Makes the user and network namespaces of a session.
pub async fn make_session(launcher: &Launcher, network: Network) -> Result<SessionNamespaces, MakeError> {
    let kind = match network {
        Network::Full => NamespaceKind::User,
        Network::Off => NamespaceKind::Net { loopback: false },
        Network::Loopback => NamespaceKind::Net { loopback: true },
    };
    let mut made = make(launcher, kind, IdMaps::outer(), &MountListBuf::default(), Vec::new()).await?;
    let (user, ipc) = (next_fd(&mut made)?, next_fd(&mut made)?);
    let net = if network == Network::Full { None } else { Some(next_fd(&mut made)?) };
    Ok(SessionNamespaces { user: Arc::new(user), ipc: Arc::new(ipc), net: net.map(Arc::new) })
}

/// Makes the user and mount namespaces of jobs, inside those of their session.
pub async fn make_mounts(
    launcher: &Launcher,
    session: &SessionNamespaces,
    mounts: &MountListBuf,
) -> Result<MountNamespaces, MakeError> {
    let outer = vec![session.user.clone()];
    let mut made = make(launcher, NamespaceKind::Mount, IdMaps::inner(), mounts, outer).await?;
    let (user, mount, dev) = (next_fd(&mut made)?, next_fd(&mut made)?, next_fd(&mut made)?);
    let overlays = std::iter::from_fn(|| made.take_next()).collect();
    Ok(MountNamespaces { user: Arc::new(user), mount: Arc::new(mount), dev: Arc::new(dev), overlays })
}

fn next_fd(made: &mut ReceivedFds) -> Result<OwnedFd, MakeError> {
    made.take_next().ok_or(MakeError { step: step::SANDBOX, errno: libc::EBADF })
}

/// The ids that a user namespace has, as the texts of its maps.
struct IdMaps {
    uids: String,
    gids: String,
    deny_setgroups: bool,
}

impl IdMaps {
    /// Those of a session. Uid 0 keeps all ids. An ordinary user may map one: it is 0 in here, because the kernel makes a
    /// file system of terminals only where 0 is mapped.
    fn outer() -> IdMaps {
        IdMaps::new(|id| format!("0 {id} 1"))
    }

    /// Those of a job: every id is what it is outside.
    fn inner() -> IdMaps {
        IdMaps::new(|id| format!("{id} 0 1"))
    }

    fn new(single: impl Fn(u32) -> String) -> IdMaps {
        if rustix::process::geteuid().is_root() {
            let (uids, gids) = (all_ids("/proc/self/uid_map"), all_ids("/proc/self/gid_map"));
            return IdMaps { uids, gids, deny_setgroups: false };
        }
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        IdMaps { uids: single(uid), gids: single(gid), deny_setgroups: true }
    }
}

/// Maps every id that there is here onto itself.
fn all_ids(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut map = String::new();
    for line in text.lines() {
        let mut numbers = line.split_whitespace();
        if let (Some(first), Some(count)) = (numbers.next(), numbers.nth(1)) {
            map += &format!("{first} {first} {count}\n");
        }
    }
    map
}

async fn make(
    launcher: &Launcher,
    kind: NamespaceKind,
    maps: IdMaps,
    mounts: &MountListBuf,
    fds: Vec<Arc<OwnedFd>>,
) -> Result<ReceivedFds, MakeError> {
    let (uid_map, gid_map) = (CString::new(maps.uids).unwrap_or_default(), CString::new(maps.gids).unwrap_or_default());
    let block = NamespaceBlock {
        kind,
        uid_map: &uid_map,
        gid_map: &gid_map,
        deny_setgroups: maps.deny_setgroups,
        mounts: mounts.as_list(),
    };
    let frame = LaunchFrame::make_namespaces(&block.encode(), fds);
    let failed = |e: io::Error| MakeError { step: step::FORK, errno: e.raw_os_error().unwrap_or(libc::EIO) };
    match timeout(MAKE_TIMEOUT, receive(launcher, &frame)).await {
        Ok(made) => made.map_err(failed)?,
        Err(_) => Err(MakeError { step: step::FORK, errno: libc::ETIMEDOUT }),
    }
}

/// Sends the request to a spare and receives its answer.
async fn receive(launcher: &Launcher, frame: &LaunchFrame) -> io::Result<Result<ReceivedFds, MakeError>> {
    let stream = launcher.start(frame).await?;
    let (mut bytes, mut len, mut received) = ([0u8; 64], 0, ReceivedFds::default());
    loop {
        stream.readable().await?;
        let read = stream.try_io(Interest::READABLE, || {
            fds::receive(stream.as_fd(), &mut bytes[len..], &mut received).map_err(io::Error::from)
        });
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => len += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e),
        }
        let answer = frame::next_frame(&bytes[..len], MAX_FROM_SHIM_LEN).map_err(|_| io::ErrorKind::InvalidData)?;
        let Some((kind, body, _)) = answer else { continue };
        return match FromShim::read(kind, body) {
            Some(FromShim::Namespaces) => Ok(Ok(received)),
            Some(FromShim::Failed { step, errno }) => Ok(Err(MakeError { step, errno })),
            // It sends no other frame.
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
    }
}

// ---- mounts ----

/// Lists the steps that build the mounts of a plan, without the masks.
pub fn describe(plan: &Plan) -> MountListBuf {
    let mut steps = MountListBuf::default();
    let none = FileId::default();
    let id = |judged: &Judged| FileId { dev: judged.dev, ino: judged.ino };
    let mut push = |step, id, path: &Path| steps.push(step, id, path.as_os_str().as_bytes());
    let private = Path::new(PRIVATE_TMP);
    let mut roots: Vec<&Judged> = plan.roots.iter().collect();
    roots.sort_by(|a, b| a.path.cmp(&b.path));
    // A directory below /tmp and outside the roots would be gone with the host's /tmp.
    let is_in_root = roots.iter().any(|root| plan.cwd.path.starts_with(&root.path));
    let cwd = Some(&plan.cwd).filter(|cwd| !is_in_root && cwd.path.starts_with(private) && cwd.path != private);
    push(MountStep::Take, id(&plan.tmp), &plan.tmp.path);
    roots.iter().for_each(|root| push(MountStep::Take, id(root), &root.path));
    cwd.into_iter().for_each(|cwd| push(MountStep::TakeReadOnly, id(cwd), &cwd.path));
    push(MountStep::ReadOnly, none, Path::new("/"));
    push(MountStep::Put, none, private);
    for place in roots.iter().copied().chain(cwd) {
        let is_new = place.path.starts_with(private) && place.path != private;
        push(if is_new { MountStep::PutNew } else { MountStep::Put }, none, &place.path);
    }
    for anchor in anchors(plan) {
        push(MountStep::Anchor, none, &anchor);
    }
    let mut protect: Vec<&Judged> = plan.protect.iter().map(|protected| &protected.at).collect();
    protect.sort_by(|a, b| a.path.cmp(&b.path));
    protect.iter().for_each(|at| push(MountStep::Protect, id(at), &at.path));
    push(MountStep::Dev, none, Path::new("/dev"));
    steps
}

/// Returns the directories between a root and what is protected in it, the outermost first. One of them renamed would take
/// what it protects with it.
fn anchors(plan: &Plan) -> BTreeSet<PathBuf> {
    let is_protected = |dir: &Path| plan.protect.iter().any(|protected| dir.starts_with(&protected.at.path));
    let mut anchors = BTreeSet::new();
    for path in plan.protect.iter().map(|protected| &protected.at.path).chain(&plan.guarded) {
        let Some(root) = plan.roots.iter().find(|root| path.starts_with(&root.path)) else { continue };
        let between = path.ancestors().skip(1).take_while(|dir| *dir != root.path);
        anchors.extend(between.filter(|dir| !is_protected(dir)).map(Path::to_path_buf));
    }
    anchors
}

/// A path that is masked, and what stays in reach in it.
pub struct Mask {
    pub path: PathBuf,
    is_dir: bool,
    /// Sockets.
    keep: Vec<PathBuf>,
    /// The directory of a channel, with its identity.
    channel: Option<(PathBuf, FileId)>,
}

impl Mask {
    /// Returns the paths in it that stay in reach.
    pub fn reachable(&self) -> impl Iterator<Item = &Path> {
        let channel = self.channel.as_ref().map(|(path, _)| path);
        self.keep.iter().chain(channel).map(PathBuf::as_path)
    }

    /// Adds the steps that take what stays. `put` puts it in the same order.
    fn take(&self, steps: &mut MountListBuf) {
        let none = FileId::default();
        self.keep.iter().for_each(|socket| steps.push(MountStep::Take, none, socket.as_os_str().as_bytes()));
        if let Some((channel, id)) = &self.channel {
            steps.push(MountStep::TakeReadOnly, *id, channel.as_os_str().as_bytes());
        }
    }

    /// Adds the steps that cover the path and put there what stays.
    fn put(&self, steps: &mut MountListBuf) {
        let (path, none) = (self.path.as_os_str().as_bytes(), FileId::default());
        let is_private = self.path.starts_with(PRIVATE_TMP) && self.path != Path::new(PRIVATE_TMP);
        let cover = match self.is_dir {
            // It went with the host's /tmp. What stays needs a place.
            true if is_private && self.reachable().next().is_some() => MountStep::MaskNew,
            true => MountStep::MaskDir,
            false => MountStep::MaskFile,
        };
        steps.push(cover, none, path);
        self.keep.iter().for_each(|socket| steps.push(MountStep::PutFile, none, socket.as_os_str().as_bytes()));
        if let Some((channel, _)) = &self.channel {
            steps.push(MountStep::PutNew, none, channel.as_os_str().as_bytes());
        }
        if self.is_dir {
            steps.push(MountStep::Seal, none, path);
        }
    }
}

/// Lists what is masked: hidden paths, and the sockets of the host that exist now.
pub fn masks(plan: &Plan) -> Vec<Mask> {
    let mut found: Vec<(PathBuf, bool)> = plan.hide.iter().map(|hidden| (hidden.path.clone(), hidden.is_dir)).collect();
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    for path in SOCKETS.iter().map(PathBuf::from).chain(runtime_dir).chain(host_sockets()) {
        let Ok(path) = path.canonicalize() else { continue };
        let is_inside = plan.roots.iter().any(|root| path.starts_with(&root.path)) || path.starts_with(PRIVATE_TMP);
        if !is_inside && !plan.unix_sockets.contains(&path) {
            let is_dir = path.is_dir();
            found.push((path, is_dir));
        }
    }
    found.sort();
    found.dedup();
    let mut masks: Vec<Mask> = Vec::new();
    for (path, is_dir) in found {
        // Sorted: a directory comes before what is in it.
        if masks.iter().any(|mask| mask.is_dir && path.starts_with(&mask.path)) {
            continue;
        }
        let keep = plan.unix_sockets.iter().filter(|socket| is_dir && socket.starts_with(&path) && socket.exists());
        let keep = keep.cloned().collect();
        let channel = plan.channel.as_ref().filter(|channel| is_dir && channel.path.starts_with(&path));
        let channel = channel.map(|at| (at.path.clone(), FileId { dev: at.dev, ino: at.ino }));
        masks.push(Mask { path, is_dir, keep, channel });
    }
    masks
}

/// Returns the sockets that other programs listen at, by their paths.
fn host_sockets() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(7));
    let paths: BTreeSet<PathBuf> = paths.filter(|path| path.starts_with('/')).map(PathBuf::from).collect();
    paths.into_iter().take(MAX_MASKED_SOCKETS).collect()
}

/// Adds the masks to the steps of a plan. What stays in reach is taken before everything becomes read-only.
pub fn with_masks(plan: &Plan, masks: &[Mask]) -> MountListBuf {
    let mut steps = MountListBuf::default();
    for (step, id, path) in describe(plan).as_list().iter().flatten() {
        if step == MountStep::ReadOnly {
            // Behind the trees that are put first.
            masks.iter().for_each(|mask| mask.take(&mut steps));
        }
        steps.push(step, id, path.to_bytes());
    }
    masks.iter().for_each(|mask| mask.put(&mut steps));
    steps
}

/// Finds the namespaces of a session that has jobs of an earlier daemon: its loopback is shared with them.
pub fn adopt_session(network: Network, living: &[i32]) -> Option<SessionNamespaces> {
    living.iter().find_map(|pid| {
        let ipc = other_namespace(*pid, "ipc")?;
        let net = if network == Network::Full { None } else { Some(Arc::new(other_namespace(*pid, "net")?)) };
        let user = toold_shim::sys::owner_of_namespace(ipc.as_fd()).ok()?;
        Some(SessionNamespaces { user: Arc::new(user), ipc: Arc::new(ipc), net })
    })
}

/// Opens a namespace of a process, if it is not our own.
fn other_namespace(pid: i32, kind: &str) -> Option<OwnedFd> {
    let own = rustix::fs::stat(format!("/proc/self/ns/{kind}")).ok()?;
    let file = std::fs::File::open(format!("/proc/{pid}/ns/{kind}")).ok()?;
    let found = rustix::fs::fstat(&file).ok()?;
    ((found.st_dev, found.st_ino) != (own.st_dev, own.st_ino)).then(|| file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::plan::tests::plan_in;
    use std::ffi::CStr;

    #[test]
    fn what_stays_in_reach_is_taken_before_its_mask_and_put_into_it_in_the_same_order() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let base = dir.path().canonicalize().expect("resolvable");
        let run = base.join("run");
        std::fs::create_dir_all(run.join("s/one")).expect("writable");
        let mut plan = plan_in(&base.join("work"));
        plan.hide.push(Judged::open(&run).expect("a directory"));
        let channel = Judged::open(&run.join("s/one")).expect("a directory");
        let id = FileId { dev: channel.dev, ino: channel.ino };
        plan.set_channel(channel).expect("a directory");
        assert_eq!(plan.hide.len(), 1, "it is hidden already");
        for (at, cover) in [(run.clone(), MountStep::MaskDir), ("/tmp/run".into(), MountStep::MaskNew)] {
            let (socket, channel) = (at.join("socket"), at.join("s/one"));
            let keep = vec![socket.clone()];
            let mask = Mask { path: at.clone(), is_dir: true, keep, channel: Some((channel.clone(), id)) };
            let alone = Mask { path: "/run/x".into(), is_dir: false, keep: Vec::new(), channel: None };
            let steps = with_masks(&plan, &[mask, alone]);
            let path = |path: &CStr| PathBuf::from(path.to_str().expect("UTF-8"));
            let steps: Vec<_> = steps.as_list().iter().flatten().map(|(step, id, at)| (step, id, path(at))).collect();
            let read_only = steps.iter().position(|(step, ..)| *step == MountStep::ReadOnly).expect("a step");
            let none = FileId::default();
            let taken = [(MountStep::Take, none, socket.clone()), (MountStep::TakeReadOnly, id, channel.clone())];
            assert_eq!(steps[read_only - 2..read_only], taken);
            let put = [
                (cover, none, at.clone()),
                (MountStep::PutFile, none, socket),
                (MountStep::PutNew, none, channel),
                (MountStep::Seal, none, at),
                (MountStep::MaskFile, none, "/run/x".into()),
            ];
            assert_eq!(steps[steps.len() - 5..], put);
        }
    }
}
