//! Namespaces for jobs: what is in them, and how a spare is asked to make them.

use super::plan::{Judged, Network, Plan};
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
    let private = Path::new("/tmp");
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

/// A path that is masked, and the sockets in it that stay.
pub struct Mask {
    pub path: PathBuf,
    is_dir: bool,
    keep: Vec<PathBuf>,
}

/// Lists what is masked: hidden paths, and the sockets of the host that exist now.
pub fn masks(plan: &Plan) -> Vec<Mask> {
    let mut found: Vec<(PathBuf, bool)> = plan.hide.iter().map(|hidden| (hidden.path.clone(), hidden.is_dir)).collect();
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    for path in SOCKETS.iter().map(PathBuf::from).chain(runtime_dir).chain(host_sockets()) {
        let Ok(path) = path.canonicalize() else { continue };
        let is_inside = plan.roots.iter().any(|root| path.starts_with(&root.path)) || path.starts_with("/tmp");
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
        masks.push(Mask { path, is_dir, keep });
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

/// Adds the masks to the steps of a plan. The sockets that stay are taken before everything becomes read-only.
pub fn with_masks(plan: &Plan, masks: &[Mask]) -> MountListBuf {
    let none = FileId::default();
    let mut steps = MountListBuf::default();
    let described = describe(plan);
    let kept = || masks.iter().flat_map(|mask| &mask.keep);
    for (step, id, path) in described.as_list().iter().flatten() {
        if step == MountStep::ReadOnly {
            // Behind the trees that are put first.
            kept().for_each(|socket| steps.push(MountStep::Take, none, socket.as_os_str().as_bytes()));
        }
        steps.push(step, id, path.to_bytes());
    }
    for mask in masks {
        let path = mask.path.as_os_str().as_bytes();
        steps.push(if mask.is_dir { MountStep::MaskDir } else { MountStep::MaskFile }, none, path);
        mask.keep.iter().for_each(|socket| steps.push(MountStep::PutFile, none, socket.as_os_str().as_bytes()));
        if mask.is_dir {
            steps.push(MountStep::Seal, none, path);
        }
    }
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
