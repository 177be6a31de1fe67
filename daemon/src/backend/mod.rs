//! Starts shims: by the zygote, or by an exec of this program if there is none.

pub mod cgroup;
pub mod orphans;
pub mod process_limit;

use crate::config::ShimMode;
use orphans::Children;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use rustix::process::WaitOptions;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use toold_format::frame::ToShim;
use toold_shim::hooks;
use toold_shim::zygote::{StartAttributes, Zygote};

/// Starts shims.
pub struct Launcher {
    /// The zygote's socket while the zygote lives.
    zygote: Mutex<Option<Arc<OwnedFd>>>,
    zygote_pid: Option<i32>,
    exec: ExecShim,
    /// The children of this daemon.
    pub children: Arc<Children>,
    /// A launch was not taken in time. Starts do not wait again while the zygote is stopped.
    stalled: AtomicBool,
    /// Permits for handshakes with shims. A thousand at the same time would delay every request.
    pub handshakes: Semaphore,
}

/// Arguments of a shim that is executed.
#[derive(Debug, Clone)]
pub struct ExecShim {
    pub state_dir: PathBuf,
    pub attributes: StartAttributes,
    /// This daemon is the parent of orphans below it.
    pub is_subreaper: bool,
}

/// Number of concurrent handshakes that keeps both sides busy.
pub const MAX_HANDSHAKES: u32 = 16;

impl Launcher {
    /// Takes over the zygote, and watches for its exit.
    pub fn new(zygote: Option<Zygote>, mode: ShimMode, exec: ExecShim) -> Arc<Launcher> {
        let zygote = zygote.filter(|_| mode == ShimMode::Zygote);
        let children = Children::new(exec.is_subreaper, zygote.as_ref().map(|zygote| zygote.pid));
        if children.is_subreaper() {
            tokio::spawn(children.clone().run_reaper());
        }
        let Some(Zygote { socket, pidfd, pid }) = zygote else {
            return Arc::new(Launcher {
                zygote: Mutex::new(None),
                zygote_pid: None,
                exec,
                children,
                stalled: AtomicBool::new(false),
                handshakes: Semaphore::new(MAX_HANDSHAKES as usize),
            });
        };
        let zygote = Mutex::new(Some(Arc::new(socket)));
        let handshakes = Semaphore::new(MAX_HANDSHAKES as usize);
        let (zygote_pid, stalled) = (Some(pid), AtomicBool::new(false));
        let launcher = Arc::new(Launcher { zygote, zygote_pid, exec, children, stalled, handshakes });
        let watched = launcher.clone();
        tokio::spawn(async move {
            if zygote_ended(pidfd, pid).await {
                tracing::warn!(pid, "the zygote has exited; shims are started by exec from now on");
                // Closing the socket releases requests that no spare took: their processes start by exec.
                watched.forget_zygote();
            }
            watched.children.forget(pid);
        });
        launcher
    }

    /// Returns true for the zygote of this daemon, and for those of earlier ones.
    pub fn has_zygote(&self, pid: i32) -> bool {
        self.zygote_pid == Some(pid) || self.children.has_old_zygote(pid)
    }

    fn forget_zygote(&self) {
        if let Ok(mut zygote) = self.zygote.lock() {
            zygote.take();
        }
    }

    fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.zygote.lock().ok()?.clone()
    }

    /// Notes that no shim took a launch in time.
    pub fn set_stalled(&self) {
        if !self.stalled.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "no spare shim took a launch in time; shims are started by exec while the zygote is stopped"
            );
        }
    }

    /// Returns true while the zygote is stopped, after a launch was not taken in time.
    fn is_stalled(&self) -> bool {
        if !self.stalled.load(Ordering::Relaxed) {
            return false;
        }
        let stat = self.zygote_pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        let state = stat.as_deref().and_then(|stat| stat.rsplit(") ").next());
        let is_stopped = state.is_some_and(|rest| rest.starts_with(['T', 't']));
        self.stalled.store(is_stopped, Ordering::Relaxed);
        is_stopped
    }

    /// Returns the pid of the zygote while it lives.
    pub fn zygote_pid(&self) -> Option<i32> {
        self.socket().and(self.zygote_pid)
    }

    /// Sends a launch frame to a shim. The stream is the shim's control connection.
    pub async fn start(&self, frame: &LaunchFrame) -> io::Result<UnixStream> {
        let Some(socket) = self.socket().filter(|_| !self.is_stalled()) else { return self.exec(frame).await };
        let (ours, theirs) = pair()?;
        // The first part is in the socket before the shim reads; the rest follows meanwhile. Written before tokio has
        // the socket, because tokio writes nothing to a socket that its event loop has not seen yet.
        let sent = send_first(&ours, frame);
        hooks::at("spawn.before_request");
        if send_launch_fd(&socket, &theirs).is_err() {
            return self.exec(frame).await;
        }
        drop(theirs);
        hooks::at("spawn.requested");
        finish(ours, frame.bytes.get(sent..).unwrap_or_default()).await
    }

    /// Starts a shim by executing this program, even if its file was replaced since.
    pub async fn exec(&self, frame: &LaunchFrame) -> io::Result<UnixStream> {
        let (ours, theirs) = pair()?;
        let mut command = self.exec.command();
        command.stdin(Stdio::from(theirs));
        let children = self.children.clone();
        // The child forks and exits at once, so that nothing waits for the shim.
        let status = tokio::task::spawn_blocking(move || children.run(command)).await.map_err(io::Error::other)??;
        match status.code() {
            Some(0) => {}
            Some(errno) if errno > 1 => return Err(io::Error::from_raw_os_error(errno)),
            Some(_) | None => return Err(io::Error::other("the shim did not start")),
        }
        let sent = send_first(&ours, frame);
        finish(ours, frame.bytes.get(sent..).unwrap_or_default()).await
    }
}

impl ExecShim {
    /// Builds the command. Its environment is empty: a job could read it.
    fn command(&self) -> Command {
        let StartAttributes { max_fds, timeslice_ns } = self.attributes;
        let mut command = Command::new(own_program());
        command.arg("--state-dir").arg(&self.state_dir).arg("shim");
        command.arg("--timeslice-ns").arg(timeslice_ns.to_string());
        if let Some(max_fds) = max_fds {
            command.arg("--max-fds").arg(max_fds.to_string());
        }
        command.env_clear().envs(hooks::variable());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Writes the rest of a launch frame. If the shim died, the owner of the stream sees the hang-up next: only there is it
/// known whether anything was started.
async fn finish(ours: net::UnixStream, rest: &[u8]) -> io::Result<UnixStream> {
    let mut stream = UnixStream::from_std(ours)?;
    match stream.write_all(rest).await {
        Err(e) if !matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Err(e),
        Ok(()) | Err(_) => Ok(stream),
    }
}

/// Waits for the end of the zygote, and reaps it. False: nothing can be known about it. Without a pidfd a thread waits.
async fn zygote_ended(pidfd: Option<OwnedFd>, pid: i32) -> bool {
    let reap = move |options| rustix::process::waitpid(rustix::process::Pid::from_raw(pid), options);
    if let Some(pidfd) = pidfd.and_then(crate::sys::pollable) {
        let ended = pidfd.readable().await.is_ok();
        let _ = reap(WaitOptions::NOHANG);
        return ended;
    }
    let (ended, has_ended) = tokio::sync::oneshot::channel();
    let waits = std::thread::Builder::new().name("zygote-wait".into()).spawn(move || {
        while matches!(reap(WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
        let _ = ended.send(());
    });
    waits.is_ok() && has_ended.await.is_ok()
}

/// Returns the path of this program: its file may have been replaced since. Without /proc it is the path that it was
/// started by.
fn own_program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    if own.exists() { own.into() } else { OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()).into() }
}

fn pair() -> io::Result<(net::UnixStream, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let ours = net::UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok((ours, theirs))
}

/// A frame that starts a shim's work, with the descriptors that go beside it.
pub struct LaunchFrame {
    bytes: Vec<u8>,
    /// Almost always none.
    fds: Vec<Arc<OwnedFd>>,
}

impl LaunchFrame {
    /// Builds the frame that carries a launch block.
    pub fn launch(block: &[u8]) -> LaunchFrame {
        LaunchFrame::new(&ToShim::Launch { block }, block.len(), Vec::new())
    }

    /// Builds the frame that carries a launch block and its confinement.
    pub fn launch_sandboxed(sandbox: &[u8], block: &[u8], fds: Vec<Arc<OwnedFd>>) -> LaunchFrame {
        LaunchFrame::new(&ToShim::LaunchSandboxed { sandbox, block }, sandbox.len() + block.len(), fds)
    }

    /// Builds the frame that asks for namespaces.
    pub fn make_namespaces(block: &[u8], fds: Vec<Arc<OwnedFd>>) -> LaunchFrame {
        LaunchFrame::new(&ToShim::MakeNamespaces { block }, block.len(), fds)
    }

    fn new(frame: &ToShim<'_>, len: usize, fds: Vec<Arc<OwnedFd>>) -> LaunchFrame {
        let mut bytes = Vec::with_capacity(len + 16);
        frame.put(&mut bytes);
        LaunchFrame { bytes, fds }
    }
}

/// Sends the first part of a frame, with its descriptors, before the shim reads. Returns its length.
fn send_first(mut ours: &net::UnixStream, frame: &LaunchFrame) -> usize {
    let sent = match &frame.fds[..] {
        [] => ours.write(&frame.bytes),
        fds => {
            let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            toold_shim::sandbox::fds::send(ours.as_fd(), &frame.bytes, &fds).map_err(io::Error::from)
        }
    };
    // A shim that gets a frame without its descriptors starts nothing.
    sent.unwrap_or(0)
}

/// Sends one byte and the connection to the first free spare.
fn send_launch_fd(zygote: &OwnedFd, theirs: &OwnedFd) -> io::Result<()> {
    let fds = [theirs.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(zygote, &[io::IoSlice::new(b"s")], &mut control, flags)?;
    Ok(())
}
