//! Where a shim comes from: the zygote, or an exec of our own program when there is none.

pub mod cgroup;

use crate::config::ShimMode;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use toold_format::frame::ToShim;
use toold_shim::hooks;
use toold_shim::zygote::Zygote;

/// Makes shims.
pub struct Launcher {
    /// The zygote's socket, as long as the zygote lives.
    zygote: Mutex<Option<Arc<OwnedFd>>>,
    zygote_pid: Option<i32>,
    /// Shims that are greeted at once. A thousand at a time would keep every request waiting.
    pub handshakes: Semaphore,
}

/// As many as keep both sides busy.
pub const MAX_HANDSHAKES: u32 = 16;

impl Launcher {
    /// Takes over the zygote, and watches for its end.
    pub fn new(zygote: Option<Zygote>, mode: ShimMode) -> Arc<Launcher> {
        let zygote = zygote.filter(|_| mode == ShimMode::Zygote);
        let Some(Zygote { socket, pidfd, pid }) = zygote else {
            return Arc::new(Launcher {
                zygote: Mutex::new(None),
                zygote_pid: None,
                handshakes: Semaphore::new(MAX_HANDSHAKES as usize),
            });
        };
        let zygote = Mutex::new(Some(Arc::new(socket)));
        let handshakes = Semaphore::new(MAX_HANDSHAKES as usize);
        let launcher = Arc::new(Launcher { zygote, zygote_pid: Some(pid), handshakes });
        let watched = launcher.clone();
        tokio::spawn(async move {
            let Some(pidfd) = crate::sys::pollable(pidfd) else { return };
            if pidfd.readable().await.is_ok() {
                tracing::warn!(pid, "the zygote is gone; shims are exec'd from now on");
                // Closing the socket frees requests that no spare took: their processes start by exec.
                watched.forget_zygote();
                let _ =
                    rustix::process::waitpid(rustix::process::Pid::from_raw(pid), rustix::process::WaitOptions::NOHANG);
            }
        });
        launcher
    }

    fn forget_zygote(&self) {
        if let Ok(mut zygote) = self.zygote.lock() {
            zygote.take();
        }
    }

    fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.zygote.lock().ok()?.clone()
    }

    /// The pid of the zygote while it lives.
    pub fn zygote_pid(&self) -> Option<i32> {
        self.socket().and(self.zygote_pid)
    }

    /// Hands a launch to a shim. The stream is the shim's control connection.
    pub async fn start(&self, frame: &[u8]) -> io::Result<UnixStream> {
        let Some(socket) = self.socket() else { return self.exec(frame).await };
        let (ours, theirs) = pair()?;
        // What fits is there before the shim looks; the rest follows while it reads. Written before tokio
        // has the socket, because tokio writes nothing to one that its event loop has not seen yet.
        let sent = (&ours).write(frame).unwrap_or(0);
        hooks::at("spawn.before_request");
        if send_launch_fd(&socket, &theirs).is_err() {
            return self.exec(frame).await;
        }
        drop(theirs);
        hooks::at("spawn.requested");
        finish(ours, &frame[sent..]).await
    }

    /// Starts a shim by executing our own program, even if the file was replaced since.
    pub async fn exec(&self, frame: &[u8]) -> io::Result<UnixStream> {
        let (ours, theirs) = pair()?;
        let status = tokio::task::spawn_blocking(move || {
            // It forks and leaves at once, so that the shim is nobody's child here.
            Command::new("/proc/self/exe")
                .arg("shim")
                .stdin(Stdio::from(theirs))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
        })
        .await
        .map_err(io::Error::other)??;
        if !status.success() {
            return Err(io::Error::other("the exec'd shim did not start"));
        }
        finish(ours, frame).await
    }
}

/// Writes the rest of a launch. A shim that died has hung up, and whoever owns the stream sees that next:
/// only there is it known whether anything began.
async fn finish(ours: net::UnixStream, rest: &[u8]) -> io::Result<UnixStream> {
    let mut stream = UnixStream::from_std(ours)?;
    match stream.write_all(rest).await {
        Err(e) if !matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => Err(e),
        Ok(()) | Err(_) => Ok(stream),
    }
}

fn pair() -> io::Result<(net::UnixStream, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let ours = net::UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok((ours, theirs))
}

/// Builds the frame that carries a launch block to a shim.
pub fn launch_frame(block: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(block.len() + 16);
    ToShim::Launch { block }.put(&mut frame);
    frame
}

/// One byte and the connection, to whichever spare is first.
fn send_launch_fd(zygote: &OwnedFd, theirs: &OwnedFd) -> io::Result<()> {
    let fds = [theirs.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(zygote, &[io::IoSlice::new(b"s")], &mut control, flags)?;
    Ok(())
}
